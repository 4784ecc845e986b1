//! Fetched parts of images, kept until a pull succeeds: if one is killed, the next continues from them.
//!
//! Each part is a file named by the blob's digest and its place there, and locked while it is fetched. A kept part is
//! checked like one from the registry.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use calve_core::template::Templates;
use rustix::fs::{FlockOperation, OFlags};

use crate::error::Error;
use crate::image::Descriptor;
use crate::operation::Operation;
use crate::spool::Spool;

pub(crate) struct Arrivals {
    directory: PathBuf,
    used: Mutex<Vec<PathBuf>>,
}

impl Arrivals {
    pub(crate) fn open(templates: &Templates) -> Result<Self, Error> {
        Ok(Self { directory: templates.arrivals()?, used: Mutex::default() })
    }

    fn path(&self, of: &Descriptor, bytes: &Range<u64>) -> PathBuf {
        self.directory.join(format!("{}.{}-{}", of.digest.replace(':', "-"), bytes.start, bytes.end))
    }

    /// Opens a kept part of a blob. While another pull fetches it, returns an empty spool that is not kept.
    pub(crate) fn spool(&self, of: &Descriptor, bytes: &Range<u64>) -> Result<Spool, Error> {
        let path = self.path(of, bytes);
        let opened = open(&path).and_then(|file| file.map(|file| Spool::resume(file, &path)).transpose());
        let opened = opened.map_err(|error| Error::io(Operation::KeepPart, &path, error))?;
        let Some(spool) = opened else { return Ok(Spool::new(Some(&self.directory))) };
        self.used.lock().unwrap_or_else(PoisonError::into_inner).push(path);
        Ok(spool)
    }

    pub(crate) fn has_some(&self, of: &Descriptor, bytes: &Range<u64>) -> bool {
        fs_err::symlink_metadata(self.path(of, bytes)).is_ok_and(|metadata| metadata.len() > 0)
    }

    /// Removes the parts after success, and if the image is wrong: it would be again. Else the next pull continues.
    pub(crate) fn end<T>(self, pulled: &Result<T, Error>) {
        if matches!(pulled, Ok(_) | Err(Error::BadAnswer { .. } | Error::NotATemplate { .. })) {
            self.clear();
        }
    }

    /// Removes the parts that this pull has used. Another pull that reads one has it open.
    pub(crate) fn clear(self) {
        for path in self.used.into_inner().unwrap_or_else(PoisonError::into_inner) {
            // Leftovers are removed when they are old.
            let _ = fs_err::remove_file(path);
        }
    }
}

/// Returns `None` if another pull holds the lock.
fn open(path: &Path) -> io::Result<Option<File>> {
    let mut options = fs_err::OpenOptions::new();
    options.read(true).append(true).create(true);
    options.options_mut().mode(0o600).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    let (file, _) = options.open(path)?.into_parts();
    let is_free = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    Ok(is_free.then_some(file))
}
