//! What can go wrong.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use calve_core::Shown;

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, and where.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A program could not be started.
    #[error("cannot start {program} in {}: {source}", directory.display())]
    Start {
        /// Its name.
        program: &'static str,
        /// Where it was to run.
        directory: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// git refused or failed.
    #[error("{} failed in {}: {said}", spoken(arguments), directory.display())]
    Git {
        /// What git was asked to do.
        arguments: Vec<OsString>,
        /// Where it ran.
        directory: PathBuf,
        /// Its exit code; none when a signal ended it.
        code: Option<i32>,
        /// Its standard error.
        said: String,
    },
    /// A configuration file that cannot be used.
    #[error("`{}`, line {line}, column {column}: {reason}", Shown(path))]
    Config {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// In characters, from 1.
        column: usize,
        /// What is wrong there.
        reason: String,
    },
    /// A file or directory could not be worked on.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The clone engine refused or failed.
    #[error(transparent)]
    Clone(#[from] calve_core::Error),
}

fn spoken(arguments: &[OsString]) -> String {
    let words = arguments.iter().map(|argument| argument.to_string_lossy());
    std::iter::once("git".into()).chain(words).collect::<Vec<_>>().join(" ")
}
