//! Clones of files on APFS (getattrlist(2)). There is no block map: F_LOG2PHYS_EXT needs an open file and one call per
//! run, and does not tell who else uses it.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::{ATTR_CMN_RETURNED_ATTRS, ATTR_CMNEXT_CLONEID, ATTR_CMNEXT_PRIVATESIZE};
use rustix::io::{Errno, Result};

use super::{attributes, result};
use crate::sys::CloneFamily;

/// `<sys/attr.h>`, macOS 10.15: number of files with the same ATTR_CMNEXT_CLONEID.
const ATTR_CMNEXT_CLONE_REFCNT: libc::attrgroup_t = 0x1000;

/// Returns the blocks that the file `name` shares with its clones. Does not open it: contents in the cloud stay there.
pub(crate) fn clone_family(directory: BorrowedFd<'_>, name: &CStr) -> Result<CloneFamily> {
    // FSOPT_ATTR_CMN_EXTENDED gives these bits their meaning; without it they are about forks.
    let clones = ATTR_CMNEXT_PRIVATESIZE | ATTR_CMNEXT_CLONEID | ATTR_CMNEXT_CLONE_REFCNT;
    let mut wanted = attributes(ATTR_CMN_RETURNED_ATTRS, 0, clones);
    let mut answer = [0u8; 64];
    let options = libc::FSOPT_NOFOLLOW | libc::FSOPT_ATTR_CMN_EXTENDED;
    // SAFETY: an open descriptor, a C string and a list of attributes that outlive the call, which only reads them, and a buffer of
    // which the call fills no more than its length.
    result(unsafe {
        libc::getattrlistat(
            directory.as_raw_fd(),
            name.as_ptr(),
            (&raw mut wanted).cast(),
            answer.as_mut_ptr().cast(),
            answer.len(),
            options.into(),
        )
    })?;
    parse(&answer).ok_or(Errno::NOTSUP)
}

/// Returns whether the volume has clonefile(2) (getattrlist(2), VOL_CAP_INT_CLONE).
pub(crate) fn has_clones(fd: BorrowedFd<'_>) -> Result<bool> {
    let mut wanted = attributes(0, libc::ATTR_VOL_INFO | libc::ATTR_VOL_CAPABILITIES, 0);
    // The length, then `vol_capabilities_attr_t`: four words of capabilities, and four that tell which are valid.
    let mut answer = [0u32; 9];
    // SAFETY: an open descriptor, a list of attributes that outlives the call, which only reads it, and a buffer of which the call
    // fills no more than its length.
    result(unsafe {
        libc::fgetattrlist(
            fd.as_raw_fd(),
            (&raw mut wanted).cast(),
            answer.as_mut_ptr().cast(),
            size_of_val(&answer),
            0,
        )
    })?;
    let (capabilities, valid) =
        (answer[1 + libc::VOL_CAPABILITIES_INTERFACES], answer[5 + libc::VOL_CAPABILITIES_INTERFACES]);
    if valid & libc::VOL_CAP_INT_CLONE == 0 {
        return Err(Errno::NOTSUP);
    }
    Ok(capabilities & libc::VOL_CAP_INT_CLONE != 0)
}

/// Parses the length, the set of returned attributes (five words, these in the last), and the attributes in the order
/// of their bits, each at a multiple of four bytes.
fn parse(answer: &[u8]) -> Option<CloneFamily> {
    let small = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?));
    let large = |at: usize| Some(u64::from_ne_bytes(answer.get(at..at + 8)?.try_into().ok()?));
    let returned = small(20)?;
    if returned & ATTR_CMNEXT_PRIVATESIZE == 0 || returned & ATTR_CMNEXT_CLONEID == 0 {
        return None;
    }
    let members = if returned & ATTR_CMNEXT_CLONE_REFCNT == 0 { 0 } else { small(40)? };
    Some(CloneFamily { private: large(24)?, number: large(32)?, members })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(returned: u32, rest: &[u8]) -> Vec<u8> {
        let length = (24 + rest.len()) as u32;
        let words = [length, ATTR_CMN_RETURNED_ATTRS, 0, 0, 0, returned];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.extend_from_slice(rest);
        bytes
    }

    #[test]
    fn what_the_kernel_packs_is_read_as_it_lies() {
        let sizes = ATTR_CMNEXT_PRIVATESIZE | ATTR_CMNEXT_CLONEID;
        let rest = [4096u64.to_ne_bytes(), 77u64.to_ne_bytes()].concat();
        let old = CloneFamily { private: 4096, number: 77, members: 0 };
        assert_eq!(parse(&answer(sizes, &rest)), Some(old), "before macOS 10.15");
        let whole = [rest.as_slice(), &3u32.to_ne_bytes()].concat();
        let new = CloneFamily { members: 3, ..old };
        assert_eq!(parse(&answer(sizes | ATTR_CMNEXT_CLONE_REFCNT, &whole)), Some(new));
        assert_eq!(parse(&answer(0, &[])), None, "another file system");
        assert_eq!(parse(&answer(sizes, &rest[..8])), None);
    }
}
