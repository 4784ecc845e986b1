//! The volume that an entry is on.

use std::fs::File;
use std::io;
use std::os::windows::io::AsRawHandle;
use std::path::Path;
use std::ptr::null_mut;

use windows_sys::Win32::Storage::FileSystem::{GetDiskFreeSpaceExW, GetVolumeInformationByHandleW};
use windows_sys::Win32::System::SystemServices::FILE_SUPPORTS_BLOCK_REFCOUNTING;

use super::{done, wide};

/// A volume's words of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Volume {
    /// "NTFS", "ReFS", …
    pub(crate) file_system: String,
    pub(crate) serial: u32,
    /// Whether it has block cloning.
    pub(crate) clones_blocks: bool,
    /// Bytes that this user may still write; `None` when it does not say.
    pub(crate) free: Option<u64>,
    /// Bytes that are taken.
    pub(crate) used: Option<u64>,
}

/// Returns facts about the volume of the open directory `directory`, which is at `path`.
pub(crate) fn volume(directory: &File, path: &Path) -> io::Result<Volume> {
    let mut name = [0u16; 64];
    let (mut serial, mut flags, mut longest) = (0, 0, 0);
    // SAFETY: the handle is open as long as `directory` lives; the name is written to an array of the length that is said.
    done(unsafe {
        GetVolumeInformationByHandleW(
            directory.as_raw_handle(),
            null_mut(),
            0,
            &mut serial,
            &mut longest,
            &mut flags,
            name.as_mut_ptr(),
            name.len() as u32,
        )
    })?;
    let length = name.iter().position(|&unit| unit == 0).unwrap_or(name.len());
    let (mut free, mut total, mut all_free) = (0, 0, 0);
    let path = wide(path);
    // SAFETY: a string with a NUL at its end, and three numbers to write to.
    let said = done(unsafe { GetDiskFreeSpaceExW(path.as_ptr(), &mut free, &mut total, &mut all_free) }).is_ok();
    Ok(Volume {
        file_system: String::from_utf16_lossy(&name[..length]),
        serial,
        clones_blocks: flags & FILE_SUPPORTS_BLOCK_REFCOUNTING != 0,
        free: said.then_some(free),
        used: said.then_some(total.saturating_sub(all_free)),
    })
}
