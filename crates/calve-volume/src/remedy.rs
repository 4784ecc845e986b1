//! Remedies for errors. The program has its own words for those that one of its commands or options offers.

use std::path::PathBuf;

use calve_core::internal::word;
use strum::IntoStaticStr;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Remedy {
    #[error("use at most 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit")]
    CorrectName,
    #[error("choose another name, or mount that one")]
    ChooseAnotherName,
    #[error("check the name of the volume")]
    ListVolumes,
    #[error("name a larger size")]
    NameLargerSize,
    #[error("free some space there, or name a smaller size")]
    FreeSpaceOrNameSmallerSize,
    #[error(
        "on btrfs and ZFS, clone without a volume; else keep it on ext4 or XFS (set CALVE_HOME), or make it sparse: a full disk then makes it read-only"
    )]
    MakeSparse,
    #[error("install it; most distributions have it in the package {}", .0.package())]
    InstallProgram(Program),
    #[error("as root, load the module: `modprobe {}`; a container has the kernel and the devices of its host", .0.module())]
    UseAnotherKernel(KernelFeature),
    #[error("it has to be an empty directory of its own: make or empty it, or create a volume elsewhere")]
    ChooseEmptyMountPoint,
    #[error("look for all that is wrong with it")]
    AskDoctor(String),
    #[error("detach it first; `losetup -l` shows a loop device that Calve did not make")]
    Detach(String),
    #[error("leave its directories and end those processes, then try again")]
    EndProcesses,
    #[error("unmount it first: umount {}", word(.0))]
    Unmount(PathBuf),
    #[error("move that elsewhere first; only what was made with the volume is deleted")]
    MoveAway,
    #[error(
        "have its owner unmount it for a moment, or let everybody search its directories: `chmod o+x`; `losetup -l` shows where it is"
    )]
    WaitForDetaching,
    #[error(
        "have its owner run this, without `sudo`: it asks before it runs `mount` as root; or set CALVE_HOME to a directory of your own"
    )]
    RunAsOwner,
    #[error("have those commands run as root, then run this one again")]
    RunAsRoot,
    #[error("the kernel's log may have the reason (dmesg)")]
    ReadKernelLog,
    #[error("check the owner and mode of the path above, and the limits of your session (ulimit -a)")]
    CheckSystem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
pub enum KernelFeature {
    #[strum(serialize = "btrfs")]
    Btrfs,
    #[strum(serialize = "loop devices")]
    LoopDevices,
}

impl KernelFeature {
    fn module(self) -> &'static str {
        match self {
            Self::Btrfs => "btrfs",
            Self::LoopDevices => "loop",
        }
    }
}

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

impl Program {
    fn package(self) -> &'static str {
        match self {
            Self::Btrfs | Self::Mkfs => "btrfs-progs",
            Self::Env | Self::Install => "coreutils",
            Self::Losetup | Self::Mount | Self::Umount => "util-linux",
            Self::Pkexec => "polkit",
            Self::Sudo => "sudo",
        }
    }
}
