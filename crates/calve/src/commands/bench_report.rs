//! Where the report of a bench goes: to stdout, and to the files that were asked for.

use calve_bench::{Report, ReportExports, ReportForm};

use crate::cli::report::ReportArguments;
use crate::failure::Failure;
use crate::output;

pub(super) struct Outlet {
    exports: ReportExports,
    quiet: bool,
    json: bool,
}

impl Outlet {
    pub(super) fn of(arguments: &ReportArguments) -> Result<Self, Failure> {
        let paths = [
            (&arguments.export_json, ReportForm::Json),
            (&arguments.export_markdown, ReportForm::Markdown),
            (&arguments.export_html, ReportForm::Html),
        ];
        let exports = ReportExports::new(paths.into_iter().filter_map(|(path, form)| Some((path.clone()?, form))))?;
        Ok(Self { exports, quiet: arguments.quiet, json: arguments.json })
    }

    /// Says the progress, for those who want to know.
    pub(super) fn say(&self, line: &str) {
        if !self.quiet {
            output::say(line);
        }
    }

    /// Exports and prints the report, and fails when one of the commands in it did. The files are first: a closed pipe must not lose what was
    /// measured for minutes.
    pub(super) fn finish(&self, report: &Report) -> Result<(), Failure> {
        let written = self.exports.write(report);
        match self.json {
            true => output::json(&report.json())?,
            false => output::result(&report.markdown())?,
        }
        written?;
        Ok(report.verdict()?)
    }
}
