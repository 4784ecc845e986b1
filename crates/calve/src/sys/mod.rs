//! The program's needs of its system: names of error numbers, signals, the reaper's process, paths as bytes.

#[cfg(unix)]
mod command;
pub(crate) mod interrupt;
#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub(crate) use command::{Answers, TerminalModes, become_command, run_command, run_hook};
#[cfg(unix)]
pub(crate) use unix::*;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub(crate) use windows::*;
