use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The spares that a clone may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpareUse {
    /// Where they are kept.
    pub home: PathBuf,
    /// Patterns of entries that they lack. Entries that a selection by a function leaves out are removed on use.
    pub made_without: Vec<String>,
    /// The body of a record that was read before.
    pub(crate) record: Option<Arc<RecordBody>>,
}

impl SpareUse {
    /// Permits using the spares kept in `home`.
    pub fn kept_in(home: impl Into<PathBuf>) -> Self {
        Self { home: home.into(), made_without: Vec::new(), record: None }
    }

    /// Permits using the spares of the user with this CALVE_HOME.
    pub fn in_home(home: &Path) -> Self {
        Self::kept_in(home.join("spares"))
    }
}

/// The body of a spare's record, and its BLAKE3 hash.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RecordBody {
    pub(crate) bytes: Vec<u8>,
    pub(crate) hash: [u8; 32],
}
