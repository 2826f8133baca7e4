//! The commands of `tephra`, one file each. A command takes its parsed arguments and answers an exit code.

pub mod bench;
pub mod completions;
pub mod demo;
pub mod man;
pub mod simulate;
