//! System V shared memory (shmget(2)), which outlives the processes that used it.

use std::ffi::{c_int, c_long};
use std::io;

use rustix::process::geteuid;

use crate::sys::Segment;

/// All segments of this namespace, by the kernel's own list (proc_sysvipc(5)).
pub(crate) fn segments() -> Vec<Segment> {
    let list = fs_err::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    list.lines().skip(1).filter_map(parse).collect()
}

/// key shmid perms size cpid lpid nattch uid gid cuid
fn parse(line: &str) -> Option<Segment> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let number = |at: usize| words.get(at)?.parse::<u32>().ok();
    Some(Segment {
        id: words.get(1)?.parse().ok()?,
        key: words.first()?.parse().ok()?,
        creator: number(4)?,
        attached: words.get(6)?.parse().ok()?,
        owner: number(7)?,
        maker: number(9)?,
    })
}

/// Has the kernel remove a segment when nobody is attached to it any more. Those who are go on to use it. One of that number
/// that somebody else made meanwhile stays.
///
/// Root does it as the segment's owner: so it can only be one that the owner may remove himself; and a root who is kept from
/// administering the system, as in a container, may do it only so (shmctl(2), EPERM).
pub(crate) fn remove_segment(segment: &Segment) {
    let own = geteuid();
    if !own.is_root() {
        return remove(segment);
    }
    if set_thread_user(segment.owner).is_ok() {
        remove(segment);
        let _ = set_thread_user(own.as_raw());
    }
}

/// Changes the effective user of this thread, and of no other one.
fn set_thread_user(user: u32) -> io::Result<()> {
    let unchanged: c_long = -1;
    // SAFETY: the system call takes numbers. Unlike the C library's function it leaves other threads alone.
    let changed = unsafe { libc::syscall(libc::SYS_setresuid, unchanged, c_long::from(user), unchanged) };
    if changed < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn remove(segment: &Segment) {
    let id: c_int = segment.id;
    // SAFETY: `shmid_ds` is plain numbers, for which zero bytes are valid.
    let mut found: libc::shmid_ds = unsafe { std::mem::zeroed() };
    // SAFETY: IPC_STAT fills the structure that is given, which lives until the call returns.
    let known = unsafe { libc::shmctl(id, libc::IPC_STAT, &raw mut found) } == 0;
    let creator = u32::try_from(found.shm_cpid);
    let users = (found.shm_perm.uid, found.shm_perm.cuid);
    if known && creator == Ok(segment.creator) && users == (segment.owner, segment.maker) {
        // SAFETY: IPC_RMID takes no structure.
        unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_list_is_read() {
        let line = "  14942230          7   600                    56   4711   4712      6   101   104   102   105 1 2 3 4096 0";
        let segment = Segment { id: 7, key: 14_942_230, creator: 4711, attached: 6, owner: 101, maker: 102 };
        assert_eq!(parse(line), Some(segment));
        assert_eq!(parse("key shmid"), None);
    }
}
