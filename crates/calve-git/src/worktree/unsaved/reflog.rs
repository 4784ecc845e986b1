//! The logs of HEAD and of branches: `OLD NEW WHO WHEN\tWHAT: ...`.

use std::collections::HashSet;
use std::path::Path;

/// Returns the commits that a log's reference came to other than by a checkout of existing commits, the oldest first.
pub(super) fn made_here(log: &Path) -> Vec<String> {
    parsed(&read(log)).filter(|line| line.makes_commit()).map(|line| line.new.to_owned()).collect()
}

/// Returns all commits that a log leads to.
pub(in crate::worktree) fn all(log: &Path) -> Vec<String> {
    let text = read(log);
    let named: HashSet<&str> = parsed(&text).flat_map(|line| [line.old, line.new]).collect();
    named.into_iter().filter(|oid| oid.bytes().any(|byte| byte != b'0')).map(str::to_owned).collect()
}

/// Returns those of [`made_here`] that were neither replaced by an amended one nor made in the course of a rebase.
pub(super) fn made_and_left(log: &Path) -> Vec<String> {
    let text = read(log);
    let amended: HashSet<&str> =
        parsed(&text).filter(|line| line.what.starts_with("commit (amend)")).map(|line| line.old).collect();
    let made = parsed(&text).filter(|line| line.makes_commit() && !line.what.starts_with("rebase"));
    let mut seen = HashSet::new();
    made.map(|line| line.new).filter(|new| !amended.contains(new) && seen.insert(*new)).map(str::to_owned).collect()
}

/// Returns whether a log has a commit that was made here, or `None` if there is no log.
pub(in crate::worktree) fn has_made_commits(log: &Path) -> Option<bool> {
    fs_err::symlink_metadata(log).ok()?;
    // Of a branch without commits of its own, a rebase ends at the commit that it names.
    let moves =
        |line: &Line<'_>| line.what.to_ascii_lowercase().ends_with("fast-forward") || line.what.ends_with(line.new);
    Some(parsed(&read(log)).any(|line| line.makes_commit() && !moves(&line)))
}

pub(super) fn read(log: &Path) -> String {
    String::from_utf8_lossy(&fs_err::read(log).unwrap_or_default()).into_owned()
}

struct Line<'t> {
    old: &'t str,
    new: &'t str,
    what: &'t str,
}

impl Line<'_> {
    fn makes_commit(&self) -> bool {
        const MAKING: [&str; 7] = ["commit", "rebase", "cherry-pick", "merge", "am", "revert", "pull"];
        MAKING.iter().any(|word| self.what.starts_with(word))
    }
}

fn parsed(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.lines().filter_map(|line| {
        let (numbers, what) = line.split_once('\t')?;
        let mut numbers = numbers.split(' ');
        let (old, new) = (numbers.next()?, numbers.next()?);
        (is_oid(old) && is_oid(new)).then_some(Line { old, new, what })
    })
}

pub(super) fn is_oid(word: &str) -> bool {
    word.len() >= 40 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}
