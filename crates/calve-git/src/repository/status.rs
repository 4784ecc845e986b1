//! The status of a worktree: whether it is where its repository lists it.

use std::path::{Path, PathBuf};

use calve_core::internal::ShownPath;
use strum::{Display, IntoStaticStr, VariantNames};

use crate::error::Error;
use crate::remedy::Remedy;

#[derive(Debug, Clone, PartialEq, Eq, Default, Display, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum WorktreeState {
    /// Both sides name each other. Also the main worktree.
    #[default]
    Intact,
    Gone,
    /// Its file system is not mounted at `mount_point`, as `record` says.
    Unmounted {
        mount_point: PathBuf,
        record: PathBuf,
    },
    /// Moved here without git's knowledge, as the user's place or Calve's note tells.
    Moved(PathBuf),
    /// Its `.git` file names its entry at a place that does not exist: the repository was moved.
    Adrift,
    /// A worktree of the repository at this path, from which this one was copied.
    Foreign(PathBuf),
    /// A link to the worktree, which was moved to this place: git still finds it.
    Linked(PathBuf),
    /// Something else: another repository, a directory without `.git`, a file, a link to anything else.
    Replaced(&'static str),
    /// Two entries name this place.
    Duplicate,
    Unseen(String),
}

impl WorktreeState {
    pub fn problem(&self, path: &Path) -> Option<Error> {
        (*self != WorktreeState::Intact).then(|| self.refusal(path))
    }

    pub(crate) fn refusal(&self, path: &Path) -> Error {
        let path = ShownPath(path);
        let (reason, remedy) = match self {
            Self::Intact | Self::Gone => (format!("the worktree `{path}` is gone"), Remedy::Prune),
            Self::Unmounted { mount_point, record } => (
                format!("the worktree `{path}` is on a file system that is not mounted"),
                Remedy::MountPlace { mount_point: mount_point.clone(), record: record.clone() },
            ),
            Self::Moved(here) => (
                format!("the worktree `{path}` was moved to `{}`, and git does not know it", ShownPath(here)),
                Remedy::RepairWorktree,
            ),
            Self::Adrift => (
                format!("the `.git` file of `{path}` names a place in a repository that is not there"),
                Remedy::RepairFromMain,
            ),
            Self::Foreign(other) => {
                (format!("`{path}` is a worktree of another repository, `{}`", ShownPath(other)), Remedy::PruneOrRepair)
            }
            Self::Linked(real) => (
                format!("`{path}` is a link to the worktree, which is at `{}`", ShownPath(real)),
                Remedy::RepairLinkedPath,
            ),
            Self::Replaced(what) => (format!("`{path}` is {what}, no longer the worktree"), Remedy::PruneOrRepair),
            Self::Duplicate => (format!("two worktrees are registered at `{path}`"), Remedy::PruneDuplicate),
            Self::Unseen(why) => (format!("cannot tell whether `{path}` is the worktree: {why}"), Remedy::AllowReading),
        };
        Error::refused(reason, remedy)
    }
}
