//! `tephra demo` as its users meet it: the real program in its own process, looked at through its exit code, its
//! output and its port.

mod kubectl;
mod outcome;
mod process;
