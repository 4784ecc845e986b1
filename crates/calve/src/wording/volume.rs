//! Words for calve-volume: what to type or change next.

use calve_volume::{KernelFeature, Program, Remedy};

/// Says what to do next, in one sentence without a full stop.
pub(crate) fn hint(remedy: &Remedy) -> String {
    let fixed = match remedy {
        Remedy::CorrectName => {
            "a name has letters, digits, dots, dashes and underscores, at most 64, and begins with a letter or digit"
        }
        Remedy::ChooseAnotherName => "choose another name, or mount that one: calve volume attach NAME",
        Remedy::ListVolumes => "`calve volume list` names those that there are",
        Remedy::NameLargerSize => "name a larger size, as in `--size 40G`",
        Remedy::FreeSpaceOrNameSmallerSize => "free some space there, or name a smaller size with `--size`",
        Remedy::MakeSparse => {
            "on btrfs and ZFS, clone without a volume; else keep it on ext4 or XFS (set CALVE_HOME), or pass `--sparse`: a full disk then makes it read-only"
        }
        Remedy::InstallProgram(program) => {
            let package = match program {
                Program::Btrfs | Program::Mkfs => "btrfs-progs",
                _ => "util-linux",
            };
            return format!("install it; most distributions have it in the package {package}");
        }
        Remedy::UseAnotherKernel(KernelFeature::LoopDevices) => {
            "as root, load the module: `modprobe loop`; a container has the kernel and the devices of its host"
        }
        Remedy::UseAnotherKernel(KernelFeature::Btrfs) => {
            "as root, load the module: `modprobe btrfs`; a container has the kernel and the devices of its host"
        }
        Remedy::ChooseEmptyMountPoint => "choose an empty directory of its own, and create the volume with `--at DIR`",
        Remedy::AskDoctor(name) => return format!("`calve volume doctor {name}` shows all that is wrong with it"),
        Remedy::Detach(name) => {
            return format!(
                "detach it first: calve volume detach {name}; `losetup -l` shows a loop device that somebody else has made"
            );
        }
        Remedy::EndProcesses => "leave its directories and end those processes, then try again",
        Remedy::MoveAway => "move that elsewhere first; only what was made with the volume is deleted",
        Remedy::WaitForDetaching => {
            "have its owner detach it for a moment, or let everybody search its directories: `chmod o+x`; `losetup -l` shows where they are"
        }
        Remedy::RunAsOwner => {
            "have its owner run this, without `sudo`: it asks before it runs `mount` as root; or set CALVE_HOME to a directory of your own"
        }
        Remedy::RunAsRoot => {
            "have those commands run as root (`--print` prints them for a shell), then run this one again"
        }
        Remedy::ReadKernelLog => "the kernel's log may have the reason (dmesg)",
        Remedy::CheckSystem => "check the owner and mode of what is named, and the limits of your session (ulimit -a)",
        _ => "see `calve volume --help`",
    };
    fixed.to_owned()
}

/// Says what helps against a problem that is not repaired.
pub(crate) fn advice(problem: &calve_volume::Problem, name: &str) -> String {
    use calve_volume::Problem;
    match problem {
        Problem::RecordDamaged | Problem::ImageMissing | Problem::NoFileSystem => {
            format!("put it back from a backup, or give the volume up: calve volume remove {name}")
        }
        Problem::ImageNotAFile | Problem::AnotherFileSystem => {
            format!("put the volume's own image back, or give the volume up: calve volume remove {name}")
        }
        Problem::Truncated { needed, .. } => {
            format!(
                "put the image back from a backup; to save what is left, make it {needed} bytes long (truncate -s) and use `btrfs restore`"
            )
        }
        Problem::AttachedElsewhere { .. } | Problem::AttachedTwice { .. } => {
            "unmount what is mounted from them and free them as root (losetup -d), until only calve's is left"
                .to_owned()
        }
        Problem::ReadOnly => {
            format!("free space on the host, then: calve volume detach {name} && calve volume attach {name}")
        }
        Problem::HostShort { .. } => "free space on the host before the volume needs it".to_owned(),
        Problem::DeviceErrors(_) => "look into the kernel's log (dmesg), and save what is in the volume".to_owned(),
        _ => format!("it is put right by: calve volume attach {name}"),
    }
}
