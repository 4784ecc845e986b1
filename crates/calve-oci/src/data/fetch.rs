//! The chunks to fetch, in few requests and with little data that is not needed.

use std::ops::Range;

use super::index::Chunk;
use crate::fetch::REQUEST_BYTES;
use crate::work::grouped;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MissingChunk {
    /// The number of its file, and its place there.
    pub(super) file: usize,
    pub(super) at: u64,
    /// True if nothing has been written there yet.
    pub(super) is_hole: bool,
    /// The number of its layer, and its place there.
    pub(super) layer: usize,
    pub(super) start: u64,
    pub(super) chunk: Chunk,
}

impl MissingChunk {
    pub(super) fn bytes(&self) -> Range<u64> {
        self.start..self.start + u64::from(self.chunk.compressed)
    }
}

pub(super) fn together(chunks: &[MissingChunk]) -> Range<u64> {
    let ([first, ..], [.., last]) = (chunks, chunks) else { return 0..0 };
    first.start..last.bytes().end
}

/// Joins chunks, sorted by layer and place, across gaps of at most `most` bytes. Gaps are a third of all bytes at most.
pub(super) fn runs(missing: &[MissingChunk], most: u64) -> Vec<&[MissingChunk]> {
    let gap = |a: &MissingChunk, b: &MissingChunk| match a.layer == b.layer {
        true => b.start.saturating_sub(a.bytes().end),
        false => u64::MAX,
    };
    let wanted: u64 = missing.iter().map(|chunk| u64::from(chunk.chunk.compressed)).sum();
    let mut gaps: Vec<u64> =
        missing.windows(2).map(|pair| gap(&pair[0], &pair[1])).filter(|gap| *gap <= most).collect();
    gaps.sort_unstable();
    let mut in_vain = 0;
    let worth_it = gaps.into_iter().take_while(|gap| {
        in_vain += gap;
        in_vain <= wanted / 2
    });
    let largest = worth_it.last().unwrap_or(0);
    grouped(missing, |run, next| {
        gap(&run[run.len() - 1], next) <= largest && next.bytes().end - run[0].start <= REQUEST_BYTES
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(places: &[(usize, u64, u32)]) -> Vec<MissingChunk> {
        let chunk = |&(layer, start, compressed): &(usize, u64, u32)| MissingChunk {
            file: 0,
            at: 0,
            is_hole: true,
            layer,
            start,
            chunk: Chunk { hash: [0; 16], size: 1, compressed },
        };
        places.iter().map(chunk).collect()
    }

    #[test]
    fn neighbours_are_fetched_together_as_long_as_little_is_between_them() {
        for (places, expected) in [
            (&[][..], &[][..]),
            (&[(0, 0, 1000), (0, 1000, 1000), (1, 2000, 1000)], &[(0, 2), (2, 3)]),
            // The smaller gap comes first; both would be more than half.
            (&[(0, 0, 1000), (0, 2400, 1000), (0, 4300, 1000)], &[(0, 1), (1, 3)]),
            (&[(0, 0, 1_000_000), (0, 1_032_769, 1_000_000)], &[(0, 1), (1, 2)]),
            (&[(0, 0, 1_000_000), (0, 1_032_768, 1_000_000)], &[(0, 2)]),
            (&[(0, 0, 5_000_000), (0, 5_000_000, 3_388_608), (0, 8_388_608, 1)], &[(0, 2), (2, 3)]),
        ] {
            let chunks = chunks(places);
            let expected: Vec<_> = expected.iter().map(|&(start, end)| &chunks[start..end]).collect();
            assert_eq!(runs(&chunks, 32 << 10), expected, "{places:?}");
        }
    }
}
