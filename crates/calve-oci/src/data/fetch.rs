//! The parts of layers to fetch: few, and with little data that is not needed.

use std::ops::Range;

use super::index::Chunk;
use crate::registry::PARTS;

/// Several are fetched and written at the same time.
const PART_BYTES: u64 = 8 << 20;

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

/// Divides runs into those that one request asks for: of one layer, and not too many.
pub(super) fn batches<'r>(missing: &[MissingChunk], runs: &'r [Range<usize>]) -> Vec<&'r [Range<usize>]> {
    let layer = |run: &Range<usize>| missing[run.start].layer;
    let mut batches = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (number, run) in runs.iter().enumerate() {
        let part = together(&missing[run.clone()]);
        bytes += part.end - part.start;
        let is_other = number - start == PARTS || bytes > PART_BYTES || layer(run) != layer(&runs[start]);
        if number > start && is_other {
            batches.push(&runs[start..number]);
            (start, bytes) = (number, part.end - part.start);
        }
    }
    if start < runs.len() {
        batches.push(&runs[start..]);
    }
    batches
}

/// Returns runs of chunks, sorted by layer and place, to fetch together: at most `most` bytes between two, and a third of all bytes in gaps.
pub(super) fn runs(missing: &[MissingChunk], most: u64) -> Vec<Range<usize>> {
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
            let found: Vec<_> = runs(&chunks(places), 32 << 10).into_iter().map(|run| (run.start, run.end)).collect();
            assert_eq!(found, expected, "{places:?}");
        }
    }

    #[test]
    fn a_request_asks_for_parts_of_one_layer_and_for_not_too_many() {
        let numbers = |places: &[(usize, u64, u32)]| {
            let missing = chunks(places);
            batches(&missing, &runs(&missing, 0)).iter().map(|batch| batch.len()).collect::<Vec<_>>()
        };
        assert_eq!(numbers(&[]), [0; 0]);
        assert_eq!(numbers(&[(0, 0, 1), (0, 9, 1), (1, 0, 1)]), [2, 1]);
        assert_eq!(numbers(&[(0, 0, 5 << 20), (0, 9 << 20, 5 << 20), (0, 20 << 20, 1)]), [1, 2]);
        let many: Vec<_> = (0..300).map(|number| (0, number * 10, 1)).collect();
        assert_eq!(numbers(&many), [PARTS, PARTS, 300 - 2 * PARTS]);
    }
}
