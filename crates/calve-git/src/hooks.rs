//! A project's hooks: commands that it wants to be run with its worktrees, and the user's approval of each.
//!
//! The text comes with the repository, so that anyone who can change the repository could have anything run. It is run only when the
//! user has approved that exact text for that repository; a hash of both is kept. The repository is known by a random word in git's
//! own directory, so another one at the same path has to be approved anew, and a moved one has not.

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
    /// The template of a service is being made: the command fills the database.
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

/// The hooks that a user has approved: one small file for each, in a directory of the user's.
#[derive(Debug, Clone)]
pub struct Approvals {
    directory: PathBuf,
}

impl Approvals {
    /// Returns the approvals that are kept in `directory`, which need not exist.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Returns whether this text has been approved as this hook of this repository (the directory that all its worktrees share).
    pub fn has(&self, repository: &Path, hook: Hook, text: &str) -> Result<bool> {
        let Some(word) = read_word(repository, WORD)? else { return Ok(false) };
        Ok(fs_err::symlink_metadata(self.file(&word, hook, text)).is_ok_and(|found| found.is_file()))
    }

    pub fn add(&self, repository: &Path, hook: Hook, text: &str) -> Result<()> {
        make_private(&self.directory)?;
        let file = self.file(&word_of(repository)?, hook, text);
        // Its contents are for people; the name is what counts.
        let mut options = fs_err::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        Ok(write!(options.open(&file)?, "{} of {}\n{text}", hook.name(), repository.display())?)
    }

    /// Takes the approval back. It is no error if there was none.
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

/// Returns the word that tells this repository (the directory that all its worktrees share) from others, wherever it is moved.
pub fn word_of(repository: &Path) -> Result<String> {
    match read_word(repository, WORD)? {
        Some(word) => Ok(word),
        None => give_word(repository, WORD, &new_word()?),
    }
}

/// Returns the directory that all worktrees of a repository share, whichever of them `path` is in: it tells repositories apart.
pub fn repository_of(path: &Path) -> Result<PathBuf> {
    let shared = crate::repository::asked(path, &["rev-parse", "--path-format=absolute", "--git-common-dir"])?;
    Ok(fs_err::canonicalize(shared)?)
}

/// The facts that a hook gets, each as a variable of its environment.
#[derive(Debug, Clone, Default)]
pub struct HookEnvironment {
    /// `CALVE_WORKTREE`: the worktree that was added, or is to be removed. The hook runs there.
    pub worktree: PathBuf,
    /// `CALVE_MAIN_WORKTREE`: the repository's main worktree; not set when the repository is bare.
    pub main: Option<PathBuf>,
    /// `CALVE_SOURCE`: the worktree that the new one was cloned from.
    pub source: Option<PathBuf>,
    pub branch: Option<String>,
    pub commit: Option<String>,
    /// The variables of the worktree's ports and services.
    pub variables: Vec<(String, String)>,
}

/// Returns the command that runs a hook: a shell in the worktree, with no input. The caller decides where its output goes.
pub fn command(hook: Hook, text: &str, surroundings: &HookEnvironment) -> Command {
    let HookEnvironment { worktree, main, source, branch, commit, variables } = surroundings;
    let mut command = Command::new("sh");
    command.arg("-c").arg(text).arg(hook.name()).current_dir(worktree).stdin(Stdio::null());
    let roots = std::iter::once(worktree).chain(source).map(PathBuf::as_path);
    // The hook's git is to find the repository by where it runs. Nor does it inherit what leads to the services of the worktree that the user's
    // shell is for.
    for name in configured_variables(roots).iter().map(String::as_str).chain(OF_ONE_REPOSITORY.iter().copied()) {
        command.env_remove(name);
    }
    command.env("CALVE_HOOK", hook.name()).env("CALVE_WORKTREE", worktree);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    let optional = [
        ("CALVE_MAIN_WORKTREE", main.as_deref().map(Path::as_os_str)),
        ("CALVE_SOURCE", source.as_deref().map(Path::as_os_str)),
        ("CALVE_BRANCH", branch.as_deref().map(OsStr::new)),
        ("CALVE_COMMIT", commit.as_deref().map(OsStr::new)),
    ];
    for (name, value) in optional {
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
