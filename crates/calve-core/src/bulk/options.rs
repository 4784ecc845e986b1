use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use crate::error::Error;
use crate::progress::{CancelToken, Progress};

/// One file to be written.
#[derive(Debug, Clone, Copy)]
pub struct WriteEntry<'a> {
    /// Relative to the root, without `..`.
    pub path: &'a Path,
    /// The whole contents.
    pub contents: &'a [u8],
}

/// The treatment of an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExistingFile {
    /// Its contents are replaced; mode, owner and other names stay. With [`Placement::Rename`] it is a new file, which
    /// keeps what [`ReplacedFile::keep_in`](crate::internal::ReplacedFile::keep_in) says.
    #[default]
    Overwrite,
    /// It is an error.
    Refuse,
}

/// The rule for missing directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Directory {
    /// A missing directory is an error.
    #[default]
    MustExist,
    /// It is created, with those above it and the root itself.
    Make,
}

/// When files have to be on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flush {
    /// When the operating system writes them back.
    #[default]
    Never,
    /// All when [`Writer::finish`](super::Writer::finish) returns: one syncfs(2), if any, which also writes other data.
    AtEnd,
    /// Each file before its thread begins the next (fsync(2)), and then their directory.
    EachFile,
}

/// How a file gets its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placement {
    /// It has its name from the beginning, so readers may see part of it.
    #[default]
    InPlace,
    /// It is written beside its name and renamed, so the name is absent (or as it was) or complete. Needs a few more
    /// calls per file. A killed process may leave one `.calve-write-*` per thread.
    Rename,
}

/// The reaction to an error with one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// The others are not begun. Written files stay.
    #[default]
    Stop,
    /// The others are written; the report has the errors.
    Collect,
}

/// How files are to be written.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// Worker threads. By default one per processor, at most 8, two per directory, and one per 16 files. The first few
    /// thousand of many files try different numbers, and the rest get the fewest that were fastest.
    pub threads: Option<NonZeroUsize>,
    /// Permission bits of new files, less the umask: 0o666.
    pub mode: u32,
    /// Existing files.
    pub existing: ExistingFile,
    /// Missing directories.
    pub directory: Directory,
    /// When files have to be on the disk.
    pub flush: Flush,
    /// How files get their names.
    pub placement: Placement,
    /// The reaction to a file that cannot be written.
    pub on_error: OnError,
    /// Counters that another thread may read.
    pub progress: std::sync::Arc<Progress>,
    /// Ends the writing early. Written files stay; no file is left half written, unless it was there before.
    pub cancel: CancelToken,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            threads: None,
            mode: 0o666,
            existing: ExistingFile::default(),
            directory: Directory::default(),
            flush: Flush::default(),
            placement: Placement::default(),
            on_error: OnError::default(),
            progress: std::sync::Arc::default(),
            cancel: CancelToken::default(),
        }
    }
}

/// A file that could not be written.
#[derive(Debug)]
pub struct WriteFailure {
    /// The index of the entry, counted over all batches.
    pub index: u64,
    /// The reason.
    pub error: Error,
}

/// The files that were written.
#[derive(Debug, Default)]
pub struct WriteReport {
    /// Files written. If overwriting is permitted, only the later of two entries with one path in a batch is.
    pub files: u64,
    /// Their contents, in bytes.
    pub bytes: u64,
    /// Directories made.
    pub directories: u64,
    /// The most threads that worked at a time.
    pub threads: usize,
    /// With [`OnError::Collect`], in the order of the entries.
    pub failures: Vec<WriteFailure>,
    /// From the opening to the return.
    pub elapsed: Duration,
}
