//! System V shared memory (shmget(2)), which outlives the processes that used it.

use std::ffi::c_int;

use crate::sys::Segment;

/// The segment that a process made with one of these keys, by the kernel's own list (proc_sysvipc(5)).
pub(crate) fn find_segment(creator: u32, keys: &[i32]) -> Option<Segment> {
    let list = fs_err::read_to_string("/proc/sysvipc/shm").ok()?;
    list.lines().skip(1).find_map(|line| {
        // key shmid perms size cpid
        let mut words = line.split_ascii_whitespace();
        let key: i32 = words.next()?.parse().ok()?;
        let id = words.next()?.parse().ok()?;
        let made_by: u32 = words.nth(2)?.parse().ok()?;
        (made_by == creator && keys.contains(&key)).then_some(Segment { id, creator })
    })
}

/// Has the kernel remove a segment when nobody is attached to it any more. Those who are go on to use it. One of that number
/// that another process made stays.
pub(crate) fn remove_segment(segment: Segment) {
    let id: c_int = segment.id;
    // SAFETY: `shmid_ds` is plain numbers, for which zero bytes are valid.
    let mut found: libc::shmid_ds = unsafe { std::mem::zeroed() };
    // SAFETY: IPC_STAT fills the structure that is given, which lives until the call returns.
    let known = unsafe { libc::shmctl(id, libc::IPC_STAT, &raw mut found) } == 0;
    if known && u32::try_from(found.shm_cpid) == Ok(segment.creator) {
        // SAFETY: IPC_RMID takes no structure.
        unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}
