//! The parts of layers to fetch: few, and with little data that is not needed.

use std::ops::Range;

use super::index::Chunk;
use crate::fetch::REQUEST_BYTES;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MissingChunk {
    /// The number of its file, and where it belongs in that.
    pub(super) file: usize,
    pub(super) at: u64,
    /// True if nothing has been written there yet.
    pub(super) is_hole: bool,
    /// The number of its layer, and where it is in that.
    pub(super) layer: usize,
    pub(super) start: u64,
    pub(super) chunk: Chunk,
}

impl MissingChunk {
    pub(super) fn bytes(&self) -> Range<u64> {
        self.start..self.start + u64::from(self.chunk.compressed)
    }
}

/// Returns where neighbours are in their layer.
pub(super) fn together(chunks: &[MissingChunk]) -> Range<u64> {
    let ([first, ..], [.., last]) = (chunks, chunks) else { return 0..0 };
    first.start..last.bytes().end
}

/// Returns runs of chunks, sorted by layer and place, to fetch together: at most `most` bytes between two, and a third of all bytes in gaps.
pub(super) fn runs(missing: &[MissingChunk], most: u64) -> Vec<&[MissingChunk]> {
    let gap = |pair: &[MissingChunk]| match pair {
        [a, b] if a.layer == b.layer => b.start.saturating_sub(a.bytes().end),
        _ => u64::MAX,
    };
    let wanted: u64 = missing.iter().map(|chunk| u64::from(chunk.chunk.compressed)).sum();
    let mut gaps: Vec<u64> = missing.windows(2).map(gap).filter(|gap| *gap <= most).collect();
    gaps.sort_unstable();
    let mut largest = 0;
    let mut in_vain = 0;
    for gap in gaps {
        in_vain += gap;
        if in_vain > wanted / 2 {
            break;
        }
        largest = gap;
    }
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (index, chunk) in missing.iter().enumerate() {
        let last = runs.last_mut().filter(|run| {
            gap(&missing[index - 1..=index]) <= largest && chunk.bytes().end - missing[run.start].start <= REQUEST_BYTES
        });
        match last {
            Some(run) => run.end = index + 1,
            None => runs.push(index..index + 1),
        }
    }
    runs.into_iter().map(|run| &missing[run]).collect()
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
