//! A spare: a clone that was made ahead of time, and is handed over by a rename when it is sure to equal its source. `spares` makes them.
//!
//! | File | Step |
//! |---|---|
//! | `store` | where spares and what is known of them are kept |
//! | `record` | what a spare was made from |
//! | `ask`, `check` | what has changed since: the watcher knows, or every entry is compared |
//! | `claim`, `select` | handing one over |
//! | `update`, `ranges` | bringing it up to date: entries, and the ranges of a large file |
//! | `names` | what is in a tree that was a spare, so that it need not be walked |
//!
//! docs/spares-exact.md says why a spare that is handed over equals its source.

pub(crate) mod ask;
pub(crate) mod check;
pub(crate) mod claim;
pub(crate) mod names;
pub(crate) mod order;
mod ranges;
pub(crate) mod record;
pub(crate) mod select;
pub(crate) mod store;
pub(crate) mod update;
