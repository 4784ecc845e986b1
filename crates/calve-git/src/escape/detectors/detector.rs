//! One kind of reference, and how it is found.

use crate::escape::entry::{EntryName, WalkEntry};
use crate::escape::report::PendingFinding;
use crate::escape::trees::Trees;

pub(crate) trait Detector: Sync {
    /// Returns whether an entry is worth a look, by its name and folder alone.
    fn wants(&self, entry: &EntryName<'_>) -> bool;
    fn look(&self, entry: &WalkEntry<'_>, trees: &Trees, found: &mut Vec<PendingFinding>);
}
