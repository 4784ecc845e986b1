//! The shared extents of files, sorted by disk address. Those beyond a limit of memory wait in an unnamed file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};

use crate::error::{Error, IoContext};
use crate::sys;
use crate::vocabulary::operation::Operation;

/// One file's use of one extent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Use {
    pub(super) file_system: u32,
    pub(super) start: u64,
    pub(super) end: u64,
    /// The index of the given path.
    pub(super) root: u32,
    /// Another file, or another part of this one, uses it too.
    pub(super) shared: bool,
    /// Compressed: only the start is an address.
    pub(super) encoded: bool,
    /// The number of files, clones of each other, that use all of it, if the system tells; else 0.
    pub(super) family: u32,
}

const BYTES: usize = 29;

impl Use {
    fn to_bytes(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&self.file_system.to_le_bytes());
        bytes[4..12].copy_from_slice(&self.start.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.end.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.root.to_le_bytes());
        bytes[24] = u8::from(self.encoded) | u8::from(self.shared) << 1;
        bytes[25..].copy_from_slice(&self.family.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let small = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or_default());
        let large = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        let (encoded, shared) = (bytes[24] & 1 != 0, bytes[24] & 2 != 0);
        let (file_system, start, end, root, family) = (small(0), large(4), large(12), small(20), small(25));
        Self { file_system, start, end, root, shared, encoded, family }
    }
}

pub(super) struct Ledger {
    memory: Vec<Use>,
    most: usize,
    scratch: Option<PathBuf>,
    file: Option<File>,
    /// Begin and end of each sorted run in the file.
    runs: Vec<(u64, u64)>,
    written: u64,
}

impl Ledger {
    /// Creates a ledger that keeps at most `most` uses in memory, if there is a directory for the rest.
    pub(super) fn new(most: usize, scratch: Option<&Path>) -> Self {
        let scratch = scratch.map(Path::to_path_buf);
        Self { memory: Vec::new(), most, scratch, file: None, runs: Vec::new(), written: 0 }
    }

    pub(super) fn add(&mut self, uses: &mut Vec<Use>) -> Result<(), Error> {
        self.memory.append(uses);
        if self.memory.len() < self.most {
            return Ok(());
        }
        let Some(scratch) = &self.scratch else { return Ok(()) };
        let failed = |source| Error::Io { operation: Operation::WriteTemporary, path: scratch.clone(), source };
        if self.file.is_none() {
            self.file = Some(unnamed(scratch).map_err(failed)?);
        }
        let Some(file) = &self.file else { return Ok(()) };
        self.memory.sort_unstable();
        let begin = self.written;
        for part in self.memory.chunks(4096) {
            let bytes: Vec<u8> = part.iter().flat_map(|one| one.to_bytes()).collect();
            file.write_all_at(&bytes, self.written).map_err(failed)?;
            self.written += bytes.len() as u64;
        }
        self.runs.push((begin, self.written));
        self.memory.clear();
        Ok(())
    }

    /// Equal uses come out as often as they were added.
    pub(super) fn sorted(&mut self) -> Result<SortedUses<'_>, Error> {
        self.memory.sort_unstable();
        let mut runs: Vec<Run<'_>> = Vec::new();
        runs.push(Run { buffer: std::mem::take(&mut self.memory), at: 0, rest: None });
        if let Some(file) = &self.file {
            runs.extend(self.runs.iter().map(|&range| Run { buffer: Vec::new(), at: 0, rest: Some((file, range)) }));
        }
        let scratch = self.scratch.clone().unwrap_or_default();
        let mut sorted = SortedUses { runs, heap: BinaryHeap::new(), scratch };
        for index in 0..sorted.runs.len() {
            sorted.refill(index)?;
        }
        Ok(sorted)
    }
}

fn unnamed(directory: &Path) -> io::Result<File> {
    let name = directory.join(format!(".calve-scratch-{:016x}", sys::random()));
    let file = sys::create_at(CWD, &name, OFlags::RDWR, Mode::RUSR | Mode::WUSR)?;
    rustix::fs::unlink(&name)?;
    Ok(File::from(file))
}

struct Run<'a> {
    buffer: Vec<Use>,
    at: usize,
    rest: Option<(&'a File, (u64, u64))>,
}

pub(super) struct SortedUses<'a> {
    runs: Vec<Run<'a>>,
    heap: BinaryHeap<Reverse<(Use, usize)>>,
    scratch: PathBuf,
}

impl SortedUses<'_> {
    fn refill(&mut self, index: usize) -> Result<(), Error> {
        const PART: u64 = 4096 * BYTES as u64;
        let run = &mut self.runs[index];
        if run.at == run.buffer.len()
            && let Some((file, (begin, end))) = &mut run.rest
            && begin < end
        {
            let mut bytes = vec![0; PART.min(*end - *begin) as usize];
            let read = file.read_exact_at(&mut bytes, *begin);
            read.io(Operation::ReadTemporary, &self.scratch)?;
            *begin += bytes.len() as u64;
            run.buffer = bytes.chunks_exact(BYTES).map(Use::from_bytes).collect();
            run.at = 0;
        }
        if let Some(one) = run.buffer.get(run.at) {
            self.heap.push(Reverse((*one, index)));
            run.at += 1;
        }
        Ok(())
    }

    pub(super) fn next(&mut self) -> Result<Option<Use>, Error> {
        let Some(Reverse((one, index))) = self.heap.pop() else { return Ok(None) };
        self.refill(index)?;
        Ok(Some(one))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_on_the_disk_comes_back_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::new(1000, Some(folder.path()));
        let mut expected = Vec::new();
        let mut number = 1u64;
        for _ in 0..50 {
            let mut part: Vec<Use> = Vec::new();
            for _ in 0..333 {
                number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let start = number >> 40;
                let root = (number >> 20 & 3) as u32;
                part.push(Use {
                    file_system: root % 2,
                    start,
                    end: start + 7,
                    root,
                    shared: number & 2 == 2,
                    encoded: number & 1 == 1,
                    family: (number >> 30 & 7) as u32,
                });
            }
            expected.extend_from_slice(&part);
            ledger.add(&mut part).unwrap();
        }
        expected.sort_unstable();
        assert!(ledger.runs.len() > 10);
        assert_eq!(fs_err::read_dir(folder.path()).unwrap().count(), 0, "the file has no name");
        let mut sorted = ledger.sorted().unwrap();
        let mut found = Vec::new();
        while let Some(one) = sorted.next().unwrap() {
            found.push(one);
        }
        assert_eq!(found, expected);
    }
}
