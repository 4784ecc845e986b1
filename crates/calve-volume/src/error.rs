use std::io;
use std::path::{Path, PathBuf};

use calve_core::internal::ShownPath;

use crate::problem::Problem;
use crate::remedy::{KernelFeature, Program, Remedy};

pub(crate) type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {operation} `{}`: {source}", ShownPath(.path))]
    Io { operation: &'static str, path: PathBuf, source: io::Error },
    #[error("`{}` cannot be the name of a volume", ShownPath(.0))]
    BadName(String),
    #[error("the volume `{0}` already exists")]
    Taken(String),
    #[error("there is no volume `{}`", ShownPath(.0))]
    NotFound(String),
    #[error("a volume of {bytes} bytes is too small: btrfs needs {least}")]
    TooSmall { bytes: u64, least: u64 },
    #[error("the volume already has {now} bytes, more than {wanted}")]
    NotLarger { now: u64, wanted: u64 },
    #[error("`{}` has {free} bytes free, but the volume may need {demand}, and a tenth has to stay free", ShownPath(.path))]
    HostFull { path: PathBuf, free: u64, demand: u64 },
    #[error("the file system of `{}` cannot reserve space for a file", ShownPath(.0))]
    NoPreallocation(PathBuf),
    #[error("the program `{0}` is not installed")]
    NoProgram(Program),
    #[error("this kernel offers no {0}")]
    Kernel(KernelFeature),
    #[error("cannot mount on `{}`: {why}", ShownPath(.path))]
    MountPoint { path: PathBuf, why: &'static str },
    /// Something unexpected is in the way.
    #[error("the volume `{name}`: {problem}")]
    Unusable { name: String, problem: Problem },
    /// It is mounted, or a loop device has its image.
    #[error("the volume `{0}` is attached")]
    Attached(String),
    #[error("the volume `{name}` is in use{}", by(.processes))]
    Busy { name: String, processes: Vec<String> },
    #[error("the volume `{name}` is in use: `{}` is mounted below it", ShownPath(.path))]
    MountBelow { name: String, path: PathBuf },
    /// Another user could choose the image that is mounted as root, and its mount point.
    #[error("`{}` belongs to another user, or others can write to it", ShownPath(.0))]
    NotOwn(PathBuf),
    /// Its directory has entries that are not Calve's.
    #[error("`{}` was not made with the volume", ShownPath(.0))]
    Foreign(PathBuf),
    /// mkfs.btrfs formats nothing unless it can see the file of every loop device that is mounted.
    #[error("mkfs.btrfs has no access to an image that another user mounted")]
    HiddenImage,
    #[error("`{program}` refused to run a command as root: {said}")]
    NotPermitted { program: Program, said: String },
    #[error("`{command}` failed: {said}")]
    Failed { command: String, said: String },
}

pub(crate) trait IoContext<T> {
    fn io(self, operation: &'static str, path: impl AsRef<Path>) -> Result<T>;
}

impl<T, E: Into<io::Error>> IoContext<T> for std::result::Result<T, E> {
    fn io(self, operation: &'static str, path: impl AsRef<Path>) -> Result<T> {
        self.map_err(|error| Error::Io { operation, path: path.as_ref().into(), source: error.into() })
    }
}

fn by(processes: &[String]) -> String {
    if processes.is_empty() { String::new() } else { format!(" by {}", processes.join(", ")) }
}

impl Error {
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::BadName(_) => Remedy::CorrectName,
            Self::Taken(_) => Remedy::ChooseAnotherName,
            Self::NotFound(_) => Remedy::ListVolumes,
            Self::TooSmall { .. } | Self::NotLarger { .. } => Remedy::NameLargerSize,
            Self::HostFull { .. } => Remedy::FreeSpaceOrNameSmallerSize,
            Self::NoPreallocation(_) => Remedy::MakeSparse,
            Self::NoProgram(program) => Remedy::InstallProgram(*program),
            Self::Kernel(feature) => Remedy::UseAnotherKernel(*feature),
            Self::MountPoint { .. } => Remedy::ChooseEmptyMountPoint,
            Self::Unusable { name, .. } => Remedy::AskDoctor(name.clone()),
            Self::Attached(name) => Remedy::Detach(name.clone()),
            Self::Busy { .. } => Remedy::EndProcesses,
            Self::MountBelow { path, .. } => Remedy::Unmount(path.clone()),
            Self::NotOwn(_) => Remedy::RunAsOwner,
            Self::Foreign(_) => Remedy::MoveAway,
            Self::HiddenImage => Remedy::WaitForDetaching,
            Self::NotPermitted { .. } => Remedy::RunAsRoot,
            Self::Failed { .. } => Remedy::ReadKernelLog,
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Remedy::FreeSpaceOrNameSmallerSize
            }
            Self::Io { .. } => Remedy::CheckSystem,
        }
    }

    /// Returns whether the command line was wrong.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::BadName(_))
    }

    /// Returns whether the machine lacks a part that volumes need, or the user may not be root.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::NoProgram(_) | Self::Kernel(_) | Self::NotPermitted { .. })
    }
}
