//! Parts of images that have arrived, kept until the pull is done: one that is killed goes on where it was.
//!
//! Each part is a file, named by the blob's digest and its place in it, and locked while it is fetched. Nothing is trusted for being there: a
//! part is checked like one that comes from the registry.

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

    /// Returns what has arrived of these bytes of a blob. If another pull fetches them now, nothing has, and what comes is not kept.
    pub(crate) fn spool(&self, of: &Descriptor, bytes: &Range<u64>) -> Result<Spool, Error> {
        let path = self.path(of, bytes);
        let opened = open(&path).and_then(|file| file.map(|file| Spool::resume(file, &path)).transpose());
        let opened = opened.map_err(|error| Error::io(Operation::KeepPart, &path, error))?;
        let Some(spool) = opened else { return Ok(Spool::new(Some(&self.directory))) };
        self.used.lock().unwrap_or_else(PoisonError::into_inner).push(path);
        Ok(spool)
    }

    /// Returns true if some of these bytes of a blob have arrived.
    pub(crate) fn has_some(&self, of: &Descriptor, bytes: &Range<u64>) -> bool {
        fs_err::symlink_metadata(self.path(of, bytes)).is_ok_and(|metadata| metadata.len() > 0)
    }

    /// Removes what a pull has fetched if it succeeded, or if the image is wrong: it would be wrong again. After other errors the next pull goes on.
    pub(crate) fn end<T>(self, pulled: &Result<T, Error>) {
        if matches!(pulled, Ok(_) | Err(Error::BadAnswer { .. } | Error::NotATemplate { .. })) {
            self.clear();
        }
    }

    /// Removes what this pull has fetched. Another one that reads it has it open.
    pub(crate) fn clear(self) {
        for path in self.used.into_inner().unwrap_or_else(PoisonError::into_inner) {
            // Files that stay are removed when they are old.
            let _ = fs_err::remove_file(path);
        }
    }
}

/// Opens and locks a part. `None` if another pull has it.
fn open(path: &Path) -> io::Result<Option<File>> {
    let mut options = fs_err::OpenOptions::new();
    options.read(true).append(true).create(true);
    options.options_mut().mode(0o600).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    let (file, _) = options.open(path)?.into_parts();
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(_) => Ok(None),
    }
}
