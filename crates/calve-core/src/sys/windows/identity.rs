//! The user and the process: words for names, random numbers, priority.

use std::ffi::c_void;
use std::hash::{BuildHasher, Hasher};
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::null_mut;
use std::sync::OnceLock;

use windows_sys::Win32::Security::Cryptography::{BCRYPT_USE_SYSTEM_PREFERRED_RNG, BCryptGenRandom};
use windows_sys::Win32::Security::{GetTokenInformation, TOKEN_QUERY, TokenUser};
use windows_sys::Win32::System::Registry::{HKEY_LOCAL_MACHINE, RRF_RT_REG_SZ, RRF_SUBKEY_WOW6464KEY, RegGetValueW};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, OpenProcessToken, PROCESS_MODE_BACKGROUND_BEGIN, SetPriorityClass,
};
use windows_sys::w;

use super::done;
use crate::sys::{hash, word};

/// Returns a short word for this machine, the same after a restart: made from the number that its installation was given.
pub(crate) fn machine_identity() -> &'static str {
    static MACHINE: OnceLock<String> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let mut text = [0u16; 64];
        let mut bytes = size_of_val(&text) as u32;
        // SAFETY: two strings with a NUL; the value is written to `text`, which is as long as `bytes` says.
        let code = unsafe {
            RegGetValueW(
                HKEY_LOCAL_MACHINE,
                w!(r"SOFTWARE\Microsoft\Cryptography"),
                w!("MachineGuid"),
                RRF_RT_REG_SZ | RRF_SUBKEY_WOW6464KEY,
                null_mut(),
                text.as_mut_ptr().cast(),
                &mut bytes,
            )
        };
        let length = if code == 0 { bytes as usize / 2 } else { 0 };
        word(String::from_utf16_lossy(&text[..length]).as_bytes())
    })
}

/// Returns a number for the user that this process runs as, made from the security identifier.
pub(crate) fn user_identity() -> u32 {
    static USER: OnceLock<u32> = OnceLock::new();
    *USER.get_or_init(|| hash(&user_sid().unwrap_or_default()))
}

/// Returns the user's security identifier. A `TOKEN_USER` holds a pointer to it, and it is behind that in the same buffer.
fn user_sid() -> std::io::Result<Vec<u8>> {
    let mut token = null_mut();
    // SAFETY: the handle of this process needs no closing; the token's is written to `token`.
    done(unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &mut token) })?;
    // SAFETY: the call has just opened it, and nothing else closes it.
    let token = unsafe { OwnedHandle::from_raw_handle(token) };
    // Words of eight bytes, as the structure begins with a pointer.
    let mut buffer = [0u64; 32];
    let mut length = 0;
    let (start, room) = (buffer.as_mut_ptr().cast::<c_void>(), size_of_val(&buffer) as u32);
    // SAFETY: the token is open, and no more than `room` bytes are written.
    done(unsafe { GetTokenInformation(token.as_raw_handle(), TokenUser, start, room, &mut length) })?;
    let bytes = buffer.iter().flat_map(|word| word.to_ne_bytes());
    /// A pointer and a number with padding come before it.
    const HEADER_BYTES: usize = 16;
    Ok(bytes.take(length as usize).skip(HEADER_BYTES).collect())
}

/// Returns 64 random bits, for names that nobody can guess or collide with.
pub(crate) fn random() -> u64 {
    let mut bytes = [0u8; 8];
    // SAFETY: no algorithm is named, as the flag asks; eight bytes are written to `bytes`.
    let status =
        unsafe { BCryptGenRandom(null_mut(), bytes.as_mut_ptr(), bytes.len() as u32, BCRYPT_USE_SYSTEM_PREFERRED_RNG) };
    match status {
        0 => u64::from_ne_bytes(bytes),
        // The keys that the standard library has for its hash tables: random too, from the start of the process.
        _ => std::hash::RandomState::new().build_hasher().finish(),
    }
}

/// Makes the calling process one that is not felt: lowest priority for processor, disk and memory.
pub(crate) fn lower_priority() {
    // SAFETY: the handle of this process, and a number; a failure is harmless.
    unsafe { SetPriorityClass(GetCurrentProcess(), PROCESS_MODE_BACKGROUND_BEGIN) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_whole_and_stay_the_same() {
        assert_eq!(machine_identity().len(), 8);
        assert_ne!(machine_identity(), word(b""), "the machine has a number");
        assert_ne!(user_identity(), hash(b""), "the user has an identifier");
        // A security identifier: revision 1, and as long as the number of its parts says.
        let sid = user_sid().unwrap();
        assert_eq!((sid[0], sid.len() >= 8 + 4 * usize::from(sid[1])), (1, true));
        assert_ne!(random(), random());
    }
}
