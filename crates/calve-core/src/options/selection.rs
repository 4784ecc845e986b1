//! Choosing entries by a function.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::vocabulary::reason::SkipReason;

/// The fate of one entry, and of all that is below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It is cloned; if it is a directory, its entries are asked about in their turn.
    Take,
    /// It is left out, and the report does not mention it.
    Leave,
    /// It is left out, and the report gives this reason.
    LeaveBecause(SkipReason),
}

/// Chooses which entries of a tree are cloned.
pub trait EntrySelector: Send + Sync {
    /// Decides about the entry at `path`, relative to the root. Several threads ask at a time.
    fn choose(&self, path: &Path, is_directory: bool) -> Decision;

    /// Returns a function that decides as [`EntrySelector::choose`] does about the entries of one directory. A choice that depends on the directory
    /// looks it up once.
    fn inside<'a>(&'a self, _directory: &Path) -> Box<EntryDecider<'a>> {
        Box::new(|path, is_directory| self.choose(path, is_directory))
    }
}

/// The function that [`EntrySelector::inside`] returns.
pub type EntryDecider<'a> = dyn Fn(&Path, bool) -> Decision + 'a;

impl<F: Fn(&Path, bool) -> Decision + Send + Sync> EntrySelector for F {
    fn choose(&self, path: &Path, is_directory: bool) -> Decision {
        self(path, is_directory)
    }
}

/// Chooses which entries of a tree are cloned: by a function, or by an [`EntrySelector`] that is shared.
#[derive(Clone)]
pub struct Selection(pub(crate) Arc<dyn EntrySelector>);

impl Selection {
    /// Creates a selection by the function `choose`, which is called as [`EntrySelector::choose`] is.
    pub fn new(choose: impl Fn(&Path, bool) -> Decision + Send + Sync + 'static) -> Self {
        Self(Arc::new(choose))
    }
}

impl From<Arc<dyn EntrySelector>> for Selection {
    fn from(select: Arc<dyn EntrySelector>) -> Self {
        Self(select)
    }
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Selection")
    }
}
