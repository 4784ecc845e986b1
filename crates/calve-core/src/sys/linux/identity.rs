//! Which machine and which boot this is: names of staged trees carry both.

use std::sync::OnceLock;

use rustix::fs::{CWD, Mode, OFlags};

use crate::sys::word;

/// Returns a short word for this boot of the kernel, the same for all containers on it.
pub(crate) fn boot_identity() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| word(&read("/proc/sys/kernel/random/boot_id").unwrap_or_default()))
}

/// Returns a short word for this machine, the same after a restart.
pub(crate) fn machine_identity() -> &'static str {
    static MACHINE: OnceLock<String> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let id = read("/etc/machine-id").filter(|id| id.len() >= 32);
        word(&id.unwrap_or_else(|| rustix::system::uname().nodename().to_bytes().to_vec()))
    })
}

fn read(path: &str) -> Option<Vec<u8>> {
    let fd = crate::sys::open_at(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut buffer = [0u8; 64];
    let length = rustix::io::read(&fd, &mut buffer).ok()?;
    Some(buffer[..length].trim_ascii_end().to_vec())
}
