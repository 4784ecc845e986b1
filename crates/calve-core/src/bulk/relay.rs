//! Many files of one directory, by two threads: one makes them, under the directory's lock, and hands them to the other, which writes them. If
//! both did both, waiting for that lock would take what they gain: on XFS, where making a file is most of it.

use std::mem::take;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::mpsc::{TrySendError, sync_channel};

use super::directory::Directories;
use super::file::FileToWrite;
use super::plan::{self, Item};
use super::{Flush, Placement, Run};
use crate::sys::CreationPattern;

/// Files that are handed over at a time. Fewer wake the writer more often, which costs the maker time.
const BATCH: usize = 8;
/// At most so many wait, so that 32 files are open, with those in hand. If the writer falls behind, the maker writes what it has made.
const BATCHES: usize = 2;

/// A file that is open and empty.
struct NewFile<'i> {
    file: OwnedFd,
    is_new: bool,
    item: &'i Item<'i>,
}

impl Run<'_> {
    /// Returns whether so many threads write these files best this way.
    pub(super) fn is_relay(&self, threads: usize) -> bool {
        let one_directory = || self.units.windows(2).all(|pair| matches!(pair, [a, b] if a.directory == b.directory));
        let plain = self.options.placement == Placement::InPlace && self.options.flush != Flush::EachFile;
        self.making == CreationPattern::HandedOver && threads == 2 && plain && self.units.len() > 1 && one_directory()
    }

    /// Writes all units, which are of one directory. The second thread shares the calling one's descriptor table.
    pub(super) fn relay(&self) {
        let mut directories = Directories::new(self.root, self.root_path, self.options.directory);
        let Some(Ok(directory)) = self.units.first().map(|unit| directories.open(&unit.directory)) else {
            // The error says why, for each file.
            return self.work();
        };
        let (give, given) = sync_channel::<Vec<NewFile<'_>>>(BATCHES);
        std::thread::scope(|scope| {
            let writer = move || given.into_iter().for_each(|made| self.write_made(directory, made));
            // Without a second thread nothing is taken, and everything is written here.
            let _ = std::thread::Builder::new().name("calve".into()).spawn_scoped(scope, writer);
            let offer = |made| match give.try_send(made) {
                Ok(()) => {}
                Err(TrySendError::Full(made) | TrySendError::Disconnected(made)) => self.write_made(directory, made),
            };
            let mut made = Vec::with_capacity(BATCH);
            let mut expect_existing = false;
            for unit in self.units {
                let path = |name: &[u8]| plan::join(self.root_path, &unit.directory, name);
                for item in &unit.items {
                    if self.stopped() {
                        break;
                    }
                    let file = FileToWrite { directory, item, options: self.options, path: &path };
                    match file.make(&mut expect_existing) {
                        Ok((file, is_new)) => made.push(NewFile { file, is_new, item }),
                        Err(error) => self.failed(item.index, error),
                    }
                    if made.len() == BATCH {
                        offer(take(&mut made));
                    }
                }
            }
            offer(made);
            drop(give);
        });
        self.report().directories += directories.made;
    }

    fn write_made(&self, directory: BorrowedFd<'_>, made: Vec<NewFile<'_>>) {
        let below = self.units.first().map(|unit| &*unit.directory).unwrap_or_default();
        let path = |name: &[u8]| plan::join(self.root_path, below, name);
        self.count_files(made.into_iter().filter_map(|NewFile { file, is_new, item }| {
            let to_write = FileToWrite { directory, item, options: self.options, path: &path };
            if self.stopped() {
                to_write.take_back(is_new);
                return None;
            }
            Some((item, to_write.fill_made(file, is_new)))
        }));
    }
}
