//! Where the report of a bench goes: to stdout, and to the files that were asked for.

use std::path::{Path, PathBuf};

use calve_bench::Report;
use calve_core::ShownPath;

use crate::cli::report::ReportArguments;
use crate::failure::{FAILED, Failure, USAGE};
use crate::output;

/// The form of an exported report.
#[derive(Clone, Copy)]
enum Form {
    Json,
    Markdown,
    Html,
}

/// The files to write in the end, known to be writable from the beginning; and what is printed.
pub(super) struct Outlet {
    files: Vec<(PathBuf, Form)>,
    quiet: bool,
    json: bool,
}

impl Outlet {
    pub(super) fn of(arguments: &ReportArguments) -> Result<Self, Failure> {
        let paths = [
            (&arguments.export_json, Form::Json),
            (&arguments.export_markdown, Form::Markdown),
            (&arguments.export_html, Form::Html),
        ];
        let files: Vec<_> = paths.into_iter().filter_map(|(path, form)| Some((path.clone()?, form))).collect();
        for (index, (path, _)) in files.iter().enumerate() {
            if files[..index].iter().any(|(other, _)| other == path) {
                let text = format!("`{}` is named for two forms of the report", ShownPath(path));
                return Err(Failure::stated(USAGE, text, "name a file of its own for each"));
            }
            check_writable(path)?;
        }
        Ok(Self { files, quiet: arguments.quiet, json: arguments.json })
    }

    /// Says the progress, for those who want to know.
    pub(super) fn say(&self, line: &str) {
        if !self.quiet {
            output::say(line);
        }
    }

    /// Prints and exports the report, and fails when one of the commands in it did.
    pub(super) fn finish(&self, report: &Report) -> Result<(), Failure> {
        self.give(report)?;
        Ok(report.verdict()?)
    }

    /// Writes the files, then prints the report: a closed pipe must not lose what was measured for minutes.
    fn give(&self, report: &Report) -> Result<(), Failure> {
        let write = |(path, form): &(PathBuf, Form)| {
            fs_err::write(path, Self::rendered(report, *form)).map_err(|error| unwritable(path, &error))
        };
        // One that fails does not keep the others from being written.
        let written = self.files.iter().map(write).fold(Ok(()), Result::and);
        match self.json {
            true => output::json(&report.json())?,
            false => output::result(&report.markdown())?,
        }
        written
    }

    fn rendered(report: &Report, form: Form) -> String {
        match form {
            Form::Json => format!("{:#}\n", report.json()),
            Form::Markdown => report.markdown(),
            Form::Html => report.html(),
        }
    }
}

/// Fails if `path` cannot be written, before anything is measured. An existing file keeps its contents; a missing one stays missing.
fn check_writable(path: &Path) -> Result<(), Failure> {
    match fs_err::OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(_) => Ok(fs_err::remove_file(path)?),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            fs_err::OpenOptions::new().write(true).open(path).map(drop).map_err(|error| unwritable(path, &error))
        }
        Err(error) => Err(unwritable(path, &error)),
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    let text = format!("the report cannot be written to `{}`: {error}", ShownPath(path));
    Failure::stated(FAILED, text, "name a file in a directory that is there and that you may write to")
}
