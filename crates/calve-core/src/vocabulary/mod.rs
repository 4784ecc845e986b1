//! The vocabulary of reports and errors. It imports nothing else of this crate.

pub(crate) mod hidden_name;
pub(crate) mod operation;
pub(crate) mod reason;
pub(crate) mod remedy;
pub(crate) mod shell;
#[warn(missing_docs)]
pub(crate) mod strategy;
