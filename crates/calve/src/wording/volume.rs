use calve_volume::{Problem, Remedy};

use super::{reworded, word};

pub(crate) fn hint(remedy: &Remedy) -> String {
    match remedy {
        Remedy::ChooseAnotherName => format!("{remedy}: calve volume attach NAME"),
        Remedy::ListVolumes => "`calve volume list` shows the volumes".into(),
        Remedy::MakeSparse => reworded(remedy, "make it sparse", "pass `--sparse`"),
        Remedy::ChooseEmptyMountPoint => reworded(remedy, "elsewhere", "with `--at DIR`"),
        Remedy::AskDoctor(name) => format!("`calve volume doctor {name}` shows all that is wrong with it"),
        Remedy::Detach(name) => reworded(remedy, ";", &format!(": calve volume detach {name};")),
        Remedy::EndProcesses => reworded(remedy, ",", " (`calve down` or `calve db stop NAME` ends a server),"),
        Remedy::RunAsRoot => reworded(remedy, ",", " (`--print` prints them for a shell),"),
        other => other.to_string(),
    }
}

pub(crate) fn advice(problem: &Problem, name: &str) -> String {
    match problem {
        Problem::RecordDamaged | Problem::ImageMissing | Problem::NoFileSystem => {
            format!("put it back from a backup, or delete the volume: calve volume remove {name}")
        }
        Problem::ImageNotAFile | Problem::AnotherFileSystem => {
            format!("put the volume's own image back, or delete the volume: calve volume remove {name}")
        }
        Problem::Truncated { needed, .. } => {
            format!(
                "put the image back from a backup; to save what is left, make it {needed} bytes long (truncate -s) and use `btrfs restore`"
            )
        }
        Problem::MountPoint { path, .. } => {
            format!("make {} an empty directory, then: calve volume attach {name}", word(path))
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
        _ => format!("repair it with: calve volume attach {name}"),
    }
}
