//! Results of system calls.

pub(crate) type Result<T> = rustix::io::Result<T>;
