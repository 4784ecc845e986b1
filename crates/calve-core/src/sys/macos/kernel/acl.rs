//! Access control lists (acl(3)), which macOS keeps outside the extended attributes that programs see.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, Result};

use super::{attributes, last_error, result};

const EXTENDED: c_int = 0x100;

unsafe extern "C" {
    // From <sys/acl.h>. `acl_t` is a pointer to a structure that only these functions know.
    fn acl_init(count: c_int) -> *mut c_void;
    fn acl_get_fd_np(fd: c_int, kind: c_int) -> *mut c_void;
    fn acl_set_fd_np(fd: c_int, acl: *mut c_void, kind: c_int) -> c_int;
    fn acl_size(acl: *mut c_void) -> isize;
    fn acl_copy_ext_native(buffer: *mut c_void, acl: *mut c_void, size: isize) -> isize;
    fn acl_copy_int_native(buffer: *const c_void) -> *mut c_void;
    fn acl_free(acl: *mut c_void) -> c_int;
}

struct Acl(NonNull<c_void>);

impl Acl {
    fn new(returned: *mut c_void) -> Result<Self> {
        NonNull::new(returned).map(Self).ok_or_else(last_error)
    }
}

impl Drop for Acl {
    fn drop(&mut self) {
        // SAFETY: one of the functions that make a list has made it, and nothing else frees it.
        unsafe { acl_free(self.0.as_ptr()) };
    }
}

/// `struct kauth_filesec` without entries.
const HEADER_BYTES: usize = 44;
const ENTRY_BYTES: usize = 24;
const COUNT_AT: usize = 36;

/// Returns an open file's access control list in the kernel's own form. `None` if it is missing or empty.
pub(crate) fn read_acl(fd: BorrowedFd<'_>) -> Result<Option<Vec<u8>>> {
    // SAFETY: two integers; the descriptor is open as long as `fd` lives.
    let acl = match Acl::new(unsafe { acl_get_fd_np(fd.as_raw_fd(), EXTENDED) }) {
        Ok(acl) => acl,
        Err(Errno::NOENT | Errno::NOTSUP | Errno::OPNOTSUPP) => return Ok(None),
        Err(error) => return Err(error),
    };
    // SAFETY: the list is alive.
    let size = unsafe { acl_size(acl.0.as_ptr()) };
    let length = usize::try_from(size).map_err(|_| last_error())?;
    if length <= HEADER_BYTES {
        return Ok(None);
    }
    // Words, because the structure written there consists of them.
    let mut words = vec![0u32; length.div_ceil(size_of::<u32>())];
    // SAFETY: the list is alive, and `words` is at least as large as is said.
    if unsafe { acl_copy_ext_native(words.as_mut_ptr().cast(), acl.0.as_ptr(), size) } != size {
        return Err(last_error());
    }
    Ok(Some(words.into_iter().flat_map(u32::to_ne_bytes).take(length).collect()))
}

pub(crate) fn write_acl(fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<()> {
    if !is_whole(bytes) {
        return Err(Errno::INVAL);
    }
    let words = bytes.as_chunks().0.iter().map(|word| u32::from_ne_bytes(*word));
    let words: Vec<u32> = words.collect();
    // SAFETY: `words` is aligned for the structure, and as long as its own header says (checked above), which is how much
    // the call reads.
    let acl = Acl::new(unsafe { acl_copy_int_native(words.as_ptr().cast()) })?;
    // SAFETY: the descriptor is open as long as `fd` lives, and the list is alive.
    result(unsafe { acl_set_fd_np(fd.as_raw_fd(), acl.0.as_ptr(), EXTENDED) })
}

/// Returns whether a list is as long as its number of entries requires.
fn is_whole(bytes: &[u8]) -> bool {
    let field = bytes.get(COUNT_AT..COUNT_AT + 4).and_then(|field| <[u8; 4]>::try_from(field).ok());
    let entries = field.map(|count| u64::from(u32::from_ne_bytes(count)));
    entries.map(|count| HEADER_BYTES as u64 + count * ENTRY_BYTES as u64) == Some(bytes.len() as u64)
}

/// Returns whether an entry of a directory has a list (getattrlistbulk(2)), without opening any. One call that clones a
/// directory above would lose it: that keeps only its root's list (reports).
pub(crate) fn has_acls_inside(directory: BorrowedFd<'_>) -> Result<bool> {
    let each = libc::ATTR_CMN_RETURNED_ATTRS | libc::ATTR_CMN_NAME | libc::ATTR_CMN_EXTENDED_SECURITY;
    let mut wanted = attributes(each, 0, 0);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // Opened anew: the position belongs to the open file.
    let directory = rustix::fs::openat(directory, c".", flags, Mode::empty())?;
    let mut answer = vec![0u8; 1 << 16];
    loop {
        // SAFETY: an open descriptor, a list of attributes that outlives the call, which only reads it, and a buffer of which the call
        // fills no more than its length.
        let count = unsafe {
            libc::getattrlistbulk(
                directory.as_raw_fd(),
                (&raw mut wanted).cast(),
                answer.as_mut_ptr().cast(),
                answer.len(),
                libc::FSOPT_NOFOLLOW.into(),
            )
        };
        match usize::try_from(count).map_err(|_| last_error()) {
            Ok(0) => return Ok(false),
            Ok(count) if any_acl(&answer, count).ok_or(Errno::IO)? => return Ok(true),
            Ok(_) => {}
            // Without the call there are no lists.
            Err(Errno::NOTSUP | Errno::OPNOTSUPP) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

/// Returns whether an entry has an access control list; `None` if the answer ends early. Each entry is its length, the
/// set of returned attributes (five words, these in the first), and the attributes in the order of their bits; a name
/// and a list are each an offset from there and a length.
fn any_acl(answer: &[u8], count: usize) -> Option<bool> {
    const SECURITY: u32 = libc::ATTR_CMN_EXTENDED_SECURITY;
    let mut rest = answer;
    for _ in 0..count {
        let word = |at: usize| Some(u32::from_ne_bytes(rest.get(at..at + 4)?.try_into().ok()?));
        let returned = word(4)?;
        let at = if returned & libc::ATTR_CMN_NAME == 0 { 24 } else { 32 };
        if returned & SECURITY != 0 && word(at + 4)? as usize > HEADER_BYTES {
            return Some(true);
        }
        rest = rest.get(word(0)? as usize..)?;
    }
    Some(false)
}

pub(crate) fn drop_acl(file: BorrowedFd<'_>) {
    // SAFETY: an integer; the list returned is freed by its drop.
    let Ok(none) = Acl::new(unsafe { acl_init(0) }) else { return };
    // SAFETY: the descriptor is open as long as `file` lives, and the list is alive.
    unsafe { acl_set_fd_np(file.as_raw_fd(), none.0.as_ptr(), EXTENDED) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds an entry with a name, and perhaps with a list that long.
    fn entry(acl: Option<u32>) -> Vec<u8> {
        const NAME: u32 = libc::ATTR_CMN_RETURNED_ATTRS | libc::ATTR_CMN_NAME;
        let returned = if acl.is_some() { NAME | libc::ATTR_CMN_EXTENDED_SECURITY } else { NAME };
        let mut words = vec![0, returned, 0, 0, 0, 0, 16, 4];
        words.extend(acl.into_iter().flat_map(|length| [12, length]));
        words.push(u32::from_ne_bytes(*b"abc\0"));
        words[0] = 4 * words.len() as u32;
        words.into_iter().flat_map(u32::to_ne_bytes).collect()
    }

    #[test]
    fn a_list_is_found_among_what_the_kernel_packs() {
        let [none, empty, acl] = [None, Some(0), Some(68)].map(entry);
        assert_eq!(any_acl(&[none.clone(), empty.clone()].concat(), 2), Some(false));
        assert_eq!(any_acl(&[none.clone(), empty, acl].concat(), 3), Some(true));
        assert_eq!(any_acl(&none, 2), None);
    }
}
