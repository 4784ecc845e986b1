//! Fetched parts of images, kept until a pull succeeds: if one is killed, the next continues from them.
//!
//! Each part is a file named by the blob's digest and its place there, and locked while it is fetched. A kept part is
//! checked like one from the registry.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use calve_core::internal::lock_file;
use calve_core::template::Templates;
use rustix::fs::{CWD, FlockOperation, OFlags};

use crate::error::Error;
use crate::image::Descriptor;
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
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE;
        let locked = lock_file(CWD, &*path, flags, FlockOperation::NonBlockingLockExclusive).map_err(io::Error::from);
        let opened = locked.and_then(|file| file.map(|file| Spool::resume(file.into(), &path)).transpose());
        let opened = opened.map_err(|error| Error::io("keep a part of an image in", &path, error))?;
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
