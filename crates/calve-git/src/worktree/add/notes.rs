//! Notes about what the engine left out, and what changed while it cloned.

use std::path::{Path, PathBuf};

use calve_core::CloneReport;
use calve_core::report::SkippedEntry;

use crate::worktree::add::ignored::left_behind::{LeftBehindReason, LeftEntry};

pub(crate) fn take_notes(report: &mut CloneReport, at: &Path, left: &mut Vec<LeftEntry>) -> Vec<PathBuf> {
    let below = |path: PathBuf| if path.as_os_str().is_empty() { at.to_path_buf() } else { at.join(path) };
    for SkippedEntry { path, reason } in report.skipped.drain(..) {
        left.push(LeftEntry { path: at.join(path), reason: LeftBehindReason::of_engine(reason) });
    }
    report.changed.drain(..).map(below).collect()
}

/// Returns whether a `.git` file points to a worktree's entry, rather than a submodule's.
pub(crate) fn is_worktree(pointer: &Path) -> bool {
    fs_err::read(pointer).is_ok_and(|text| {
        text.starts_with(b"gitdir: ") && text.split(|&byte| byte == b'/').any(|name| name == b"worktrees")
    })
}
