//! Reasons for leaving entries behind, beside the clone engine's own. They are reported in this order.

use std::path::{Path, PathBuf};

use calve_core::CloneReport;
use calve_core::report::{SkipReason, SkippedEntry};

pub const RUNTIME: SkipReason = reason(0, "state of a running program");
pub(crate) const SECRET: SkipReason = reason(1, "looks like a secret");
pub(crate) const EXCLUDED: SkipReason = reason(2, "excluded by .calve.toml");
pub(crate) const EXCLUDED_LOCALLY: SkipReason = reason(3, "excluded by .calve.local.toml");
pub(crate) const POINTER: SkipReason = reason(4, "points into another repository");
pub const NESTED_WORKTREE: SkipReason = reason(5, "another worktree");
pub(crate) const FOREIGN_WORKTREES: SkipReason = reason(6, "list of worktrees of a nested repository");
pub(crate) const COLLIDES: SkipReason = reason(7, "tracked in the new worktree");
pub(crate) const NOT_IGNORED: SkipReason = reason(8, "not ignored in the new worktree");
pub(crate) const OTHER_DONOR: SkipReason = reason(9, "not where its lockfile's other directories come from");
pub const BEHIND_LINK: SkipReason = reason(10, "a link or a file is where its directory would be");

const fn reason(number: usize, text: &'static str) -> SkipReason {
    SkipReason::Selection { number, text }
}

/// Moves the skipped entries of a report about the directory `at` to `left`. Returns the paths that changed meanwhile.
pub(crate) fn take_notes(report: &mut CloneReport, at: &Path, left: &mut Vec<SkippedEntry>) -> Vec<PathBuf> {
    let below = |path: PathBuf| if path.as_os_str().is_empty() { at.to_path_buf() } else { at.join(path) };
    left.extend(report.skipped.drain(..).map(|one| SkippedEntry { path: at.join(one.path), ..one }));
    report.changed.drain(..).map(below).collect()
}
