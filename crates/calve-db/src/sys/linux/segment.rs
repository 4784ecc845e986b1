//! System V shared memory (shmget(2)), which outlives the processes that used it.

use std::ffi::c_int;

/// Has the kernel remove a segment when nobody is attached to it any more. Those who are go on to use it.
pub(crate) fn forget_segment(id: i32) {
    let id: c_int = id;
    // SAFETY: IPC_RMID takes no structure.
    unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
}

/// Removes a segment, if it is one that nobody is attached to.
pub(crate) fn remove_segment(id: i32) {
    let id: c_int = id;
    // SAFETY: `shmid_ds` is plain numbers, for which zero bytes are valid.
    let mut found: libc::shmid_ds = unsafe { std::mem::zeroed() };
    // SAFETY: IPC_STAT fills the structure that is given, which lives until the call returns.
    let known = unsafe { libc::shmctl(id, libc::IPC_STAT, &raw mut found) } == 0;
    if known && found.shm_nattch == 0 {
        // SAFETY: IPC_RMID takes no structure.
        unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}
