//! Words that reports and errors are made of. They import nothing else of this crate.

pub(crate) mod hidden_name;
pub(crate) mod operation;
pub(crate) mod reason;
pub(crate) mod remedy;
pub(crate) mod shell;
#[warn(missing_docs)]
pub(crate) mod strategy;
