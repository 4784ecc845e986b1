//! `calve __write`: the engine's part of `calve bench write`, where the npm package is not installed.

use std::path::{Path, PathBuf};
use std::time::Instant;

use calve_core::{CancelToken, Directory, WriteEntry, WriteOptions, write_files};
use serde_json::json;

use crate::cli::WriteArguments;
use crate::failure::Failure;

/// Writes files as the script of the bench does: it writes a few files first, and does not time the preparation.
pub(crate) fn run(arguments: &WriteArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let contents = vec![b'x'; usize::try_from(arguments.bytes).unwrap_or(usize::MAX)];
    write(arguments, &arguments.root.join("warm"), 20, 1, &contents, cancel)?;
    let root = arguments.root.join("files");
    let seconds = write(arguments, &root, arguments.files, arguments.directories, &contents, cancel)?;
    let document = json!({ "seconds": seconds, "stall_seconds": null, "error": null });
    Ok(fs_err::write(&arguments.result, document.to_string())?)
}

fn write(
    arguments: &WriteArguments,
    root: &Path,
    files: u64,
    directories: u64,
    contents: &[u8],
    cancel: &CancelToken,
) -> Result<f64, Failure> {
    for number in 0..directories {
        fs_err::create_dir_all(root.join(format!("d{number}")))?;
    }
    let paths: Vec<PathBuf> = (0..files).map(|n| format!("d{}/f{n}", n % directories).into()).collect();
    let entries: Vec<_> = paths.iter().map(|path| WriteEntry { path, contents }).collect();
    let mut options = WriteOptions::default();
    options.threads = Some(arguments.threads);
    options.directory = Directory::MustExist;
    options.cancel = cancel.clone();
    let began = Instant::now();
    write_files(root, &entries, options)?;
    Ok(began.elapsed().as_secs_f64())
}
