//! Files and directories that others may want to read, change or redirect.

pub(crate) mod account;
pub(crate) mod confined;
pub(crate) mod directory;
pub(crate) mod home;
pub(crate) mod log;
pub(crate) mod private;
pub(crate) mod random;
pub(crate) mod runtime;
pub(crate) mod trash;
