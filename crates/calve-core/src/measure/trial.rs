//! Files to try with, and the trials: the engine itself, on small trees in the staged directory, again and again.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::choice::copy_up_to_bytes;
use super::order::turns;
use super::tree::Tree;
use super::{MOST_FILES, calls};
use crate::error::Error;
use crate::identify::identity_of;
use crate::measurement::{FileCost, MEASURE_WRITES_AT_MOST_BYTES, MeasureOptions, Measurement};
use crate::options::{Mounts, Strategy, Unreadable};
use crate::probe::reflink_refusal;
use crate::progress::{Cancel, Progress};
use crate::report::Refusal;
use crate::sys::{self, retry};
use crate::tree::contents::Contents;
use crate::tree::delete::{Deletion, delete};
use crate::tree::exclude::Exclude;
use crate::tree::fill::{Files, Fill, Paths, Scope, Tally, fill};
use crate::tree::metadata::Created;
use crate::tree::notes::Notes;
use crate::tree::staging::Staging;

const KIB: u64 = 1024;

/// The sizes, how many files of each there are, and in how many rounds they are cloned. 4 KiB is a block: between 1 and 16 KiB most
/// small files are.
const CLASSES: [(u64, usize, usize); 6] = [
    (0, 200, MOST_ROUNDS),
    (KIB, 200, MOST_ROUNDS),
    (4 * KIB, 200, MOST_ROUNDS),
    (16 * KIB, 200, MOST_ROUNDS),
    (128 * KIB, 24, 3),
    (1024 * KIB, 5, 3),
];
const MOST_ROUNDS: usize = 9;
/// A slow file system gets fewer files.
const FEWEST_FILES: usize = 4;
const DELETED_BATCHES: usize = 9;

/// Until when, as a share of the budget and with the time for cleaning up, each part may begin another round.
const FILES_UNTIL: f64 = 0.35;
const CALLS_UNTIL: f64 = 0.95;
/// Deleting a file, by the cost of an empty one: as long as that has not been measured.
const DELETING: u32 = 3;
/// Deleting what is left, and the next round, are taken to cost so many times what they did before: on a busy machine one round can
/// take several times as long as another.
const CAUTION: f64 = 1.5;
/// Until when the files may be waited for that everything is measured with, until they are on the disk.
const SETTLED_UNTIL: f64 = 0.15;

pub(super) struct Trial<'a> {
    pub(super) root: BorrowedFd<'a>,
    /// For messages.
    path: PathBuf,
    created: Created,
    exclude: Exclude,
    started: Instant,
    budget: Duration,
    cancel: &'a Cancel,
    pub(super) on_btrfs: bool,
    batches: usize,
    written: u64,
    pub(super) create: Duration,
    /// Files made so far, which will have to be deleted, and how long each will take.
    made: usize,
    delete: Duration,
    /// Copies of small files, to be deleted.
    deletable: Vec<(CString, usize)>,
}

/// Files of one size, and the time that cloning them took, per file.
struct Class {
    size: u64,
    name: CString,
    files: usize,
    rounds: usize,
    copy: Vec<Duration>,
    reflink: Vec<Duration>,
    /// What a turn took at the most, with what belongs to it.
    longest: Duration,
}

impl<'a> Trial<'a> {
    pub(super) fn begin(
        staging: &'a Staging<'_>,
        started: Instant,
        options: &'a MeasureOptions,
    ) -> Result<Self, Error> {
        let path = staging.parent_path().to_path_buf();
        let failed = |errno| Error::io("create a file in", &path, errno);
        let Some(root) = staging.root() else { return Err(failed(Errno::NOENT)) };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = sys::open_at(root, c"created", flags, Mode::from_raw_mode(0o777)).map_err(failed)?;
        let stat = rustix::fs::fstat(&file).map_err(failed)?;
        Ok(Self {
            root,
            created: Created { uid: stat.st_uid, gid: stat.st_gid, mask: stat.st_mode & 0o777 },
            exclude: Exclude::new(&[])?,
            started,
            budget: options.budget,
            cancel: &options.cancel,
            on_btrfs: sys::magic(root) == Ok(sys::BTRFS_MAGIC),
            batches: 0,
            written: 0,
            create: Duration::ZERO,
            made: 0,
            delete: Duration::ZERO,
            deletable: Vec::new(),
            path,
        })
    }

    pub(super) fn run(mut self) -> Result<Measurement, Error> {
        let empty = self.create_empty()?;
        let mut classes = self.make_classes(empty)?;
        let refused = self.try_reflink(&classes)?;
        self.clone_classes(&mut classes, refused.is_none())?;
        let files: Vec<FileCost> = classes.iter().filter_map(Class::cost).collect();
        // Before the rest, which goes by how long it will take to be deleted.
        let delete = self.delete_cost()?;
        let longest_copy = classes.iter().filter(|class| class.size == 4 * KIB).map(Class::longest_per_file).max();
        let tree = Tree::make(&mut self, longest_copy.unwrap_or_default())?;
        let (copy_up_to_bytes, small_copies) = match copy_up_to_bytes(&files) {
            None => (None, None),
            Some(limit) => tree.choose(&mut self, limit)?,
        };
        let contents = copy_up_to_bytes.map_or(Contents::Copy, |limit| self.reflink(limit));
        let (threads, best_threads) = tree.thread_costs(&mut self, contents)?;
        let snapshot = calls::snapshot(&self)?;
        let overlay = calls::overlay(&self)?;
        Ok(Measurement {
            place: identity_of(self.root),
            create: self.create,
            files,
            reflink_refused: refused,
            delete,
            snapshot,
            overlay,
            best_threads,
            threads,
            small_copies,
            copy_up_to_bytes,
            written_bytes: self.written,
            elapsed: self.started.elapsed(),
        })
    }

    /// Whether there is time for another round, of which one took that long before.
    pub(super) fn may_go_on(&self, until: f64, round: Duration) -> bool {
        self.left(until) > round.mul_f64(CAUTION)
    }

    /// What is left of a part of the budget, without the time that cleaning up will take.
    pub(super) fn left(&self, until: f64) -> Duration {
        let cleaning = self.delete.mul_f64(CAUTION) * u32::try_from(self.made).unwrap_or(u32::MAX);
        self.budget.mul_f64(until).saturating_sub(self.started.elapsed() + cleaning)
    }

    pub(super) fn calls_may_go_on(&self, call: Duration) -> bool {
        self.may_go_on(CALLS_UNTIL, call)
    }

    pub(super) fn stop_if_cancelled(&self) -> Result<(), Error> {
        if self.cancel.is_cancelled() { Err(Error::Interrupted) } else { Ok(()) }
    }

    pub(super) fn failed(&self, operation: &'static str) -> impl Fn(Errno) -> Error + use<'_> {
        move |errno| Error::io(operation, &self.path, errno)
    }

    /// Empty files in `0`: how many, and the time for each.
    fn create_empty(&mut self) -> Result<usize, Error> {
        const PATIENCE: Duration = Duration::from_millis(100);
        let directory = self.make_directory(self.root, c"0")?;
        let mut times = Vec::new();
        let began = Instant::now();
        while times.len() < CLASSES[0].1 && (times.len() < FEWEST_FILES || began.elapsed() < PATIENCE) {
            self.stop_if_cancelled()?;
            let started = Instant::now();
            drop(self.create(directory.as_fd(), times.len())?);
            times.push(started.elapsed());
        }
        let files = times.len();
        self.made += files;
        self.create = median(&mut times).unwrap_or_default();
        self.delete = self.create * DELETING;
        Ok(files)
    }

    fn make_classes(&mut self, empty: usize) -> Result<Vec<Class>, Error> {
        let mut classes = Vec::new();
        for (size, files, rounds) in CLASSES {
            let name = number(size);
            let files = if size == 0 { empty } else { fewer(files, self.create) };
            if size > 0 {
                let directory = self.make_directory(self.root, &name)?;
                self.make_files(directory.as_fd(), &vec![size; files])?;
            }
            let longest = Duration::ZERO;
            classes.push(Class { size, name, files, rounds, copy: Vec::new(), reflink: Vec::new(), longest });
        }
        for class in classes.iter().filter(|class| class.size > 0) {
            self.settle(&class.name, class.files, SETTLED_UNTIL)?;
        }
        Ok(classes)
    }

    pub(super) fn make_directory(&self, parent: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Error> {
        rustix::fs::mkdirat(parent, name, Mode::RWXU).map_err(self.failed("create a directory in"))?;
        self.open_directory(parent, name)
    }

    fn open_directory(&self, parent: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        sys::open_at(parent, name, flags, Mode::empty()).map_err(self.failed("open a directory in"))
    }

    fn create(&self, directory: BorrowedFd<'_>, index: usize) -> Result<OwnedFd, Error> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        sys::open_at(directory, &*number(index as u64), flags, mode).map_err(self.failed("create a file in"))
    }

    /// Files with contents that no file system finds a shortcut for. They begin to be written to the disk.
    pub(super) fn make_files(&mut self, directory: BorrowedFd<'_>, sizes: &[u64]) -> Result<(), Error> {
        let largest = sizes.iter().copied().max().unwrap_or(0);
        let contents = noise(usize::try_from(largest).unwrap_or(0));
        for (index, size) in sizes.iter().enumerate() {
            self.stop_if_cancelled()?;
            let file = self.create(directory, index)?;
            let mut rest = &contents[..usize::try_from(*size).unwrap_or(0)];
            while !rest.is_empty() {
                let length = retry(|| rustix::io::write(&file, rest)).map_err(self.failed("write a file in"))?;
                rest = &rest[length..];
            }
            sys::start_write_back(file.as_fd());
            self.written += size;
            self.made += 1;
        }
        Ok(())
    }

    /// Waits for a source to be on the disk, or until there is no more time for it: the kernel writes its dirty pages before it
    /// shares them, which would be taken for the reflink's cost.
    pub(super) fn settle(&self, directory: &CStr, files: usize, until: f64) -> Result<(), Error> {
        self.write_back_until(directory, files, |trial| trial.left(until).is_zero())
    }

    /// Waits for files to be on the disk.
    pub(super) fn write_back(&self, directory: &CStr, files: usize) -> Result<(), Error> {
        self.write_back_until(directory, files, |_| false)
    }

    fn write_back_until(&self, directory: &CStr, files: usize, enough: impl Fn(&Self) -> bool) -> Result<(), Error> {
        let directory = self.open_directory(self.root, directory)?;
        for index in 0..files {
            self.stop_if_cancelled()?;
            if enough(self) {
                return Ok(());
            }
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = sys::open_at(&directory, &*number(index as u64), flags, Mode::empty())
                .map_err(self.failed("open a file in"))?;
            sys::finish_write_back(file.as_fd());
        }
        Ok(())
    }

    /// Why nothing can be shared here; `None` when it can.
    fn try_reflink(&self, classes: &[Class]) -> Result<Option<Refusal>, Error> {
        let Some(class) = classes.iter().find(|class| class.size == 4 * KIB) else { return Ok(None) };
        let directory = self.open_directory(self.root, &class.name)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let src = sys::open_at(&directory, c"0", flags, Mode::empty()).map_err(self.failed("open a file in"))?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dst = sys::open_at(self.root, c"reflink", flags, Mode::RUSR | Mode::WUSR)
            .map_err(self.failed("create a file in"))?;
        let tried = retry(|| sys::reflink(src.as_fd(), dst.as_fd()));
        Ok(tried.err().map(|errno| reflink_refusal(errno, self.root).by(Strategy::Reflink)))
    }

    /// All classes in turn, by both methods in turn, so that what disturbs one disturbs the other.
    fn clone_classes(&mut self, classes: &mut [Class], reflinks: bool) -> Result<(), Error> {
        let reflink = self.reflink(0);
        for round in 0..MOST_ROUNDS {
            for index in turns(round, classes.len()) {
                let class = &mut classes[index];
                if round >= class.rounds {
                    continue;
                }
                let bytes = class.size * class.files as u64;
                let methods = [Some(Contents::Copy), (reflinks && class.size > 0).then_some(reflink)];
                let turn = if round.is_multiple_of(2) { methods } else { [methods[1], methods[0]] };
                for contents in turn.into_iter().flatten() {
                    if round > 0 && !(self.may_go_on(FILES_UNTIL, class.longest) && self.may_write(class.files, bytes))
                    {
                        return Ok(());
                    }
                    let started = Instant::now();
                    let (took, tally, out) = self.clone_batch(&class.name, contents, 1)?;
                    let per_file = took / u32::try_from(class.files).unwrap_or(1);
                    match contents {
                        Contents::Copy => {
                            class.copy.push(per_file);
                            // The room that is reserved for them would run out at the cost of the reflinks.
                            if self.on_btrfs {
                                self.write_back(&out, class.files)?;
                            }
                            if class.size == 4 * KIB && self.deletable.len() < DELETED_BATCHES {
                                self.deletable.push((out, class.files));
                            }
                        }
                        _ if tally.bytes.written == 0 => class.reflink.push(per_file),
                        _ => {}
                    }
                    class.longest = class.longest.max(started.elapsed());
                }
            }
        }
        Ok(())
    }

    pub(super) fn reflink(&self, copy_up_to_bytes: u64) -> Contents {
        Contents::Reflink { copy_up_to_bytes, tell_inlined: false }
    }

    /// Whether that does not make more than was promised.
    pub(super) fn may_write(&self, files: usize, bytes: u64) -> bool {
        self.written + bytes <= MEASURE_WRITES_AT_MOST_BYTES && self.made + files <= MOST_FILES
    }

    /// Clones the directory `name` of the staged one to a new one.
    pub(super) fn clone_batch(
        &mut self,
        name: &CStr,
        contents: Contents,
        threads: usize,
    ) -> Result<(Duration, Tally, CString), Error> {
        self.stop_if_cancelled()?;
        let src = self.open_directory(self.root, name)?;
        let out = number_after("out-", self.batches);
        self.batches += 1;
        let dst = self.make_directory(self.root, &out)?;
        let (notes, progress) = (Notes::default(), Progress::default());
        let filling = Fill {
            src_root: src.as_fd(),
            dst_root: dst.as_fd(),
            src_path: &self.path,
            dst_path: &self.path,
            paths: Paths::Below,
            files: Files::Clone(contents),
            strict: false,
            exclude: &self.exclude,
            mounts: Mounts::Cross,
            unreadable: Unreadable::Fail,
            created: self.created,
            keeps_nocow: self.on_btrfs,
            threads,
            notes: &notes,
            progress: &progress,
            cancel: self.cancel,
        };
        let started = Instant::now();
        let tally = fill(&filling, Scope::Tree)?;
        let took = started.elapsed();
        self.written += tally.bytes.written;
        self.made += usize::try_from(tally.entries.files).unwrap_or(0);
        Ok((took, tally, out))
    }

    /// What has been copied is deleted, directory by directory. What follows reckons with what that took.
    fn delete_cost(&mut self) -> Result<Option<Duration>, Error> {
        let mut times = Vec::new();
        let progress = Progress::default();
        for (name, files) in std::mem::take(&mut self.deletable) {
            let deletion = Deletion { threads: 1, progress: &progress, cancel: self.cancel, last: None };
            let started = Instant::now();
            delete(self.root, &name, &self.path, &deletion)?;
            times.push(started.elapsed() / u32::try_from(files).unwrap_or(1));
            self.made -= files;
        }
        let cost = median(&mut times);
        self.delete = self.delete.max(cost.unwrap_or_default());
        Ok(cost)
    }
}

impl Class {
    fn longest_per_file(&self) -> Duration {
        self.longest / u32::try_from(self.files).unwrap_or(1)
    }

    fn cost(&self) -> Option<FileCost> {
        let copy = median(&mut self.copy.clone())?;
        Some(FileCost { size_bytes: self.size, copy, reflink: median(&mut self.reflink.clone()) })
    }
}

/// As many as can be paid for, by the cost of an empty file, of which each step is a multiple.
pub(super) fn fewer(files: usize, create: Duration) -> usize {
    const BATCH: Duration = Duration::from_millis(25);
    let affordable = BATCH.as_nanos() / create.as_nanos().max(1);
    usize::try_from(affordable).unwrap_or(files).clamp(FEWEST_FILES, files.max(FEWEST_FILES))
}

pub(super) fn median(times: &mut [Duration]) -> Option<Duration> {
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

pub(super) fn number(number: u64) -> CString {
    CString::new(number.to_string()).unwrap_or_default()
}

pub(super) fn number_after(prefix: &str, number: usize) -> CString {
    CString::new(format!("{prefix}{number}")).unwrap_or_default()
}

/// Bytes that do not compress (xorshift64, Marsaglia 2003).
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
