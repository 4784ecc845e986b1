//! Why git opens no repository at a place. It has one exit code for all reasons, and is asked again in ways that tell them apart.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use calve_core::internal::ShownPath;

use crate::error::Error;
use crate::git::Git;
use crate::remedy::Remedy;

enum Obstacle {
    /// The place is in a repository, and in no worktree.
    OutsideWorktree,
    NoRepository,
    AnothersRepository,
    UnknownExtension,
    /// This `.git` file leads nowhere.
    BrokenPointer(PathBuf),
    Other,
}

impl Obstacle {
    fn find(start: &Path, said: &str) -> Self {
        let answer = |git: Git, question| git.answer(&["rev-parse", question]).ok().flatten();
        if answer(Git::at(start), "--is-inside-work-tree").as_deref() == Some("false") {
            return Self::OutsideWorktree;
        }
        let found = start.ancestors().map(|above| above.join(".git")).find(|git| fs_err::symlink_metadata(git).is_ok());
        let Some(git) = found else { return Self::NoRepository };
        let user = rustix::process::geteuid().as_raw();
        let is_anothers = |path: &Path| fs_err::metadata(path).is_ok_and(|found| found.uid() != user);
        // git asks for no owner of a repository that is named to it.
        match answer(Git::at(start).with("GIT_DIR", &git), "--absolute-git-dir") {
            Some(own) if is_anothers(own.as_ref()) || git.ancestors().take(2).any(is_anothers) => {
                Self::AnothersRepository
            }
            // Only its words tell whom it trusts and which extensions it knows.
            None if said.contains("dubious ownership") => Self::AnothersRepository,
            None if said.contains("unknown repository extension") => Self::UnknownExtension,
            _ if git.is_file() => Self::BrokenPointer(git),
            _ => Self::Other,
        }
    }
}

/// Returns the error for a place at which git fails with these words.
pub(super) fn unopened(start: &Path, said: &str) -> Error {
    let place = ShownPath(start);
    let words = || said.split_whitespace().collect::<Vec<_>>().join(" ").trim_start_matches("fatal: ").to_owned();
    match Obstacle::find(start, said) {
        Obstacle::OutsideWorktree => Error::refused(
            format!("`{place}` is in a git repository, but not in a worktree of it"),
            Remedy::EnterWorktree,
        ),
        Obstacle::NoRepository => {
            Error::refused(format!("`{place}` is not in a git repository"), Remedy::EnterRepository)
        }
        Obstacle::AnothersRepository => Error::refused(
            format!("`{place}` is in a repository that belongs to somebody else, and git does not trust it"),
            Remedy::TrustOwner,
        ),
        Obstacle::UnknownExtension => Error::refused(words(), Remedy::UpdateGit),
        Obstacle::BrokenPointer(git) => Error::refused(
            format!("`{}` points to a repository that is not there: {}", ShownPath(&git), words()),
            Remedy::RepairMovedMain,
        ),
        Obstacle::Other => Error::refused(words(), Remedy::EnterRepository),
    }
}
