//! Refuses to remove or replace protected places, however they are spelled.

use std::path::{Path, PathBuf};

use windows_sys::Win32::Storage::FileSystem::FILE_READ_ATTRIBUTES;

use super::location::{Location, is_inside, resolve};
use super::source::Source;
use crate::error::{Error, Protection};
use crate::operation::Operation;
use crate::sys;

/// Refuses what a clone of `source` may not replace: only a file can be replaced, by a file, in one step.
pub(crate) fn check_replaceable(source: &Source, destination: &Location, protect: &[PathBuf]) -> Result<(), Error> {
    if source.single().is_none() || destination.look()?.is_some_and(|info| info.is_directory()) {
        return Err(Error::ReplaceUnsupported(destination.given().to_path_buf()));
    }
    check(destination, protect)
}

/// Refuses a mounted volume, protected places and whatever contains one, and what the current directory is in. Roots of volumes have
/// no name, and are refused before.
pub(super) fn check(location: &Location, protect: &[PathBuf]) -> Result<(), Error> {
    let given = location.given();
    let Some(info) = location.look()? else { return Err(Error::Missing(given.to_path_buf())) };
    let refuse = |reason| Err(Error::Protected { path: given.to_path_buf(), reason });
    if info.is_link() {
        let link = sys::open(location.path(), FILE_READ_ATTRIBUTES).and_then(|file| sys::read_link(&file));
        return match link.map_err(|error| Error::io(Operation::Stat, given, error))? {
            link if link.is_mounted_volume() => refuse(Protection::MountPoint(given.to_path_buf())),
            _ => Ok(()),
        };
    }
    if !info.is_directory() {
        return Ok(());
    }
    let contains = |inner: &Path| resolve(inner).is_ok_and(|inner| is_inside(&inner, info.identity));
    if contains(Path::new(".")) {
        return refuse(Protection::CurrentDirectory);
    }
    match protect.iter().find(|protected| contains(protected)) {
        Some(protected) => refuse(Protection::Contains(protected.clone())),
        None => Ok(()),
    }
}
