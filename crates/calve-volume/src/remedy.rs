//! Remedies for errors, in the words of the `calve` program, the library's caller.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use calve_core::internal::ShownPath;
use strum::IntoStaticStr;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Remedy {
    #[error("use at most 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit")]
    CorrectName,
    #[error("choose another name, or mount that one: calve volume attach NAME")]
    ChooseAnotherName,
    #[error("`calve volume list` shows the volumes")]
    ListVolumes,
    #[error("name a larger size, as in `--size 40G`")]
    NameLargerSize,
    #[error("free some space there, or name a smaller size with `--size`")]
    FreeSpaceOrNameSmallerSize,
    #[error(
        "on btrfs and ZFS, clone without a volume; else keep it on ext4 or XFS (set CALVE_HOME), or pass `--sparse`: a full disk then makes it read-only"
    )]
    MakeSparse,
    #[error("install it; most distributions have it in the package {}", .0.package())]
    InstallProgram(Program),
    #[error("as root, load the module: `modprobe {}`; a container has the kernel and the devices of its host", .0.module())]
    UseAnotherKernel(KernelFeature),
    #[error("it has to be an empty directory of its own: make or empty it, or create a volume with `--at DIR`")]
    ChooseEmptyMountPoint,
    #[error("`calve volume doctor {0}` shows all that is wrong with it")]
    AskDoctor(String),
    #[error("detach it first: calve volume detach {0}; `losetup -l` shows a loop device that Calve did not make")]
    Detach(String),
    #[error(
        "leave its directories and end those processes (`calve down` or `calve db stop NAME` ends a server), then try again"
    )]
    EndProcesses,
    #[error("unmount it first: umount {}", ShownPath(OsStr::from_bytes(&quoted(.0.as_os_str().as_bytes()))))]
    Unmount(PathBuf),
    #[error("move that elsewhere first; only what was made with the volume is deleted")]
    MoveAway,
    #[error(
        "have its owner detach it for a moment, or let everybody search its directories: `chmod o+x`; `losetup -l` shows where they are"
    )]
    WaitForDetaching,
    #[error(
        "have its owner run this, without `sudo`: it asks before it runs `mount` as root; or set CALVE_HOME to a directory of your own"
    )]
    RunAsOwner,
    #[error("have those commands run as root (`--print` prints them for a shell), then run this one again")]
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

impl Remedy {
    /// Returns the stable name, for programs.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

pub(crate) fn quoted(word: &[u8]) -> Vec<u8> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+,:@%=".contains(byte);
    if !word.is_empty() && word.iter().all(is_plain) {
        return word.to_vec();
    }
    let escaped = word.split(|&byte| byte == b'\'').collect::<Vec<_>>().join(&br"'\''"[..]);
    [b"'", &*escaped, b"'"].concat()
}
