//! The filters that do not run in a worktree without trust.

use crate::error::Result;
use crate::git::Git;
use crate::trust::programs::{RefusedFilter, refused_filters};
use crate::worktree::add::options::AddWarning;

/// Returns a warning for each filter that would run code of the tree, about the files in the index that stay as they are stored.
pub(crate) fn unfiltered(git: &Git, index: &[u8]) -> Result<Vec<AddWarning>> {
    let refused = refused_filters(&git.run(&["config", "-z", "--show-scope", "--list"])?);
    if refused.is_empty() {
        return Ok(Vec::new());
    }
    let said = git.fed(&["check-attr", "--cached", "-z", "--stdin", "filter"], index)?;
    let mut fields = said.split(|&byte| byte == 0);
    let mut counts = vec![0_u64; refused.len()];
    while let (Some(_), Some(_), Some(value)) = (fields.next(), fields.next(), fields.next()) {
        if let Some(at) = refused.iter().position(|filter| filter.name.as_bytes() == value) {
            counts[at] += 1;
        }
    }
    let used = refused.iter().zip(counts).filter(|(_, count)| *count > 0);
    let warnings = used.map(|(RefusedFilter { name, command }, files)| AddWarning::Unfiltered {
        filter: name.clone(),
        command: command.clone(),
        files,
    });
    Ok(warnings.collect())
}
