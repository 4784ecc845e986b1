//! Words for the remedies of the libraries: what to type next.

#[cfg(unix)]
pub(crate) mod git;
