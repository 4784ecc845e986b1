//! Files that a report is written to.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use calve_core::ShownPath;

use super::Report;
use crate::error::{BenchError, FailureKind};
use crate::remedy::Remedy;

/// The form of an exported report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ReportForm {
    Json,
    Markdown,
    Html,
}

/// Files, one for each form that was asked for. They were writable when this was made.
#[derive(Debug)]
pub struct ReportExports(Vec<(PathBuf, ReportForm)>);

impl ReportExports {
    /// Checks the files before anything is measured. Fails if one is named twice or cannot be written. An existing file keeps its contents; a
    /// missing one stays missing.
    pub fn new(files: impl IntoIterator<Item = (PathBuf, ReportForm)>) -> Result<Self, BenchError> {
        let files: Vec<_> = files.into_iter().collect();
        for (index, (path, _)) in files.iter().enumerate() {
            if files[..index].iter().any(|(other, _)| other == path) {
                let text = format!("`{}` is named for two forms of the report", ShownPath(path));
                return Err(BenchError::stated(FailureKind::Usage, text, Remedy::NameFileForEachForm));
            }
            check_writable(path)?;
        }
        Ok(Self(files))
    }

    /// Writes all files. One that fails does not keep the others from being written.
    pub fn write(&self, report: &Report) -> Result<(), BenchError> {
        let write = |(path, form): &(PathBuf, ReportForm)| {
            let text = match form {
                ReportForm::Json => format!("{:#}\n", report.json()),
                ReportForm::Markdown => report.markdown(),
                ReportForm::Html => report.html(),
            };
            fs_err::write(path, text).map_err(|error| unwritable(path, &error))
        };
        self.0.iter().map(write).fold(Ok(()), Result::and)
    }
}

fn check_writable(path: &Path) -> Result<(), BenchError> {
    match fs_err::OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(_) => Ok(fs_err::remove_file(path)?),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            fs_err::OpenOptions::new().write(true).open(path).map(drop).map_err(|error| unwritable(path, &error))
        }
        Err(error) => Err(unwritable(path, &error)),
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> BenchError {
    let text = format!("the report cannot be written to `{}`: {error}", ShownPath(path));
    BenchError::stated(FailureKind::Failed, text, Remedy::ChooseWritableReport)
}
