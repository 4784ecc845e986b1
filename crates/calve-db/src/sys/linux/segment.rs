//! System V shared memory (shmget(2)), which outlives the processes that used it.

use std::ffi::c_long;
use std::io;
use std::path::Path;

use rustix::process::geteuid;

use super::isolate::SHARED_MEMORY;
use crate::sys::{SEGMENT_HEAD, Segment};

/// Lists the segments of this namespace (proc_sysvipc(5)).
pub(crate) fn segments() -> Vec<Segment> {
    let list = fs_err::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    list.lines().skip(1).filter_map(parse).collect()
}

/// Parses a line of the list: key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime.
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
        made: words.get(13)?.parse().ok()?,
    })
}

/// Makes the kernel remove a segment with its last user. A segment of that number by another process stays.
pub(crate) fn remove_segment(segment: &Segment) {
    let _ = as_owner(segment, || {
        if size_if_same(segment).is_some() {
            // SAFETY: IPC_RMID takes no structure.
            unsafe { libc::shmctl(segment.id, libc::IPC_RMID, std::ptr::null_mut()) };
        }
    });
}

pub(crate) fn read_segment(segment: &Segment) -> Option<[u8; SEGMENT_HEAD]> {
    as_owner(segment, || head(segment)).flatten()
}

/// Removes POSIX shared memory of a segment's owner (shm_unlink(3)).
pub(crate) fn remove_shared(segment: &Segment, name: &str) {
    let _ = as_owner(segment, || rustix::fs::unlink(Path::new(SHARED_MEMORY).join(name)));
}

/// Runs `work` as the segment's owner if this process is root. So root can do only what the owner may, and root without
/// CAP_SYS_ADMIN, as in a container, can do that at all (shmctl(2), EPERM).
fn as_owner<T>(segment: &Segment, work: impl FnOnce() -> T) -> Option<T> {
    let own = geteuid();
    if !own.is_root() {
        return Some(work());
    }
    set_thread_user(segment.owner).ok()?;
    let done = work();
    let _ = set_thread_user(own.as_raw());
    Some(done)
}

/// Changes the effective user of this thread only.
fn set_thread_user(user: u32) -> io::Result<()> {
    let unchanged: c_long = -1;
    // SAFETY: the system call takes numbers. Unlike the C library's function it leaves other threads alone.
    let changed = unsafe { libc::syscall(libc::SYS_setresuid, unchanged, c_long::from(user), unchanged) };
    if changed < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns the segment's size. `None`: the number is another segment's by now.
fn size_if_same(segment: &Segment) -> Option<usize> {
    // SAFETY: `shmid_ds` is plain numbers, for which zero bytes are valid.
    let mut found: libc::shmid_ds = unsafe { std::mem::zeroed() };
    // SAFETY: IPC_STAT fills the structure that is given, which lives until the call returns.
    let known = unsafe { libc::shmctl(segment.id, libc::IPC_STAT, &raw mut found) } == 0;
    let creator = u32::try_from(found.shm_cpid);
    let users = (found.shm_perm.uid, found.shm_perm.cuid);
    let is_same = known && creator == Ok(segment.creator) && users == (segment.owner, segment.maker);
    is_same.then_some(found.shm_segsz)
}

fn head(segment: &Segment) -> Option<[u8; SEGMENT_HEAD]> {
    size_if_same(segment).filter(|size| *size >= SEGMENT_HEAD)?;
    // SAFETY: the kernel chooses where to map it, so that it covers nothing that is there.
    let at = unsafe { libc::shmat(segment.id, std::ptr::null(), libc::SHM_RDONLY) };
    if at.addr() == usize::MAX {
        return None;
    }
    // SAFETY: a segment has no fewer bytes for as long as it is attached, and any bytes are valid. Others may write to it, so it is
    // read once, and the mapping is used no further.
    let head = unsafe { at.cast::<[u8; SEGMENT_HEAD]>().read_volatile() };
    // SAFETY: it is what shmat returned, and nothing refers to it any more.
    unsafe { libc::shmdt(at) };
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_list_is_read() {
        let line = "  14942230          7   600                    56   4711   4712      6   101   104   102   105 1 2 3 4096 0";
        let segment = Segment { id: 7, key: 14_942_230, creator: 4711, attached: 6, owner: 101, maker: 102, made: 3 };
        assert_eq!(parse(line), Some(segment));
        assert_eq!(parse("key shmid"), None);
    }
}
