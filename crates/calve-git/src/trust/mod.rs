//! Marks untrusted worktrees of pull requests, and provides a git that runs none of their code.
//!
//! The mark is a file in git's own directory of the worktree (`worktrees/ID`), which no commit can write, and which
//! goes with the worktree. If the mark cannot be checked, the worktree counts as marked. A mark names the commits that
//! it is about: others may be checked out later.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use calve_core::internal::json::FromReport;

use crate::error::Result;
use crate::paths::{if_there, is_missing, pointed_to, real};

pub(crate) mod command;
pub(crate) mod confined;
pub(crate) mod programs;

/// The owner of the work in a worktree or a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Provenance {
    /// The user's, also if taken from the project's own branches.
    Own,
    /// A pull request's, or the user's on top, in a worktree that the user trusts.
    TrustedByUser,
    /// A pull request's: nothing of it runs, and it gets no secrets and no data.
    #[default]
    Untrusted,
}

impl Provenance {
    pub(crate) fn new(is_foreign: bool, is_trusted: bool) -> Provenance {
        let permitted = if is_trusted { Self::TrustedByUser } else { Self::Own };
        if is_foreign { Self::Untrusted } else { permitted }
    }

    pub fn is_untrusted(self) -> bool {
        self == Self::Untrusted
    }

    /// Returns the provenance of a worktree of this commit, with files of `donor`.
    pub(crate) fn with_files_of(self, donor: Provenance) -> Provenance {
        if donor.is_untrusted() { donor } else { self }
    }
}

impl FromReport<Provenance> for bool {
    fn from_report(provenance: &Provenance) -> Self {
        provenance.is_untrusted()
    }
}

const MARK: &str = "calve-untrusted";

/// The file with the commits that the user trusts in a worktree.
const TRUSTED: &str = "calve-trusted";

/// The mark of a fetch since the clone: FETCH_HEAD goes with the worktree that has fetched.
const FETCHED: &str = "calve-fetched";

/// The time for which an entry without a written mark counts as marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// The mark cannot be written.
    ProcessEnds,
    /// git is in the middle of an operation, after which something else may be checked out.
    AskedAgain,
}

static REMEMBERED: Mutex<BTreeMap<PathBuf, Until>> = Mutex::new(BTreeMap::new());

/// A `.git` file has one line.
const LARGEST_POINTER_BYTES: u64 = 64 * 1024;

const FOREIGN_COMMIT: &[u8] = b"a pull request's worktree, added without trust\n";
const FOREIGN_FILES: &[u8] = b"has files of a pull request's worktree\n";

/// Marks a worktree as untrusted, unless its mark already covers that. `commit` is checked out there; if `of_commit` is
/// not untrusted, at most files that git ignores are.
pub(crate) fn mark(entry: &Path, of_commit: Provenance, commit: Option<&str>) -> Result<()> {
    let commit = commit.filter(|_| of_commit.is_untrusted());
    let mut file = match fs_err::OpenOptions::new().write(true).create_new(true).open(entry.join(MARK)) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            if commit.is_none() || has_foreign_commit(entry) {
                return Ok(());
            }
            fs_err::OpenOptions::new().append(true).open(entry.join(MARK))?
        }
        made => {
            let mut made = made?;
            made.write_all(if of_commit.is_untrusted() { FOREIGN_COMMIT } else { FOREIGN_FILES })?;
            made
        }
    };
    if let Some(commit) = commit {
        file.write_all(format!("{commit}\n").as_bytes())?;
    }
    Ok(())
}

/// Marks a checked-out commit, if only for this process: the repository may be another user's, or read-only.
pub(crate) fn mark_or_remember(entry: &Path, commit: Option<&str>) {
    if mark(entry, Provenance::Untrusted, commit).is_err() {
        remember(entry);
    }
}

pub(crate) fn remember(entry: &Path) {
    remembered().insert(entry.to_path_buf(), Until::ProcessEnds);
}

pub(crate) fn remember_until_asked_again(entry: &Path) {
    remembered().entry(entry.to_path_buf()).or_insert(Until::AskedAgain);
}

pub(crate) fn forget(entry: &Path) {
    remembered().retain(|remembered, until| remembered != entry || *until != Until::AskedAgain);
}

fn remembered() -> std::sync::MutexGuard<'static, BTreeMap<PathBuf, Until>> {
    REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether the worktree is marked for a commit that it has checked out.
pub(crate) fn has_foreign_commit(entry: &Path) -> bool {
    has_lasting_mark(entry) && fs_err::read(entry.join(MARK)).map_or(true, |text| text != FOREIGN_FILES)
}

pub(crate) fn marked_commits(entry: &Path) -> Vec<String> {
    commits_in(&entry.join(MARK))
}

/// Notes a fetch into this repository. If that cannot be written, FETCH_HEAD alone tells.
pub(crate) fn note_fetch(common: &Path) {
    if !has_fetched(common) {
        let _ = fs_err::OpenOptions::new().append(true).create(true).open(common.join(FETCHED));
    }
}

pub(crate) fn has_fetched(common: &Path) -> bool {
    fs_err::symlink_metadata(common.join(FETCHED)).is_ok()
}

pub(crate) fn note_trust(entry: &Path, commit: &str) -> Result<()> {
    let mut file = fs_err::OpenOptions::new().append(true).create(true).open(entry.join(TRUSTED))?;
    Ok(file.write_all(format!("{commit}\n").as_bytes())?)
}

pub(crate) fn trusted_commits(entry: &Path) -> Vec<String> {
    commits_in(&entry.join(TRUSTED))
}

pub(crate) fn is_object_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn commits_in(file: &Path) -> Vec<String> {
    let text = fs_err::read_to_string(file).unwrap_or_default();
    text.lines().filter(|line| is_object_id(line)).map(str::to_owned).collect()
}

/// Returns whether `path` is in a worktree marked as a pull request's.
pub(crate) fn is_untrusted(path: &Path) -> bool {
    is_within(path, has_mark)
}

/// Ignores marks that hold only until the provenance is asked for again.
pub(crate) fn is_untrusted_for_good(path: &Path) -> bool {
    is_within(path, has_lasting_mark)
}

fn is_within(path: &Path, is_marked: fn(&Path) -> bool) -> bool {
    let real = real(path);
    // Also for a repository inside a worktree: its contents came with the worktree.
    real.ancestors().any(|above| match pointer(&above.join(".git")) {
        // A missing entry has lost its mark, so the worktree counts as untrusted.
        Ok(entry) => entry.is_some_and(|entry| is_marked(&entry) || fs_err::symlink_metadata(&entry).is_err()),
        Err(_) => true,
    })
}

/// Returns the provenance by a worktree's marks and kept trust, which are right once the repository has been opened.
pub(crate) fn recorded(root: &Path) -> Provenance {
    let entry = pointer(&root.join(".git")).ok().flatten().unwrap_or_else(|| root.join(".git"));
    Provenance::new(is_untrusted(root), !trusted_commits(&entry).is_empty())
}

/// Removes a worktree's mark. Returns whether there was one.
pub(crate) fn remove_mark(entry: &Path) -> Result<bool> {
    let was_remembered = remembered().remove(entry).is_some();
    Ok(if_there(fs_err::remove_file(entry.join(MARK)))?.is_some() || was_remembered)
}

/// Returns git's own directory of the linked worktree at `root`; `None` without a `.git` file.
pub(crate) fn entry_of(root: &Path) -> Result<Option<PathBuf>> {
    Ok(pointer(&root.join(".git"))?)
}

/// Returns whether git's directory `entry`, or one above it (for a submodule), has the mark.
pub(crate) fn has_mark(entry: &Path) -> bool {
    is_marked_until(entry, &[Until::ProcessEnds, Until::AskedAgain])
}

pub(crate) fn has_lasting_mark(entry: &Path) -> bool {
    is_marked_until(entry, &[Until::ProcessEnds])
}

fn is_marked_until(entry: &Path, ends: &[Until]) -> bool {
    let remembered = remembered();
    entry.ancestors().any(|directory| {
        remembered.get(directory).is_some_and(|until| ends.contains(until)) || !is_missing(&directory.join(MARK))
    })
}

/// Returns the path in a `.git` file; `None` if it is missing, or a repository itself.
fn pointer(file: &Path) -> io::Result<Option<PathBuf>> {
    use std::io::Read as _;
    match fs_err::symlink_metadata(file) {
        Ok(found) if found.is_dir() => return Ok(None),
        Ok(_) => {}
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        // A directory above may not be entered: git could work in no worktree here.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(None),
        Err(error) => return Err(error),
    }
    // git, too, follows a symlink here.
    let found = fs_err::metadata(file)?;
    if found.is_dir() {
        return Ok(None);
    }
    if !found.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = Vec::new();
    fs_err::File::open(file)?.take(LARGEST_POINTER_BYTES).read_to_end(&mut text)?;
    let Some(path) = pointed_to(&text) else { return Err(io::Error::other("it points nowhere")) };
    Ok(Some(real(&file.parent().unwrap_or(Path::new("/")).join(path))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_not_plainly_unmarked_is_untrusted() {
        let folder = tempfile::tempdir().unwrap();
        let (entry, tree) = (folder.path().join("repo/.git/worktrees/x"), folder.path().join("x"));
        fs_err::create_dir_all(&entry).unwrap();
        fs_err::create_dir_all(tree.join("a/b")).unwrap();
        assert!(!is_untrusted(&tree));
        fs_err::write(tree.join(".git"), format!("gitdir: {}\n", entry.display())).unwrap();
        assert!(!is_untrusted(&tree) && !has_mark(&entry));
        assert_eq!(recorded(&tree), Provenance::Own);
        note_trust(&entry, &"5".repeat(40)).unwrap();
        assert_eq!(recorded(&tree), Provenance::TrustedByUser);
        mark(&entry, Provenance::Untrusted, None).unwrap();
        assert!(is_untrusted(&tree) && is_untrusted(&tree.join("a/b")) && is_untrusted(&tree.join("a/gone/..")));
        assert_eq!(recorded(&tree), Provenance::Untrusted, "trust is for other commits");
        assert!(has_mark(&entry.join("modules/sub")));
        // Relative, as git writes it if it is configured so.
        fs_err::write(tree.join(".git"), "gitdir: ../repo/.git/worktrees/x\n").unwrap();
        assert!(is_untrusted(&tree.join("a")));
        fs_err::os::unix::fs::symlink(tree.join("a"), folder.path().join("by-link")).unwrap();
        assert!(is_untrusted(&folder.path().join("by-link")));
        // A mark that is something else is a mark.
        fs_err::remove_file(entry.join(MARK)).unwrap();
        assert!(!is_untrusted(&tree));
        fs_err::create_dir(entry.join(MARK)).unwrap();
        assert!(is_untrusted(&tree));
        fs_err::remove_dir(entry.join(MARK)).unwrap();
        for text in ["nonsense", "gitdir: ../moved/.git/worktrees/x\n"] {
            fs_err::write(tree.join(".git"), text).unwrap();
            assert!(is_untrusted(&tree) && is_untrusted(&tree.join("a/b")), "{text}");
        }
    }
}
