//! A project's hooks, and the user's approval of each.
//!
//! The text comes with the repository: anyone who can change that could have anything run. So a text runs only if the
//! user approved exactly this one for this repository; a hash of both is kept. A random word in git's own directory
//! identifies the repository: another one at the same path needs a new approval, a moved one does not.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fs_err::os::unix::fs::OpenOptionsExt as _;
use strum::IntoStaticStr;

use crate::error::Result;
use crate::foreign_variables::configured_variables;
use crate::git::OF_ONE_REPOSITORY;
use crate::identity::{give_word, new_word, read_word};
use crate::paths::{if_there, make_private};

const WORD: &str = "calve-repository";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Hook {
    PostAdd,
    PreRemove,
    /// Fills the database while a service's template is made.
    Create,
}

impl Hook {
    pub fn name(self) -> &'static str {
        self.into()
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::PostAdd => "post-add hook",
            Self::PreRemove => "pre-remove hook",
            Self::Create => "create command",
        }
    }
}

/// The hooks that a user has approved: a small file for each, in a directory of the user's.
#[derive(Debug, Clone)]
pub struct Approvals {
    directory: PathBuf,
}

impl Approvals {
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Returns whether this text is approved as this hook of this repository (the directory that its worktrees share).
    pub fn has(&self, repository: &Path, hook: Hook, text: &str) -> Result<bool> {
        let Some(word) = read_word(repository, WORD)? else { return Ok(false) };
        Ok(fs_err::symlink_metadata(self.file(&word, hook, text)).is_ok_and(|found| found.is_file()))
    }

    pub fn add(&self, repository: &Path, hook: Hook, text: &str) -> Result<()> {
        make_private(&self.directory)?;
        let file = self.file(&word_of(repository)?, hook, text);
        // Only the name counts; the contents are for people.
        let mut options = fs_err::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        Ok(write!(options.open(&file)?, "{} of {}\n{text}", hook.name(), repository.display())?)
    }

    pub fn remove(&self, repository: &Path, hook: Hook, text: &str) -> Result<()> {
        let Some(word) = read_word(repository, WORD)? else { return Ok(()) };
        if_there(fs_err::remove_file(self.file(&word, hook, text)))?;
        Ok(())
    }

    fn file(&self, repository: &str, hook: Hook, text: &str) -> PathBuf {
        let mut hasher = blake3::Hasher::new();
        // Lengths first, so that nothing can be moved from one part to the next.
        for part in [b"calve hook 2", hook.name().as_bytes(), repository.as_bytes(), text.as_bytes()] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        self.directory.join(hasher.finalize().to_hex().as_str())
    }
}

/// Returns the word that identifies a repository (the directory that its worktrees share), wherever it is moved.
pub fn word_of(repository: &Path) -> Result<String> {
    match read_word(repository, WORD)? {
        Some(word) => Ok(word),
        None => give_word(repository, WORD, &new_word()?),
    }
}

/// Returns the directory that all worktrees of the repository share, which identifies it.
pub fn repository_of(path: &Path) -> Result<PathBuf> {
    let shared = crate::repository::asked(path, &["rev-parse", "--path-format=absolute", "--git-common-dir"])?;
    Ok(fs_err::canonicalize(shared)?)
}

#[derive(Debug, Clone, Default)]
pub struct HookEnvironment {
    /// `CALVE_WORKTREE`: the added worktree, or the one to be removed. The hook runs there.
    pub worktree: PathBuf,
    /// `CALVE_MAIN_WORKTREE`; not set for a bare repository.
    pub main: Option<PathBuf>,
    /// `CALVE_SOURCE`: the worktree that the new one was cloned from.
    pub source: Option<PathBuf>,
    pub branch: Option<String>,
    pub commit: Option<String>,
    /// `None`: unset.
    pub variables: BTreeMap<String, Option<String>>,
}

/// Returns the command that runs a hook: a shell in the worktree, without input. The caller directs its output.
pub fn command(hook: Hook, text: &str, surroundings: &HookEnvironment) -> Command {
    let HookEnvironment { worktree, main, source, branch, commit, variables } = surroundings;
    let mut command = Command::new("sh");
    command.arg("-c").arg(text).arg(hook.name()).current_dir(worktree).stdin(Stdio::null());
    let roots = std::iter::once(worktree).chain(source).map(PathBuf::as_path);
    // The hook's git finds the repository by its working directory. Nor does the hook inherit variables that lead to
    // the services of the worktree that the user's shell is for.
    for name in configured_variables(roots).iter().map(String::as_str).chain(OF_ONE_REPOSITORY.iter().copied()) {
        command.env_remove(name);
    }
    command.env("CALVE_HOOK", hook.name()).env("CALVE_WORKTREE", worktree);
    let optional = [
        ("CALVE_MAIN_WORKTREE", main.as_deref().map(Path::as_os_str)),
        ("CALVE_SOURCE", source.as_deref().map(Path::as_os_str)),
        ("CALVE_BRANCH", branch.as_deref().map(OsStr::new)),
        ("CALVE_COMMIT", commit.as_deref().map(OsStr::new)),
    ];
    let variables = variables.iter().map(|(name, value)| (name.as_str(), value.as_deref().map(OsStr::new)));
    for (name, value) in variables.chain(optional) {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_is_for_one_text_of_one_hook_of_one_repository() {
        let folder = tempfile::tempdir().unwrap();
        let approvals = Approvals::at(folder.path().join("state/hooks"));
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        [&one, &other].into_iter().for_each(|repository| fs_err::create_dir(repository).unwrap());
        let has = |repository: &Path, hook, text| approvals.has(repository, hook, text).unwrap();
        assert!(!has(&one, Hook::PostAdd, "npm ci"));
        approvals.add(&one, Hook::PostAdd, "npm ci").unwrap();
        approvals.add(&one, Hook::PostAdd, "npm ci").unwrap();
        assert!(has(&one, Hook::PostAdd, "npm ci"));
        assert!(!has(&one, Hook::PostAdd, "npm ci\n"));
        assert!(!has(&one, Hook::PreRemove, "npm ci"));
        assert!(!has(&other, Hook::PostAdd, "npm ci"));
        // Wherever it is moved; and another one in its place is another one.
        let moved = folder.path().join("moved");
        fs_err::rename(&one, &moved).unwrap();
        fs_err::create_dir(&one).unwrap();
        assert!(has(&moved, Hook::PostAdd, "npm ci") && !has(&one, Hook::PostAdd, "npm ci"));
        approvals.remove(&moved, Hook::PostAdd, "npm ci").unwrap();
        approvals.remove(&moved, Hook::PostAdd, "npm ci").unwrap();
        assert!(!has(&moved, Hook::PostAdd, "npm ci"));
    }

    #[test]
    fn a_hook_runs_in_the_worktree_and_knows_where_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let (worktree, branch) = (folder.path().to_path_buf(), Some("a b".to_owned()));
        let surroundings = HookEnvironment { worktree, branch, ..HookEnvironment::default() };
        let text = "printf '%s|' \"$0\" \"$CALVE_HOOK\" \"$CALVE_WORKTREE\" \"$CALVE_BRANCH\" \"${CALVE_SOURCE-none}\"; pwd -P; exit 3";
        let output = command(Hook::PostAdd, text, &surroundings).output().unwrap();
        assert_eq!(output.status.code(), Some(3));
        let real = fs_err::canonicalize(folder.path()).unwrap();
        let expected = format!("post-add|post-add|{}|a b|none|{}\n", folder.path().display(), real.display());
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    }
}
