//! One pass over the sorted uses of extents: for each piece of a disk, how often each path uses it.

use super::ledger::{SortedUses, Use};
use crate::error::Error;

/// A shared piece of a disk, and its users.
pub(super) struct SharedPiece<'a> {
    pub(super) file_system: u32,
    pub(super) bytes: u64,
    /// The number of files that use it, if the system tells; else 0.
    pub(super) family: u32,
    pub(super) uses: &'a [u32],
}

/// Calls `each` for every piece with shared uses, in order, and `every` for all uses.
pub(super) fn sweep(
    sorted: &mut SortedUses<'_>,
    roots: usize,
    mut every: impl FnMut(&Use) -> Result<(), Error>,
    mut each: impl FnMut(&SharedPiece<'_>),
) -> Result<(), Error> {
    let mut plain = Active::new(roots);
    let mut encoded = Active::new(roots);
    while let Some(next) = sorted.next()? {
        every(&next)?;
        if !next.shared {
            continue;
        }
        let active = if next.encoded { &mut encoded } else { &mut plain };
        if active.file_system != next.file_system || (next.encoded && active.position != next.start) {
            active.finish(&mut each);
            active.file_system = next.file_system;
            active.family = next.family;
        }
        // A compressed extent's length is not its length on the disk, so only equal starts mean equal addresses.
        if !next.encoded {
            active.advance(next.start, &mut each);
        }
        active.position = next.start;
        active.push(&next);
    }
    plain.finish(&mut each);
    encoded.finish(&mut each);
    Ok(())
}

struct Active {
    file_system: u32,
    family: u32,
    position: u64,
    /// End, path, how many.
    uses: Vec<(u64, u32, u32)>,
    counts: Vec<u32>,
}

impl Active {
    fn new(roots: usize) -> Self {
        Self { file_system: 0, family: 0, position: 0, uses: Vec::new(), counts: vec![0; roots] }
    }

    fn push(&mut self, one: &Use) {
        match self.uses.iter_mut().find(|(end, root, _)| (*end, *root) == (one.end, one.root)) {
            Some((_, _, count)) => *count += 1,
            None => self.uses.push((one.end, one.root, 1)),
        }
    }

    fn finish(&mut self, each: &mut impl FnMut(&SharedPiece<'_>)) {
        self.advance(u64::MAX, each);
        self.uses.clear();
    }

    fn advance(&mut self, until: u64, each: &mut impl FnMut(&SharedPiece<'_>)) {
        while self.position < until {
            let Some(end) = self.uses.iter().map(|(end, ..)| *end).min() else { return };
            let stop = end.min(until);
            if stop > self.position {
                self.counts.fill(0);
                for (_, root, count) in &self.uses {
                    self.counts[*root as usize] += count;
                }
                let bytes = stop - self.position;
                each(&SharedPiece { file_system: self.file_system, bytes, family: self.family, uses: &self.counts });
            }
            self.position = stop;
            self.uses.retain(|(end, ..)| *end > stop);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ledger::Ledger;
    use super::*;

    fn pieces(uses: &[(u64, u64, u32, bool)]) -> Vec<(u64, Vec<u32>)> {
        let mut ledger = Ledger::new(usize::MAX, None);
        let mut uses = uses.iter().map(|&(start, end, root, encoded)| {
            let family = u32::from(encoded) * 5;
            Use { file_system: 0, start, end, root, shared: true, encoded, family }
        });
        ledger.add(&mut uses.by_ref().collect()).unwrap();
        let mut found = Vec::new();
        sweep(&mut ledger.sorted().unwrap(), 2, |_| Ok(()), |piece| found.push((piece.bytes, piece.uses.to_vec())))
            .unwrap();
        found
    }

    #[test]
    fn overlapping_uses_are_taken_apart() {
        let found = pieces(&[(0, 100, 0, false), (50, 150, 1, false), (50, 150, 1, false), (200, 210, 0, false)]);
        assert_eq!(found, [(50, vec![1, 0]), (50, vec![1, 2]), (50, vec![0, 2]), (10, vec![1, 0])]);
    }

    #[test]
    fn compressed_extents_lie_where_they_start() {
        let found = pieces(&[(0, 128, 0, true), (0, 128, 1, true), (8, 136, 0, true)]);
        assert_eq!(found, [(128, vec![1, 1]), (128, vec![1, 0])]);
    }
}
