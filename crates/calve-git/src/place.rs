//! The place of a new worktree, its limits, and the way there.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use calve_core::internal::ShownPath;
use rustix::fs::{AtFlags, CWD, Mode, mkdirat, statat};
use rustix::io::Errno;

use crate::directory;
use crate::error::{Error, Result, failed};
use crate::remedy::Remedy;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Named by the user, or the usual one. Links on the way are followed.
    Anywhere(PathBuf),
    /// Named by a repository. No link leads there, and it is in no other repository.
    Below { root: PathBuf, below: PathBuf },
}

impl Place {
    pub(crate) fn path(&self) -> PathBuf {
        match self {
            Place::Anywhere(path) => path.clone(),
            Place::Below { root, below } => root.join(below),
        }
    }

    /// Refuses a repository's place that is behind a link or in another repository. Makes nothing.
    pub(crate) fn check(&self) -> Result<()> {
        let Place::Below { root, below } = self else { return Ok(()) };
        open_below(root, below, false).map(|_| ())
    }

    /// Makes the parent directory. Returns the place without links, and the parent if that must stay the same one
    /// whatever happens to its path.
    pub(crate) fn make_parent(&self) -> Result<(PathBuf, Option<OwnedFd>)> {
        match self {
            Place::Anywhere(path) => {
                fs_err::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
                Ok((absolute(path)?, None))
            }
            Place::Below { root, below } => {
                let root = fs_err::canonicalize(root)?;
                check_name(&root.join(below))?;
                let directory = open_below(&root, below, true)?;
                Ok((root.join(below), directory))
            }
        }
    }
}

/// Opens the parent directory of a repository's place, made if `makes`. Refuses one behind a link, or in another repository.
fn open_below(root: &Path, below: &Path, makes: bool) -> Result<Option<OwnedFd>> {
    let refuse = |path: &Path, fault: &str| {
        let reason = format!(
            "the repository's configuration puts the worktree at `{}`, but `{}` {fault}",
            ShownPath(&root.join(below)),
            ShownPath(path)
        );
        Error::refused(reason, Remedy::NamePlaceInLocalConfig)
    };
    let above = below.parent().unwrap_or(Path::new(""));
    let mut directory = open_directory(root)?;
    let mut path = root.to_path_buf();
    for name in above {
        path.push(name);
        directory = match step_down(directory, &path, makes)? {
            StepDown::Into(directory) => directory,
            StepDown::Missing => return Ok(None),
            StepDown::Blocked => return Err(refuse(&path, "is a link, or not a directory")),
        };
        // A bare repository has a `HEAD`.
        for name in [".git", "HEAD"] {
            if statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                return Err(refuse(&path, "is another repository"));
            }
        }
    }
    Ok(Some(directory))
}

pub(crate) enum StepDown {
    Into(OwnedFd),
    Missing,
    /// By a link, or something else that is no directory.
    Blocked,
}

const OPEN: &str = "failed to open the directory";

/// Opens the last name of `path` in `directory`, made if `makes`, through no link. The rest of `path` is for messages.
pub(crate) fn step_down(directory: OwnedFd, path: &Path, makes: bool) -> Result<StepDown> {
    let Some(name) = path.file_name() else { return Ok(StepDown::Into(directory)) };
    if makes {
        match mkdirat(&directory, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed(OPEN, path, errno).into()),
        }
    }
    match directory::open_directory(&directory, name) {
        Ok(opened) => Ok(StepDown::Into(opened.into())),
        Err(Errno::NOENT) => Ok(StepDown::Missing),
        Err(Errno::LOOP | Errno::NOTDIR) => Ok(StepDown::Blocked),
        Err(errno) => Err(failed(OPEN, path, errno).into()),
    }
}

pub(crate) fn open_directory(path: &Path) -> Result<OwnedFd> {
    Ok(directory::open_directory(CWD, path).map_err(|errno| failed(OPEN, path, errno))?.into())
}

/// Returns the absolute form of a place whose parent exists: git compares worktrees by their paths.
fn absolute(path: &Path) -> Result<PathBuf> {
    let name = check_name(path)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(fs_err::canonicalize(parent)?.join(name))
}

fn check_name(path: &Path) -> Result<&OsStr> {
    // git stores a path on one line.
    let is_one_line = |name: &&OsStr| !name.as_encoded_bytes().iter().any(|byte| matches!(byte, b'\n' | b'\r'));
    path.file_name().filter(is_one_line).ok_or_else(|| {
        let reason = format!("`{}` is not a name that a worktree can have", ShownPath(path));
        Error::refused(reason, Remedy::GiveNewPath)
    })
}
