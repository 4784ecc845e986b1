//! A layer's frames: parts that can be fetched, checked and decompressed on their own.
//!
//! A layer is a sequence of zstd frames, which every decompressor reads as one, each with whole entries of the tar. An
//! annotation says where they end, so that a pull asks only for those with changed files. The manifest has frames too.

use std::io::{self, Read, Write};
use std::mem;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::digest::{Context, SHA256};
use zstd::bulk;
use zstd::stream::write::Encoder;

use crate::spool::{Spool, digest_of};
use crate::work::grouped;

/// Frames of [`FRAME_BYTES`] take 107 MB for a real `node_modules` (113,000 files, 478 MiB) in a simulation, and 119 MB
/// at level 3. One stream at level 3 takes 91 MB.
pub(crate) const LEVEL: i32 = 9;
/// Smallest size of a frame before compression. If every hundredth file of that `node_modules` changes, a pull fetches
/// frames with 4 % of the bytes. With 128 KiB it would be 12 % of 101 MB, with 16 KiB 2.4 % of 111 MB.
const FRAME_BYTES: u64 = 32 << 10;
/// More are not worth their room in the annotation: large layers have larger frames.
const FRAMES: u64 = 384;
/// Level of larger frames: its encoder takes 5 MB instead of 30.
const LARGE_LEVEL: i32 = 6;
/// Frames up to this size are compressed in memory, by an encoder that knows the size.
const BUFFERED_BYTES: usize = 256 << 10;
const HASH_BYTES: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Entries of the manifest, or bytes of the manifest's text.
    pub(crate) has: Range<usize>,
    pub(crate) bytes: Range<u64>,
    /// Hash of the compressed bytes in a layer, of the text in the manifest.
    pub(crate) hash: Hash,
}

/// The beginning of a BLAKE3 hash.
pub(crate) type Hash = [u8; HASH_BYTES];

pub(crate) fn hash(bytes: &[u8]) -> Hash {
    beginning(&blake3::hash(bytes))
}

fn beginning(hash: &blake3::Hash) -> Hash {
    hash.as_bytes().first_chunk().copied().unwrap_or_default()
}

impl Frame {
    pub(crate) fn size(&self) -> u64 {
        self.bytes.end - self.bytes.start
    }

    pub(crate) fn check(&self, bytes: &mut dyn Read) -> io::Result<bool> {
        let mut hash = blake3::Hasher::new();
        io::copy(&mut bytes.take(self.size()), &mut hash)?;
        Ok(beginning(&hash.finalize()) == self.hash)
    }
}

/// Formats the frames' annotation: `HAS.BYTES.HASH` of each.
pub(crate) fn annotation(frames: &[Frame]) -> String {
    let frame = |frame: &Frame| format!("{}.{}.{}", frame.has.len(), frame.size(), STANDARD_NO_PAD.encode(frame.hash));
    frames.iter().map(frame).collect::<Vec<_>>().join(" ")
}

/// Parses an annotation of frames that have `size` bytes in all. The first one begins with the entry `first`.
pub(crate) fn parse(annotation: &str, first: usize, size: u64) -> Option<Vec<Frame>> {
    let (mut entry, mut byte) = (first, 0_u64);
    let mut frames = Vec::new();
    for part in annotation.split(' ') {
        let mut fields = part.splitn(3, '.');
        let frame = Frame {
            has: entry..entry.checked_add(fields.next()?.parse().ok()?)?,
            bytes: byte..byte.checked_add(fields.next()?.parse().ok()?)?,
            hash: STANDARD_NO_PAD.decode(fields.next()?).ok()?.try_into().ok()?,
        };
        if frame.has.is_empty() || frame.bytes.is_empty() {
            return None;
        }
        (entry, byte) = (frame.has.end, frame.bytes.end);
        frames.push(frame);
    }
    (byte == size).then_some(frames)
}

/// Returns runs of frames to fetch, which bridge gaps up to `gap` bytes. `None` if they have half of all bytes.
pub(crate) fn wanted(frames: &[Frame], gap: u64, is_missing: impl Fn(&Frame) -> bool) -> Option<Vec<&[Frame]>> {
    let missing: Vec<usize> = (0..frames.len()).filter(|&index| is_missing(&frames[index])).collect();
    let is_near = |run: &[usize], next: &usize| frames[*next].bytes.start - frames[run[run.len() - 1]].bytes.end <= gap;
    let runs = grouped(&missing, is_near).into_iter();
    let runs: Vec<_> = runs.map(|run| &frames[run[0]..=run[run.len() - 1]]).collect();
    let bytes: u64 = runs.iter().map(|run| together(run)).map(|bytes| bytes.end - bytes.start).sum();
    (bytes < together(frames).end / 2).then_some(runs)
}

pub(crate) fn together(frames: &[Frame]) -> Range<u64> {
    let ([first, ..], [.., last]) = (frames, frames) else { return 0..0 };
    first.bytes.start..last.bytes.end
}

/// Writer of a tar into a blob, frame by frame.
pub(crate) struct FrameCompressor {
    blob: Spool,
    /// Hash of the present frame's compressed bytes.
    hash: blake3::Hasher,
    /// The present frame while it is small: it is compressed when it ends.
    contents: Vec<u8>,
    small: bulk::Compressor<'static>,
    large: Option<Encoder<'static, Vec<u8>>>,
    smallest: u64,
    /// Size of the present frame before compression.
    size: u64,
    entries: Range<usize>,
    tar: Context,
    frames: Vec<Frame>,
}

impl FrameCompressor {
    /// Begins a layer at the entry `first`. `size` is the approximate size of all contents.
    pub(crate) fn new(blob: Spool, first: usize, size: u64) -> io::Result<Self> {
        Ok(Self {
            blob,
            hash: blake3::Hasher::new(),
            contents: Vec::new(),
            small: bulk::Compressor::new(LEVEL)?,
            large: None,
            smallest: FRAME_BYTES.max(size / FRAMES),
            size: 0,
            entries: first..first,
            tar: Context::new(&SHA256),
            frames: Vec::new(),
        })
    }

    /// Begins an entry of `contents` bytes, in a new frame if the present one is large enough.
    pub(crate) fn begin_entry(&mut self, contents: u64) -> io::Result<()> {
        if self.size >= self.smallest || (self.size > 0 && contents >= self.smallest) {
            self.end_frame()?;
        }
        self.entries.end += 1;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<(Spool, Vec<Frame>, String)> {
        self.end_frame()?;
        Ok((self.blob, self.frames, digest_of(self.tar)))
    }

    fn end_frame(&mut self) -> io::Result<()> {
        let rest = match self.large.take() {
            Some(large) => large.finish()?,
            None => self.small.compress(&self.contents)?,
        };
        self.put(&rest)?;
        self.contents.clear();
        let hash = beginning(&self.hash.finalize());
        self.hash.reset();
        let start = self.frames.last().map_or(0, |frame| frame.bytes.end);
        self.frames.push(Frame { has: self.entries.clone(), bytes: start..self.blob.size, hash });
        self.entries.start = self.entries.end;
        self.size = 0;
        Ok(())
    }

    fn put(&mut self, compressed: &[u8]) -> io::Result<()> {
        self.hash.update(compressed);
        self.blob.write_all(compressed)
    }
}

impl Write for FrameCompressor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.large.is_none() && self.contents.len() + bytes.len() <= BUFFERED_BYTES {
            self.contents.extend_from_slice(bytes);
        } else {
            let large = match &mut self.large {
                Some(large) => large,
                none => none.insert(Encoder::new(Vec::new(), LARGE_LEVEL)?),
            };
            large.write_all(&mem::take(&mut self.contents))?;
            large.write_all(bytes)?;
            let compressed = mem::take(large.get_mut());
            self.put(&compressed)?;
        }
        self.tar.update(bytes);
        self.size += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(sizes: &[u64]) -> Vec<Frame> {
        let frame = |(index, &size): (usize, &u64)| {
            let start = sizes[..index].iter().sum();
            Frame { has: 10 * index..10 * (index + 1), bytes: start..start + size, hash: [index as u8; HASH_BYTES] }
        };
        sizes.iter().enumerate().map(frame).collect()
    }

    #[test]
    fn an_annotation_is_read_as_it_was_written_or_not_at_all() {
        let frames = frames(&[5_000, 1, 70_000]);
        let text = annotation(&frames);
        assert_eq!(parse(&text, 0, 75_001), Some(frames));
        for (text, size) in [
            (text.clone(), 75_000),
            (text.replacen("10.", "18446744073709551615.", 2), 75_001),
            (text.replace('A', ""), 75_001),
            (format!("{text} "), 75_001),
            (text.replace(".70000.", ".0."), 5_001),
            (String::new(), 75_001),
        ] {
            assert_eq!(parse(&text, 0, size), None, "{text}");
        }
    }

    #[test]
    fn neighbours_are_fetched_together_and_most_of_a_layer_as_a_whole() {
        let frames = frames(&[100_000, 100_000, 10_000, 100_000, 100_000, 100_000, 100_000]);
        for (missing, expected) in [
            (&[][..], Some(vec![])),
            (&[0], Some(vec![(0, 1)])),
            (&[15, 30], Some(vec![(1, 3)])),
            (&[9, 69], Some(vec![(0, 1), (6, 1)])),
            (&[9, 10, 30, 69], None),
        ] {
            let runs =
                wanted(&frames, crate::fetch::GAP_BYTES, |frame| missing.iter().any(|entry| frame.has.contains(entry)));
            let ends = |runs: Vec<&[Frame]>| runs.iter().map(|run| (run[0].has.start / 10, run.len())).collect();
            assert_eq!(runs.map(ends), expected, "{missing:?}");
        }
    }
}
