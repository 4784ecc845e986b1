use std::collections::HashSet;
use std::path::Path;

use crate::repository::logs::{Log, LogLine};
use crate::trust::is_object_id;

/// Returns the commits, oldest first, that a log's reference came to other than by a checkout of existing commits.
pub(super) fn made_here(log: &Log) -> Vec<String> {
    lines(log).filter(makes_commit).map(|line| line.new.to_owned()).collect()
}

pub(crate) fn all(log: &Log) -> HashSet<String> {
    let named = lines(log).flat_map(|line| [line.old, line.new]);
    named.filter(|oid| oid.bytes().any(|byte| byte != b'0')).map(str::to_owned).collect()
}

/// Returns those of [`made_here`] that were neither amended later nor made by a rebase.
pub(super) fn made_and_left(log: &Log) -> Vec<String> {
    let amended: HashSet<&str> =
        lines(log).filter(|line| line.how.starts_with("commit (amend)")).map(|line| line.old).collect();
    let made = lines(log).filter(|line| makes_commit(line) && !line.how.starts_with("rebase"));
    let mut seen = HashSet::new();
    made.map(|line| line.new).filter(|new| !amended.contains(new) && seen.insert(*new)).map(str::to_owned).collect()
}

/// Returns those of [`made_and_left`] that no fast-forward led to: it may have come to a remote's commit.
pub(super) fn made_and_left_by_user(log: &Log) -> Vec<String> {
    let moved: HashSet<&str> = lines(log).filter(moves).map(|line| line.new).collect();
    made_and_left(log).into_iter().filter(|commit| !moved.contains(&**commit)).collect()
}

/// Returns whether a reference's log has a commit made here, or `None` without a log.
pub(crate) fn has_made_commits(directory: &Path, reference: &str) -> Option<bool> {
    fs_err::symlink_metadata(directory.join("logs").join(reference)).ok()?;
    Some(lines(&Log::new(directory, reference)).any(|line| makes_commit(&line) && !moves(&line)))
}

/// Returns whether a reference came to an existing commit. Without own commits, a rebase ends at the one it names.
fn moves(line: &LogLine<'_>) -> bool {
    line.how.to_ascii_lowercase().ends_with("fast-forward") || line.how.ends_with(line.new)
}

/// Returns the lines with two object ids, which are safe to give to git.
fn lines(log: &Log) -> impl Iterator<Item = LogLine<'_>> {
    log.lines().filter(|line| is_object_id(line.old) && is_object_id(line.new))
}

fn makes_commit(line: &LogLine<'_>) -> bool {
    const MAKING: [&str; 7] = ["commit", "rebase", "cherry-pick", "merge", "am", "revert", "pull"];
    MAKING.iter().any(|word| line.how.starts_with(word))
}
