//! Remedies against errors, as values without words.

use std::fmt::{self, Display, Formatter};

use strum::IntoStaticStr;

/// The user's next step.
#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum Remedy {
    /// Letters, digits, `-`, `_` and `.`, at most 64, the first one a letter or digit.
    CorrectName,
    /// Another name, or the volume that is there.
    ChooseAnotherName,
    ListVolumes,
    NameLargerSize,
    /// Less for the volume, or more free on the host.
    FreeSpaceOrNameSmallerSize,
    /// Another file system for the image, or a sparse one.
    MakeSparse,
    InstallProgram(Program),
    /// A kernel with this feature; loading its module may be enough.
    UseAnotherKernel(KernelFeature),
    /// An empty directory of its own.
    ChooseEmptyMountPoint,
    /// A command that finds out more.
    AskDoctor(String),
    /// The volume has to be detached first.
    Detach(String),
    /// Those who use it have to end.
    EndProcesses,
    /// Move entries that are not Calve's elsewhere.
    MoveAway,
    /// The volume of somebody else has to be detached for a moment, or its directory may be searched by all.
    WaitForDetaching,
    /// The volume's owner has to run the command.
    RunAsOwner,
    /// Somebody else has to run the commands as root.
    RunAsRoot,
    /// The kernel's log has the reason.
    ReadKernelLog,
    CheckSystem,
}

/// A part of the kernel that volumes need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelFeature {
    Btrfs,
    LoopDevices,
}

impl Display for KernelFeature {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Btrfs => "btrfs",
            Self::LoopDevices => "loop devices",
        })
    }
}

/// A program of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Program {
    Btrfs,
    Env,
    Install,
    Losetup,
    #[strum(serialize = "mkfs.btrfs")]
    Mkfs,
    Mount,
    Pkexec,
    Sudo,
    Umount,
}

impl Remedy {
    /// Returns the stable name, for programs.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}
