//! The engine's part, where the npm package is not installed: a process of its own for each run, as Node has.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use calve_core::{CancelToken, Directory, WriteEntry, WriteOptions, write_files};
use serde::Serialize;

use super::ways::Task;
use crate::error::BenchError;

/// One timed run of the engine. `ways.mjs` does the same with Node.
#[derive(Debug)]
pub struct EngineRun<'a> {
    /// The threads that write.
    pub threads: NonZeroUsize,
    /// A directory of the run's own, which it makes.
    pub root: &'a Path,
    /// The number of files.
    pub files: u64,
    /// The bytes of each.
    pub bytes: u64,
    /// The number of directories that they are in.
    pub directories: u64,
    /// The file that the time is written to, as JSON.
    pub result: &'a Path,
}

/// The result, in the form of the script.
#[derive(Serialize)]
struct EngineResult {
    seconds: f64,
    stall_seconds: Option<f64>,
    error: Option<String>,
}

impl EngineRun<'_> {
    /// Writes a few files first, then times the rest. Creating the directories is not timed.
    pub fn run(&self, cancel: &CancelToken) -> Result<(), BenchError> {
        let contents = vec![b'x'; usize::try_from(self.bytes).unwrap_or(usize::MAX)];
        let few = Task { files: 20, bytes: self.bytes, directories: 1 };
        self.write(&self.root.join("warm"), &few, &contents, cancel)?;
        let all = Task { files: self.files, bytes: self.bytes, directories: self.directories };
        let seconds = self.write(&self.root.join("files"), &all, &contents, cancel)?;
        let result = EngineResult { seconds, stall_seconds: None, error: None };
        Ok(fs_err::write(self.result, serde_json::to_vec(&result).map_err(std::io::Error::from)?)?)
    }

    fn write(&self, root: &Path, task: &Task, contents: &[u8], cancel: &CancelToken) -> Result<f64, BenchError> {
        for number in 0..task.directories {
            fs_err::create_dir_all(root.join(format!("d{number}")))?;
        }
        let paths: Vec<PathBuf> = (0..task.files).map(|n| format!("d{}/f{n}", n % task.directories).into()).collect();
        let entries: Vec<_> = paths.iter().map(|path| WriteEntry { path, contents }).collect();
        let mut options = WriteOptions::default();
        options.threads = Some(self.threads);
        options.directory = Directory::MustExist;
        options.cancel = cancel.clone();
        let began = Instant::now();
        write_files(root, &entries, options)?;
        Ok(began.elapsed().as_secs_f64())
    }
}
