//! Calve's own directories and files: what another user could have made or changed is not trusted.

/// Returns whether only this user, or root, can have made and changed an entry with this owner and mode.
pub fn is_own(owner: u32, mode: impl Into<u32>) -> bool {
    owner == rustix::process::geteuid().as_raw() && mode.into() & 0o022 == 0
}
