//! Access control lists. Most entries have what their directory bequeaths, and a copy gets that by itself; what an entry has of its own
//! is carried over.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::windows::io::AsRawHandle;
use std::ptr::null_mut;

use windows_sys::Win32::Foundation::{ERROR_INSUFFICIENT_BUFFER, ERROR_INVALID_FUNCTION, ERROR_NOT_SUPPORTED};
use windows_sys::Win32::Security::{
    ACE_HEADER, ACL, DACL_SECURITY_INFORMATION, GetAce, GetKernelObjectSecurity, GetSecurityDescriptorControl,
    GetSecurityDescriptorDacl, INHERITED_ACE, PROTECTED_DACL_SECURITY_INFORMATION, SE_DACL_PROTECTED,
    SetKernelObjectSecurity,
};

use super::{done, is};

/// A security descriptor with a list of its own in it, in the form of one block.
pub(crate) struct OwnAccess {
    descriptor: Vec<u64>,
    /// It takes nothing from its directory.
    is_protected: bool,
}

/// Returns the access list of an open entry, if anything in it is not inherited. `None` also where the file system has none.
pub(crate) fn own_access(file: &File) -> io::Result<Option<OwnAccess>> {
    let mut descriptor = vec![0u64; 64];
    loop {
        let (start, room) = (descriptor.as_mut_ptr().cast(), size_of_val(&descriptor[..]) as u32);
        let mut needed = 0;
        // SAFETY: the handle is open as long as `file` lives, and at most `room` bytes are written.
        let read = done(unsafe {
            GetKernelObjectSecurity(file.as_raw_handle(), DACL_SECURITY_INFORMATION, start, room, &mut needed)
        });
        match read {
            Ok(()) => break,
            Err(error) if is(&error, ERROR_INSUFFICIENT_BUFFER) && needed > room => {
                descriptor.resize((needed as usize).div_ceil(size_of::<u64>()), 0);
            }
            Err(error) if is(&error, ERROR_INVALID_FUNCTION) || is(&error, ERROR_NOT_SUPPORTED) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    let (mut control, mut revision) = (0, 0);
    // SAFETY: a whole descriptor, which the call before has written.
    done(unsafe { GetSecurityDescriptorControl(descriptor.as_mut_ptr().cast(), &mut control, &mut revision) })?;
    let is_protected = control & SE_DACL_PROTECTED != 0;
    let own = is_protected || has_own_entry(&mut descriptor)?;
    Ok(own.then_some(OwnAccess { descriptor, is_protected }))
}

fn has_own_entry(descriptor: &mut [u64]) -> io::Result<bool> {
    let (mut present, mut defaulted, mut list) = (0, 0, null_mut::<ACL>());
    // SAFETY: a whole descriptor; the list is a pointer into it.
    done(unsafe {
        GetSecurityDescriptorDacl(descriptor.as_mut_ptr().cast(), &mut present, &mut list, &mut defaulted)
    })?;
    if present == 0 || list.is_null() {
        return Ok(false);
    }
    // SAFETY: the list is inside the descriptor, which is alive.
    let count = unsafe { (*list).AceCount };
    for index in 0..u32::from(count) {
        let mut entry = MaybeUninit::uninit();
        // SAFETY: the list is alive and has an entry of that number.
        done(unsafe { GetAce(list, index, entry.as_mut_ptr()) })?;
        // SAFETY: the call has written a pointer to an entry in the list, and every entry begins with such a header.
        let flags = unsafe { (*entry.assume_init().cast::<ACE_HEADER>()).AceFlags };
        if u32::from(flags) & INHERITED_ACE == 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Gives an open entry such a list.
pub(crate) fn set_access(file: &File, access: &OwnAccess) -> io::Result<()> {
    let protected = if access.is_protected { PROTECTED_DACL_SECURITY_INFORMATION } else { 0 };
    let descriptor = access.descriptor.as_ptr().cast_mut().cast();
    // SAFETY: the handle is open as long as `file` lives; the descriptor is whole, and only read.
    done(unsafe { SetKernelObjectSecurity(file.as_raw_handle(), DACL_SECURITY_INFORMATION | protected, descriptor) })
}
