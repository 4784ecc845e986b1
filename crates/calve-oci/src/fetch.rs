//! Fetching parts of blobs in few requests.

use std::cmp::Reverse;
use std::io::Read;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::arrivals::Arrivals;
use crate::error::Error;
use crate::frames::{self, Frame};
use crate::image::Descriptor;
use crate::registry::{PARTS, Registry};
use crate::spool::Spool;
use crate::work::{each, grouped};

/// Largest gap that is fetched too where each part takes a request: that costs about as much.
pub(crate) const GAP_BYTES: u64 = 32 << 10;
/// The same where one request asks for several parts: each has a header of some 150 bytes in the answer.
pub(crate) const NEAR_BYTES: u64 = 1 << 10;
/// Largest request, unless one part is larger. Several are fetched and written at the same time.
pub(crate) const REQUEST_BYTES: u64 = 8 << 20;

/// Neighbouring parts of a blob, fetched together.
pub(crate) struct Run<'a, P> {
    pub(crate) blob: &'a Descriptor,
    pub(crate) bytes: Range<u64>,
    pub(crate) parts: &'a [P],
}

impl<P> Run<'_, P> {
    fn size(&self) -> u64 {
        self.bytes.end - self.bytes.start
    }
}

/// Takes the bytes of a run. Returns false if they are wrong.
type Receive<'a, P> = dyn Fn(&Run<'_, P>, &mut Spool) -> Result<bool, Error> + Sync + 'a;

pub(crate) struct Fetcher<'a, P> {
    pub(crate) registry: &'a Registry<'a>,
    pub(crate) arrivals: &'a Arrivals,
    pub(crate) threads: Option<NonZeroUsize>,
    /// In bytes.
    pub(crate) fetched: &'a AtomicU64,
    pub(crate) receive: &'a Receive<'a, P>,
}

impl<P: Sync> Fetcher<'_, P> {
    /// Fetches runs, several in a request, or those of `far`, with larger gaps, if the registry sends one part in an
    /// answer. Returns false, with nothing received, if `far` is `None` or the registry ignores ranges.
    pub(crate) fn fetch<'r>(
        &self,
        near: &[Run<'r, P>],
        far: impl FnOnce() -> Option<Vec<Run<'r, P>>>,
    ) -> Result<bool, Error> {
        let mut batches = batches(near);
        batches.sort_by_key(|batch| Reverse(batch.len()));
        if let Some((first, rest)) = batches.split_first().filter(|(first, _)| first.len() > 1)
            && self.batch(first)?
        {
            each(rest, self.threads, |batch| match self.batch(batch)? {
                true => Ok(()),
                // The registry has stopped sending several.
                false => batch.iter().try_for_each(|run| self.next_run(run, self.spool(run)?)),
            })?;
            return Ok(true);
        }
        let Some(far) = far() else { return Ok(false) };
        let Some((first, rest)) = far.split_first() else { return Ok(true) };
        if !self.run(first, self.spool(first)?)? {
            return Ok(false);
        }
        each(rest, self.threads, |run| self.next_run(run, self.spool(run)?))?;
        Ok(true)
    }

    pub(crate) fn blob(&self, blob: &Descriptor) -> Result<Spool, Error> {
        let blob = self.registry.blob(blob, self.arrivals)?;
        self.fetched.fetch_add(blob.fetched, Ordering::Relaxed);
        Ok(blob)
    }

    fn spool(&self, run: &Run<'_, P>) -> Result<Spool, Error> {
        self.arrivals.spool(run.blob, &run.bytes)
    }

    /// Fetches runs of one blob in one request. Returns false, with nothing received, if only one part is sent.
    fn batch(&self, runs: &[Run<'_, P>]) -> Result<bool, Error> {
        let new: Vec<_> = runs.iter().filter(|run| !self.arrivals.has_some(run.blob, &run.bytes)).collect();
        let asked: Vec<_> = new.iter().map(|run| run.bytes.clone()).collect();
        let mut received = Vec::new();
        let mut receive = |number: usize, contents: &mut dyn Read| {
            let run = new[number];
            if received.contains(&run.bytes) {
                return Ok(());
            }
            let mut spool = self.spool(run)?;
            if spool.size == 0 {
                self.registry.read_to_end(contents, &mut spool, run.size())?;
            }
            received.push(run.bytes.clone());
            self.next_run(run, spool)
        };
        if asked.len() > 1 && !self.registry.parts(new[0].blob, &asked, &mut receive)? {
            return Ok(false);
        }
        let mut rest = runs.iter().filter(|run| !received.contains(&run.bytes));
        rest.try_for_each(|run| self.next_run(run, self.spool(run)?))?;
        Ok(true)
    }

    /// Fetches the rest of a run from a registry that has sent a part before.
    fn next_run(&self, run: &Run<'_, P>, spool: Spool) -> Result<(), Error> {
        if self.run(run, spool)? { Ok(()) } else { Err(self.registry.wrong("a blob without a part")) }
    }

    /// Fetches the rest of a run. Returns false if the registry ignores ranges.
    fn run(&self, run: &Run<'_, P>, spool: Spool) -> Result<bool, Error> {
        let is_right = &mut |part: &mut Spool| (self.receive)(run, part);
        let wrong = "a part of a blob with the wrong hash";
        let part = self.registry.checked_part(run.blob, &run.bytes, spool, is_right, wrong)?;
        self.fetched.fetch_add(part.as_ref().map_or(0, |part| part.fetched), Ordering::Relaxed);
        Ok(part.is_some())
    }
}

impl Fetcher<'_, Frame> {
    /// Fetches a blob's missing frames; their places count from `start`. Returns false, with nothing received, if most
    /// are missing, or if the registry ignores ranges.
    pub(crate) fn fetch_frames(
        &self,
        blob: &Descriptor,
        (frames, start): (&[Frame], u64),
        is_missing: &dyn Fn(&Frame) -> bool,
    ) -> Result<bool, Error> {
        let run = |parts| {
            let bytes = frames::together(parts);
            Run { blob, bytes: start + bytes.start..start + bytes.end, parts }
        };
        let runs = |gap| Some(frames::wanted(frames, gap, is_missing)?.into_iter().map(run).collect::<Vec<_>>());
        let Some(near) = runs(NEAR_BYTES) else { return Ok(false) };
        self.fetch(&near, || runs(GAP_BYTES))
    }
}

/// Groups runs for one request each: of one blob (an image may list one twice), and within the limits.
fn batches<'r, 'a, P>(runs: &'r [Run<'a, P>]) -> Vec<&'r [Run<'a, P>]> {
    grouped(runs, |batch, run| {
        let bytes = batch.iter().map(Run::size).sum::<u64>() + run.size();
        batch.len() < PARTS && bytes <= REQUEST_BYTES && std::ptr::eq(run.blob, batch[0].blob)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_request_asks_for_parts_of_one_blob_and_for_not_too_many() {
        let blob =
            |size| Descriptor { media_type: String::new(), digest: String::new(), size, annotations: BTreeMap::new() };
        let blobs = [blob(0), blob(1)];
        let numbers = |places: &[(usize, u64, u64)]| {
            let run = |&(blob, start, size): &(usize, u64, u64)| Run {
                blob: &blobs[blob],
                bytes: start..start + size,
                parts: &[()],
            };
            let runs: Vec<_> = places.iter().map(run).collect();
            batches(&runs).iter().map(|batch| batch.len()).collect::<Vec<_>>()
        };
        assert_eq!(numbers(&[]), [0; 0]);
        assert_eq!(numbers(&[(0, 0, 1), (0, 9, 1), (1, 0, 1)]), [2, 1]);
        assert_eq!(numbers(&[(0, 0, 5 << 20), (0, 9 << 20, 5 << 20), (0, 20 << 20, 1)]), [1, 2]);
        let many: Vec<_> = (0..300).map(|number| (0, number * 10, 1)).collect();
        assert_eq!(numbers(&many), [PARTS, PARTS, 300 - 2 * PARTS]);
    }
}
