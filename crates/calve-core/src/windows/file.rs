//! Making the copy of one entry that is not a directory.

use std::fs::File;
use std::io;
use std::path::Path;

use windows_sys::Win32::Foundation::{
    ERROR_BLOCK_TOO_MANY_REFERENCES, ERROR_INVALID_FUNCTION, ERROR_INVALID_PARAMETER, ERROR_NOT_SAME_DEVICE,
    ERROR_NOT_SUPPORTED, ERROR_TOO_MANY_LINKS, GENERIC_READ, GENERIC_WRITE,
};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_ATTRIBUTE_COMPRESSED, FILE_ATTRIBUTE_ENCRYPTED, FILE_ATTRIBUTE_NORMAL, FILE_ATTRIBUTE_REPARSE_POINT,
    FILE_ATTRIBUTE_SPARSE_FILE, FILE_READ_ATTRIBUTES, FILE_WRITE_ATTRIBUTES, READ_CONTROL, WRITE_DAC,
};

use super::fill::{Files, FillWorker};
use super::location::code;
use crate::choice::{Requirement, Strategy};
use crate::error::{Error, StatedRequirement};
use crate::operation::Operation;
use crate::reason::{SkipReason, WarningCode};
use crate::sys::{self, Info};

/// The reasons for which a file's bytes are copied although sharing its blocks was wanted; any other is a failure. The last two concern
/// single files: blocks that are shared too often already, and files with checksums of another kind.
const REFLINK_FALLS_BACK: [u32; 5] = [
    ERROR_INVALID_FUNCTION,
    ERROR_NOT_SUPPORTED,
    ERROR_NOT_SAME_DEVICE,
    ERROR_BLOCK_TOO_MANY_REFERENCES,
    ERROR_INVALID_PARAMETER,
];

/// The same for further names of a file: file systems without them, and a file that has as many as it can.
pub(super) const LINK_FALLS_BACK: [u32; 4] =
    [ERROR_INVALID_FUNCTION, ERROR_NOT_SUPPORTED, ERROR_NOT_SAME_DEVICE, ERROR_TOO_MANY_LINKS];

/// Attributes that are not set with the others, but by what the contents go through.
const NOT_SETTABLE: u32 =
    FILE_ATTRIBUTE_COMPRESSED | FILE_ATTRIBUTE_ENCRYPTED | FILE_ATTRIBUTE_SPARSE_FILE | FILE_ATTRIBUTE_REPARSE_POINT;

/// Returns the attributes that are given to a copy.
pub(super) fn settable(attributes: u32) -> u32 {
    attributes & !(NOT_SETTABLE | FILE_ATTRIBUTE_NORMAL)
}

/// Returns whether a file's bytes may be copied after this refusal to share its blocks.
pub(super) fn may_be_copied(error: &io::Error) -> bool {
    is_any(error, &REFLINK_FALLS_BACK)
}

pub(super) fn is_any(error: &io::Error, codes: &[u32]) -> bool {
    codes.iter().any(|code| sys::is(error, *code))
}

/// Returns the reason for which an entry cannot be cloned: it is a special file of the Linux subsystem.
pub(super) fn special(tag: u32) -> Option<SkipReason> {
    match tag {
        0x8000_0023 => Some(SkipReason::Socket),
        0x8000_0024..=0x8000_0026 => Some(SkipReason::LinuxSpecial),
        _ => None,
    }
}

impl FillWorker<'_> {
    /// Makes the copy of the file `relative`, which is not there yet.
    pub(super) fn file(&mut self, relative: &Path) -> Result<(), Error> {
        let (src, dst) = self.paths(relative);
        let access = match self.fill.files {
            Files::Reflink { .. } => GENERIC_READ,
            Files::Copy | Files::Hardlink => FILE_READ_ATTRIBUTES | READ_CONTROL,
        };
        let Some(file) = self.open_source(relative, access)? else { return Ok(()) };
        let before = sys::info(&file).map_err(|error| self.src_error(Operation::Stat, relative, error))?;
        if let Some(reason) = special(before.tag) {
            self.fill.notes.skipped(relative.to_path_buf(), reason);
            return Ok(());
        }
        if before.is_link() || before.is_directory() {
            // It was a file when the directory was read.
            self.fill.notes.changed(relative.to_path_buf());
            return Ok(());
        }
        if before.links > 1 && !matches!(self.fill.files, Files::Hardlink) && self.is_further_name(&before, relative) {
            return Ok(());
        }
        match self.fill.files {
            Files::Hardlink => {
                let linked = std::fs::hard_link(&src, &dst);
                match linked {
                    Err(error) if sys::is(&error, ERROR_TOO_MANY_LINKS) => {
                        let path = || relative.to_path_buf();
                        self.fill.notes.fell_back(Strategy::Hardlink, Strategy::Copy, error, path);
                        self.copied(&src, &dst, relative, &before)?;
                    }
                    other => {
                        other.map_err(|error| self.dst_error(Operation::CreateLink, relative, error))?;
                        self.tally.bytes.shared += before.size;
                    }
                }
            }
            Files::Copy => self.copied(&src, &dst, relative, &before)?,
            Files::Reflink { strict } => self.reflinked(&file, &dst, relative, &before, strict)?,
        }
        if !matches!(self.fill.files, Files::Hardlink) {
            self.keep(&file, &dst, relative, &before)?;
        }
        let after = sys::info(&file).map_err(|error| self.src_error(Operation::Stat, relative, error))?;
        // Giving it another name is a change of the file.
        if !matches!(self.fill.files, Files::Hardlink) && !before.is_same_version(&after) {
            self.fill.notes.changed(relative.to_path_buf());
        }
        self.tally.entries.files += 1;
        self.tally.bytes.apparent += before.size;
        Ok(())
    }

    fn copied(&mut self, src: &Path, dst: &Path, relative: &Path, info: &Info) -> Result<(), Error> {
        let copy = || match sys::copy_file(src, dst, self.fill.cancel) {
            Err(_) if self.fill.cancel.is_cancelled() => Ok(()),
            other => other,
        };
        sys::patiently(sys::PATIENCE, copy).map_err(|error| self.src_error(Operation::Copy, relative, error))?;
        if self.fill.cancel.is_cancelled() {
            return Err(Error::Interrupted);
        }
        self.tally.bytes.written += info.size;
        Ok(())
    }

    fn reflinked(&mut self, file: &File, dst: &Path, relative: &Path, info: &Info, strict: bool) -> Result<(), Error> {
        let target = sys::create_file(dst).map_err(|error| self.dst_error(Operation::Create, relative, error))?;
        let shared = match info.size {
            0 => Ok(()),
            // A filter makes its contents (deduplicated, in the cloud). It was opened without, and what is there may be zeros.
            _ if info.tag != 0 => Err(code(ERROR_NOT_SUPPORTED)),
            _ => sys::reflink(file, &target),
        };
        drop(target);
        let (src, _) = self.paths(relative);
        match shared {
            Ok(()) => {
                self.tally.bytes.shared += info.size;
                self.streams(&src, dst, relative)
            }
            Err(error) if may_be_copied(&error) && !strict => {
                self.fill.notes.fell_back(Strategy::Reflink, Strategy::Copy, error, || relative.to_path_buf());
                std::fs::remove_file(dst).map_err(|error| self.dst_error(Operation::Remove, relative, error))?;
                self.copied(&src, dst, relative, info)
            }
            Err(error) if may_be_copied(&error) => Err(Error::RequirementRefused {
                requirement: StatedRequirement::Property(Requirement::Cow),
                refused: Vec::new(),
                detail: Some(self.src_error(Operation::ShareExtents, relative, error).to_string()),
            }),
            Err(error) => Err(self.src_error(Operation::ShareExtents, relative, error)),
        }
    }

    /// Copies what an entry has under names behind a colon; sharing blocks concerns the main contents only.
    pub(super) fn streams(&mut self, src: &Path, dst: &Path, relative: &Path) -> Result<(), Error> {
        let names = sys::streams(src).map_err(|error| self.src_error(Operation::ListStreams, relative, error))?;
        for name in names {
            let path_of = |path: &Path| {
                let mut path = path.as_os_str().to_owned();
                path.push(&name);
                path
            };
            let copied = sys::patiently(sys::PATIENCE, || {
                let mut from = File::open(path_of(src))?;
                io::copy(&mut from, &mut File::create(path_of(dst))?)
            });
            match copied {
                Ok(length) => self.tally.bytes.written += length,
                Err(error) if is_any(&error, &[ERROR_INVALID_FUNCTION, ERROR_NOT_SUPPORTED]) => {
                    self.fill.notes.not_kept(WarningCode::StreamNotKept, "alternate data stream", error, || {
                        relative.to_path_buf()
                    });
                }
                Err(error) => return Err(self.src_error(Operation::CopyStream, relative, error)),
            }
        }
        Ok(())
    }

    /// Gives a copy what `src` has beside its contents.
    fn keep(&self, src: &File, dst: &Path, relative: &Path, info: &Info) -> Result<(), Error> {
        let failed = |operation| move |error| self.dst_error(operation, relative, error);
        self.keep_access(src, dst, relative)?;
        if self.fill.sync {
            sys::set_attributes(dst, FILE_ATTRIBUTE_NORMAL)
                .and_then(|()| sys::open(dst, GENERIC_WRITE)?.sync_all())
                .map_err(failed(Operation::Sync))?;
        }
        let set = || {
            let copy = sys::open(dst, FILE_READ_ATTRIBUTES | FILE_WRITE_ATTRIBUTES)?;
            sys::set_basic(&copy, info.times, settable(info.attributes))?;
            sys::info(&copy)
        };
        let now = sys::patiently(sys::PATIENCE, set).map_err(failed(Operation::SetTimes))?;
        self.compare_attributes(info, &now, relative);
        Ok(())
    }

    /// Gives the copy the access list of the source that is its own. The copy has already inherited what the source inherited.
    pub(super) fn keep_access(&self, src: &File, dst: &Path, relative: &Path) -> Result<(), Error> {
        let own = sys::own_access(src).map_err(|error| self.src_error(Operation::ReadPermissions, relative, error))?;
        let Some(own) = own else { return Ok(()) };
        if let Err(error) = sys::open(dst, WRITE_DAC).and_then(|copy| sys::set_access(&copy, &own)) {
            self.fill.notes.not_kept(WarningCode::AclNotKept, "access control list", error, || relative.to_path_buf());
        }
        Ok(())
    }

    pub(super) fn compare_attributes(&self, src: &Info, dst: &Info, relative: &Path) {
        let kinds = [
            (FILE_ATTRIBUTE_COMPRESSED, "compression"),
            (FILE_ATTRIBUTE_ENCRYPTED, "encryption"),
            (FILE_ATTRIBUTE_SPARSE_FILE, "holes (sparse file)"),
        ];
        for (_, what) in kinds.iter().filter(|(bit, _)| src.attributes & !dst.attributes & bit != 0) {
            let reason = code(ERROR_NOT_SUPPORTED);
            self.fill.notes.not_kept(WarningCode::AttributeNotKept, what, reason, || relative.to_path_buf());
        }
    }

    /// Makes the link `relative`, as it is.
    pub(super) fn link(&mut self, relative: &Path) -> Result<(), Error> {
        let Some(file) = self.open_source(relative, FILE_READ_ATTRIBUTES)? else { return Ok(()) };
        let info = sys::info(&file).map_err(|error| self.src_error(Operation::Stat, relative, error))?;
        if !info.is_link() {
            self.fill.notes.changed(relative.to_path_buf());
            return Ok(());
        }
        let link = sys::read_link(&file).map_err(|error| self.src_error(Operation::ReadLink, relative, error))?;
        let (_, dst) = self.paths(relative);
        if link.is_mounted_volume() {
            std::fs::create_dir(&dst).map_err(|error| self.dst_error(Operation::CreateDirectory, relative, error))?;
            self.fill.notes.skipped(relative.to_path_buf(), SkipReason::OtherFileSystem);
            self.tally.entries.directories += 1;
            return Ok(());
        }
        sys::write_link(&dst, &link, info.is_directory())
            .map_err(|error| self.dst_error(Operation::CreateSymlink, relative, error))?;
        let set = || {
            sys::set_basic(
                &sys::open(&dst, FILE_READ_ATTRIBUTES | FILE_WRITE_ATTRIBUTES)?,
                info.times,
                settable(info.attributes),
            )
        };
        set().map_err(|error| self.dst_error(Operation::SetTimes, relative, error))?;
        self.tally.entries.symlinks += 1;
        Ok(())
    }
}
