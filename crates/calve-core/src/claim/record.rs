//! The record of a source when a spare is built from it: the identity of each entry (docs/atomicity.md says why).
//!
//! A [`Head`] describes the spare. The body has a block for each directory, followed by the blocks of its descendants:
//! `length, path, times are recent, identity`, then for each entry `kind, name` and, unless it is a directory, its
//! identity. A directory has it in its own block. Head and body each have a BLAKE3 hash.

use std::collections::HashSet;
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use crate::error::{Error, IoContext};
use crate::options::{CloneOptions, Durability, RecordBody};
use crate::progress::CancelToken;
use crate::sys;
use crate::tree::exclude::Exclusions;
use crate::tree::fill::contents::open_contents;
use crate::tree::own::replace_record;
use crate::tree::source::Source;
use crate::tree::stable::Moment;
use crate::tree::walk::{Descent, Folder, Walker, walk, whole_tree};
use crate::vocabulary::hidden_name::is_calves_own;
use crate::vocabulary::operation::Operation;

/// The state of an entry at one moment (stat(2)). Every change of it changes its change time, which cannot be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordedState {
    pub inode: u64,
    pub changed_seconds: i64,
    pub changed_nanoseconds: u32,
    pub mode: u32,
    pub size: u64,
}

impl RecordedState {
    const BYTES: usize = 32;

    #[allow(clippy::unnecessary_cast, reason = "the fields' types differ between systems")]
    pub(crate) fn new(stat: &Stat) -> Self {
        Self {
            inode: stat.st_ino as u64,
            changed_seconds: stat.st_ctime as i64,
            changed_nanoseconds: stat.st_ctime_nsec as u32,
            mode: stat.st_mode as u32,
            size: stat.st_size as u64,
        }
    }

    fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.inode.to_le_bytes());
        to.extend_from_slice(&self.changed_seconds.to_le_bytes());
        to.extend_from_slice(&self.changed_nanoseconds.to_le_bytes());
        to.extend_from_slice(&self.mode.to_le_bytes());
        to.extend_from_slice(&self.size.to_le_bytes());
    }

    fn read(bytes: &mut Bytes<'_>) -> Option<Self> {
        Some(Self {
            inode: bytes.u64()?,
            changed_seconds: i64::from_le_bytes(bytes.array()?),
            changed_nanoseconds: u32::from_le_bytes(bytes.array()?),
            mode: u32::from_le_bytes(bytes.array()?),
            size: bytes.u64()?,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Head {
    /// The kernel's boot in which it was built: a crash may lose writes, and keep the times.
    pub(crate) boot: String,
    /// The mounts of the source and of the spare: one that was away may have been written to.
    pub(crate) mounts: [u64; 2],
    /// Since 1970.
    pub(crate) built_ns: u64,
    pub(crate) device: u64,
    pub(crate) root: RecordedState,
    /// No file data was written for it.
    pub(crate) cow: bool,
    pub(crate) entries: u64,
    pub(crate) apparent_bytes: u64,
    pub(crate) written_bytes: u64,
    body_length: u64,
    body_hash: [u8; 32],
}

const MAGIC: &[u8; 8] = b"calvesp2";
const BOOT_BYTES: usize = 8;
const HEAD_BYTES: usize = 8 + BOOT_BYTES + 8 * 4 + RecordedState::BYTES + 8 * 5 + 32 + 32;

impl Head {
    fn write(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.boot.bytes().chain(std::iter::repeat(0)).take(BOOT_BYTES));
        bytes.extend([self.mounts[0], self.mounts[1], self.built_ns, self.device].map(u64::to_le_bytes).as_flattened());
        self.root.write(&mut bytes);
        let numbers = [u64::from(self.cow), self.entries, self.apparent_bytes, self.written_bytes, self.body_length];
        bytes.extend(numbers.map(u64::to_le_bytes).as_flattened());
        bytes.extend(self.body_hash);
        bytes.extend(*blake3::hash(&bytes).as_bytes());
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (head, hash) = bytes.split_at_checked(HEAD_BYTES - 32)?;
        if head.get(..8)? != MAGIC || hash != blake3::hash(head).as_bytes() {
            return None;
        }
        let boot = head.get(8..8 + BOOT_BYTES)?;
        let mut rest = Bytes(head.get(8 + BOOT_BYTES..)?);
        Some(Self {
            boot: String::from_utf8_lossy(boot).trim_end_matches('\0').to_owned(),
            mounts: [rest.u64()?, rest.u64()?],
            built_ns: rest.u64()?,
            device: rest.u64()?,
            root: RecordedState::read(&mut rest)?,
            cow: rest.u64()? != 0,
            entries: rest.u64()?,
            apparent_bytes: rest.u64()?,
            written_bytes: rest.u64()?,
            body_length: rest.u64()?,
            body_hash: rest.array()?,
        })
    }
}

pub(crate) struct Record {
    pub(crate) head: Head,
    file: File,
}

pub(crate) const NAME: &CStr = c"record";

impl Record {
    /// Returns `None` if the record is missing or cannot be parsed.
    pub(crate) fn open(directory: BorrowedFd<'_>) -> sys::Result<Option<Self>> {
        let opened = sys::unless_missing(sys::open_at(directory, NAME, sys::FILE))?;
        let Some(mut file) = opened.map(File::from) else { return Ok(None) };
        let mut head = [0; HEAD_BYTES];
        let read = file.read_exact(&mut head);
        Ok(read.ok().and_then(|()| Head::read(&head)).map(|head| Self { head, file }))
    }

    /// Reads the body, unless `before` is it. Returns `None` if it is damaged.
    pub(crate) fn body(&self, before: Option<&Arc<RecordBody>>) -> Option<Arc<RecordBody>> {
        if let Some(before) = before.filter(|before| before.hash == self.head.body_hash) {
            return Some(Arc::clone(before));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(self.head.body_length).ok()?);
        (&self.file).take(self.head.body_length).read_to_end(&mut bytes).ok()?;
        let hash = *blake3::hash(&bytes).as_bytes();
        let is_whole = bytes.len() as u64 == self.head.body_length && hash == self.head.body_hash;
        is_whole.then(|| Arc::new(RecordBody { bytes, hash }))
    }
}

#[derive(Debug, Default)]
pub(crate) struct RecordDraft {
    /// The builder of the spare completes it.
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
    pub(crate) allocated_bytes: u64,
}

impl RecordDraft {
    /// Writes the record, which makes the spare in `directory` ready.
    pub(crate) fn write(mut self, directory: BorrowedFd<'_>, path: &Path) -> Result<(), Error> {
        self.head.body_length = self.body.len() as u64;
        self.head.body_hash = *blake3::hash(&self.body).as_bytes();
        let write = |file: &mut File| file.write_all(&self.head.write()).and_then(|()| file.write_all(&self.body));
        replace_record(directory, NAME, Durability::Cached, write).io(Operation::WriteRecord, path)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writers {
    Possible,
    None,
}

/// Records every entry of `source` that `exclude` leaves in. An entry that changed at `moment` (from
/// [`crate::tree::stable::begin`]) or later is marked: its change time would hide another change in the same tick.
pub(crate) fn take(
    source: &Source,
    exclude: &Exclusions,
    moment: Moment,
    writers: Writers,
    options: &CloneOptions,
) -> Result<RecordDraft, Error> {
    let root = rustix::fs::fstat(source.directory()).io(Operation::Stat, source.path())?;
    let threads = crate::tree::pool::thread_count(options.threads);
    let linked = Mutex::default();
    let taker = || Taker {
        source,
        exclude,
        moment,
        writers,
        linked: &linked,
        draft: RecordDraft::default(),
        block: None,
        failure: None,
        cancel: &options.cancel,
    };
    let takers = walk(&[source.directory()], vec![whole_tree(0)], threads, &options.cancel, taker)?;
    let mut taken = RecordDraft::default();
    taken.head.boot = sys::boot_identity().to_owned();
    (taken.head.device, taken.head.root) = (source.identity().0, RecordedState::new(&root));
    for mut taker in takers {
        if let Some(error) = taker.failure {
            return Err(error);
        }
        taker.close();
        taken.head.entries += taker.draft.head.entries;
        taken.head.apparent_bytes += taker.draft.head.apparent_bytes;
        taken.allocated_bytes += taker.draft.allocated_bytes;
        taken.body.append(&mut taker.draft.body);
    }
    taken.body = in_order(&taken.body);
    Ok(taken)
}

struct Taker<'a> {
    source: &'a Source,
    exclude: &'a Exclusions,
    moment: Moment,
    writers: Writers,
    /// The inodes with several names so far.
    linked: &'a Mutex<HashSet<u64>>,
    draft: RecordDraft,
    block: Option<usize>,
    failure: Option<Error>,
    cancel: &'a CancelToken,
}

impl Taker<'_> {
    fn close(&mut self) {
        let Some(start) = self.block.take() else { return };
        let length = u32::try_from(self.draft.body.len() - start - 4).unwrap_or(u32::MAX);
        self.draft.body[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }

    fn fail(&mut self, path: PathBuf, why: Result<&'static str, Errno>) {
        let path = self.source.path().join(path);
        let error = match why {
            Ok(reason) => Error::NoSpare { path, reason },
            Err(errno) => Error::io(Operation::Stat, path, errno),
        };
        self.failure.get_or_insert(error);
    }

    /// Records an entry that is not a directory. Returns the obstacle, if any.
    fn record(&mut self, folder: &Folder<'_>, name: &CStr) -> sys::Result<Option<&'static str>> {
        let stat = sys::stat_at(folder.directory, name)?;
        let kind = sys::kind(stat);
        if device(&stat) != self.source.identity().0 {
            return Ok(Some(OTHER_FILE_SYSTEM));
        }
        let recent = self.moment.may_hide_in(&stat);
        let linked = || self.linked.lock().unwrap_or_else(PoisonError::into_inner);
        // A file counts once, also if it has names outside the tree.
        let times = u64::from(stat.st_nlink < 2 || linked().insert(stat.st_ino));
        if kind == FileType::RegularFile && stat.st_size > 0 {
            self.draft.head.apparent_bytes += sys::size(&stat) * times;
            self.wait_for_writer(folder, name, &stat)?;
        }
        self.draft.allocated_bytes += sys::allocated(&stat) * times;
        self.draft.body.push(OTHER_ENTRY | if recent { RECENT } else { 0 });
        self.draft.body.extend_from_slice(name.to_bytes_with_nul());
        RecordedState::new(&stat).write(&mut self.draft.body);
        Ok(None)
    }

    /// Waits for a running write(2): it set the file's times when it began, and holds the inode's lock, which lseek(2)
    /// with SEEK_DATA takes. No call lasts an hour: none writes more than 2 GiB.
    fn wait_for_writer(&self, folder: &Folder<'_>, name: &CStr, stat: &Stat) -> sys::Result<()> {
        const LONGEST_CALL_SECONDS: i64 = 3600;
        if self.writers == Writers::None || self.moment.seconds_since(stat) > LONGEST_CALL_SECONDS {
            return Ok(());
        }
        let file = open_contents(folder.directory, name, || self.cancel.is_cancelled())?;
        match sys::seek_data(file.as_fd(), 0) {
            // All of it is a hole.
            Ok(_) | Err(Errno::NXIO) => Ok(()),
            Err(errno) => Err(errno),
        }
    }
}

#[allow(clippy::unnecessary_cast, reason = "the field's type differs between systems")]
pub(crate) fn device(stat: &Stat) -> u64 {
    stat.st_dev as u64
}

const OTHER_FILE_SYSTEM: &str = "another file system is mounted, or another subvolume is, below it";

impl Walker for Taker<'_> {
    fn directory(&mut self, folder: &Folder<'_>) -> sys::Result<()> {
        self.close();
        let stat = rustix::fs::fstat(folder.directory)?;
        if device(&stat) != self.source.identity().0 {
            self.fail(folder.path.to_path_buf(), Ok(OTHER_FILE_SYSTEM));
        }
        let RecordDraft { head, body, .. } = &mut self.draft;
        head.entries += 1;
        self.block = Some(body.len());
        body.extend_from_slice(&[0; 4]);
        body.extend_from_slice(folder.path.as_os_str().as_bytes());
        body.push(0);
        body.push(u8::from(self.moment.may_hide_in(&stat)));
        RecordedState::new(&stat).write(body);
        Ok(())
    }

    fn entry(&mut self, folder: &Folder<'_>, name: &CStr, kind: FileType) -> Descent {
        if is_calves_own(name.to_bytes()) {
            return Descent::No;
        }
        if !self.exclude.is_empty() && self.exclude.matches(&folder.node.path_of(name), kind == FileType::Directory) {
            return Descent::No;
        }
        let obstacle = match kind {
            FileType::Directory => {
                self.draft.body.push(DIRECTORY_ENTRY);
                self.draft.body.extend_from_slice(name.to_bytes_with_nul());
                return Descent::Yes;
            }
            FileType::Socket => Ok(Some("it has a socket in it")),
            _ => self.record(folder, name),
        };
        match obstacle {
            Ok(None) => self.draft.head.entries += 1,
            why => self.fail(folder.node.path_of(name), why.map(Option::unwrap_or_default)),
        }
        Descent::No
    }

    fn failed(&mut self, _tree: usize, path: PathBuf, errno: Errno) {
        self.fail(path, Err(errno));
    }
}

/// A directory's name follows.
const DIRECTORY_ENTRY: u8 = 1;
/// Name and state of any other entry follow. Earlier versions also wrote larger numbers.
const OTHER_ENTRY: u8 = 2;
/// The entry changed after the moment of the record.
const RECENT: u8 = 0x80;

pub(crate) struct Block<'b> {
    pub(crate) path: &'b Path,
    pub(crate) recent: bool,
    pub(crate) identity: RecordedState,
    entries: Bytes<'b>,
    /// The whole block, encoded.
    bytes: &'b [u8],
}

pub(crate) struct RecordedEntry<'b> {
    pub(crate) name: &'b CStr,
    /// Its state, and whether it changed too recently. `None` for a directory.
    pub(crate) known: Option<(RecordedState, bool)>,
}

impl RecordedEntry<'_> {
    pub(crate) fn kind(&self) -> FileType {
        self.known.map_or(FileType::Directory, |(identity, _)| FileType::from_raw_mode(identity.mode as _))
    }
}

/// Parses the blocks of a record, each followed by those of its descendants. `None` if the record is damaged.
pub(crate) fn blocks(body: &[u8]) -> Option<Vec<Block<'_>>> {
    let mut rest = Bytes(body);
    let mut blocks = Vec::new();
    while !rest.0.is_empty() {
        let whole = rest.0;
        let length = usize::try_from(u32::from_le_bytes(rest.array()?)).ok()?;
        let mut block = Bytes(rest.take(length)?);
        let path = Path::new(OsStr::from_bytes(block.text()?.to_bytes()));
        let recent = block.array()? != [0];
        let identity = RecordedState::read(&mut block)?;
        blocks.push(Block { path, recent, identity, entries: block, bytes: whole.get(..length + 4)? });
    }
    // Only an earlier version wrote them in any order.
    if !blocks.is_sorted_by_key(|block| block.path) {
        blocks.sort_by_key(|block| block.path);
    }
    Some(blocks)
}

/// Sorts the blocks when a record is taken, so that no reader has to.
fn in_order(body: &[u8]) -> Vec<u8> {
    match blocks(body) {
        Some(blocks) => blocks.iter().map(|block| block.bytes).collect::<Vec<_>>().concat(),
        None => body.to_vec(),
    }
}

impl<'b> Block<'b> {
    pub(crate) fn entries(&self) -> impl Iterator<Item = RecordedEntry<'b>> + use<'b> {
        let mut rest = Bytes(self.entries.0);
        std::iter::from_fn(move || {
            let [code] = rest.array()?;
            let name = rest.text()?;
            let known = match code & !RECENT {
                DIRECTORY_ENTRY => None,
                _ => Some((RecordedState::read(&mut rest)?, code & RECENT != 0)),
            };
            Some(RecordedEntry { name, known })
        })
    }
}

struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn text(&mut self) -> Option<&'b CStr> {
        let text = CStr::from_bytes_until_nul(self.0).ok()?;
        self.0 = &self.0[text.to_bytes_with_nul().len()..];
        Some(text)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}
