//! The parts of layers to fetch: few, and with little that nobody wants.

use std::ops::Range;

use super::index::Chunk;
use crate::frames::GAP_BYTES;

/// Several are fetched and written at the same time.
const PART_BYTES: u64 = 8 << 20;

/// A chunk that is not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MissingChunk {
    /// The number of its file, and where it belongs in that.
    pub(super) file: usize,
    pub(super) at: u64,
    /// Whether that has nothing there yet.
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

/// Returns runs of chunks that are fetched together. The chunks are in the order of layers and places. Of all that is fetched, at most a third
/// is between chunks.
pub(super) fn runs(missing: &[MissingChunk]) -> Vec<Range<usize>> {
    let gap = |pair: &[MissingChunk]| match pair {
        [a, b] if a.layer == b.layer => b.start.saturating_sub(a.bytes().end),
        _ => u64::MAX,
    };
    let wanted: u64 = missing.iter().map(|chunk| u64::from(chunk.chunk.compressed)).sum();
    let mut gaps: Vec<u64> = missing.windows(2).map(gap).filter(|gap| *gap <= GAP_BYTES).collect();
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
            gap(&missing[index - 1..=index]) <= largest && chunk.bytes().end - missing[run.start].start <= PART_BYTES
        });
        match last {
            Some(run) => run.end = index + 1,
            None => runs.push(index..index + 1),
        }
    }
    runs
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
            let found: Vec<_> = runs(&chunks(places)).into_iter().map(|run| (run.start, run.end)).collect();
            assert_eq!(found, expected, "{places:?}");
        }
    }
}
