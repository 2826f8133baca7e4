//! The runtime that a program runs on.

/// Runs a program to its end. What it has left running is not waited for: a deposed leader must be gone at once.
///
/// # Errors
/// The program's, or when no threads can be started.
pub fn run(program: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(program);
    runtime.shutdown_background();
    result
}
