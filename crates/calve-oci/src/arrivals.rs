//! Parts of images that have arrived, kept until the pull is done: one that is killed goes on where it was.
//!
//! Each part is a file, named by the blob's digest and its place in it, and locked while it is fetched. Nothing is trusted for being there: a
//! part is checked like one that comes from the registry.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use calve_core::template::Templates;
use rustix::fs::{FlockOperation, OFlags};

use crate::error::Error;
use crate::frames::{self, Frame, GAP_BYTES, NEAR_BYTES};
use crate::image::Descriptor;
use crate::operation::Operation;
use crate::registry::{PARTS, Registry};
use crate::spool::Spool;

/// Receives a run of frames, its place in the blob, and what has arrived of it. Returns false if the registry has no parts.
type ReceiveFrames<'r> = dyn FnMut(&[Frame], &Range<u64>, Spool) -> Result<bool, Error> + 'r;

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

    /// Fetches several parts of a blob in one request, where the registry answers such. `receive` gets the number of each part and what has arrived
    /// of it, unchecked; that may be nothing. Returns false, with nothing received, if the registry has only one part in an answer.
    pub(crate) fn fetch_together(
        &self,
        registry: &Registry<'_>,
        of: &Descriptor,
        parts: &[Range<u64>],
        receive: &mut dyn FnMut(usize, Spool) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let is_new = |bytes| !fs_err::symlink_metadata(self.path(of, bytes)).is_ok_and(|metadata| metadata.len() > 0);
        let new: Vec<_> = (0..parts.len()).filter(|number| is_new(&parts[*number])).collect();
        let asked: Vec<_> = new.iter().map(|number| parts[*number].clone()).collect();
        let mut is_received = vec![false; parts.len()];
        let came = &mut |number: usize, contents: &mut dyn Read| {
            if is_received[new[number]] {
                return Ok(());
            }
            let bytes = &parts[new[number]];
            let mut spool = self.spool(of, bytes)?;
            if spool.size == 0 {
                registry.read_to_end(contents, &mut spool, bytes.end - bytes.start)?;
            }
            is_received[new[number]] = true;
            receive(new[number], spool)
        };
        if asked.len() > 1 && !registry.parts(of, &asked, came)? {
            return Ok(false);
        }
        let rest = (0..parts.len()).zip(is_received).filter(|(_, is_received)| !is_received);
        for (number, _) in rest {
            receive(number, self.spool(of, &parts[number])?)?;
        }
        Ok(true)
    }

    /// Fetches a blob's missing frames, the first at `start`, in few requests. False, and nothing received, if it lacks most, or has no parts.
    pub(crate) fn fetch_frames(
        &self,
        (registry, of): (&Registry<'_>, &Descriptor),
        (frames, start): (&[Frame], u64),
        is_missing: &dyn Fn(&Frame) -> bool,
        receive: &mut ReceiveFrames<'_>,
    ) -> Result<bool, Error> {
        let place = |run: &&[Frame]| {
            let bytes = frames::together(run);
            start + bytes.start..start + bytes.end
        };
        let Some(near) = frames::wanted(frames, NEAR_BYTES, is_missing) else { return Ok(false) };
        // It had some before.
        let without_part = || registry.wrong("a blob without a part");
        let mut rest = &near[..];
        while rest.len() > 1 {
            let (batch, behind) = rest.split_at(rest.len().min(PARTS));
            let parts: Vec<_> = batch.iter().map(place).collect();
            let mut one = |number: usize, spool| match receive(batch[number], &parts[number], spool)? {
                true => Ok(()),
                false => Err(without_part()),
            };
            if !self.fetch_together(registry, of, &parts, &mut one)? {
                break;
            }
            rest = behind;
        }
        let is_first = rest.len() == near.len();
        // The registry has one part in an answer: larger gaps are worth fetching.
        let far = if is_first { frames::wanted(frames, GAP_BYTES, is_missing) } else { Some(rest.to_vec()) };
        let Some(single) = far else { return Ok(false) };
        for (number, run) in single.iter().enumerate() {
            let bytes = place(run);
            match receive(run, &bytes, self.spool(of, &bytes)?)? {
                true => {}
                false if is_first && number == 0 => return Ok(false),
                false => return Err(without_part()),
            }
        }
        Ok(true)
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
