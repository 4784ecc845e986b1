//! Which machine and which boot this is: names of staged trees carry both.

use std::sync::OnceLock;

use super::beginning_of;
use crate::sys::word;

/// Returns a short word for this boot of the kernel, the same for all containers on it.
pub(crate) fn boot_identity() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| word(beginning_of("/proc/sys/kernel/random/boot_id").unwrap_or_default().as_bytes()))
}

/// Returns a short word for this machine, the same after a restart.
pub(crate) fn machine_identity() -> &'static str {
    static MACHINE: OnceLock<String> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let id = beginning_of("/etc/machine-id").filter(|id| id.len() >= 32);
        word(id.as_ref().map_or(rustix::system::uname().nodename().to_bytes(), |id| id.as_bytes()))
    })
}
