use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::vocabulary::reason::SkipReason;

/// The fate of an entry and its descendants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It is cloned. The entries of a directory are decided in turn.
    Take,
    /// It is left out, and the report does not mention it.
    Leave,
    /// It is left out, and the report gives this reason.
    LeaveBecause(SkipReason),
}

/// Chooses which entries of a tree are cloned.
pub trait EntrySelector: Send + Sync {
    /// Decides about the entry at `path`, relative to the root. Several threads call it at a time.
    fn choose(&self, path: &Path, is_directory: bool) -> Decision;

    /// Returns [`EntrySelector::choose`] for the entries of one directory, which it can look up once for all of them.
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

/// Chooses which entries of a tree are cloned: by a function, or by a shared [`EntrySelector`].
#[derive(Clone)]
pub struct Selection(pub(crate) Arc<dyn EntrySelector>);

impl Selection {
    /// Creates a selection by a function, which is called like [`EntrySelector::choose`].
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
