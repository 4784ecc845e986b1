//! The one place that turns what went wrong into words and an exit code.

use std::io;
use std::process::ExitCode;

use calve_core::Error;

use crate::output;

pub(crate) const FAILED: u8 = 1;
pub(crate) const USAGE: u8 = 2;
pub(crate) const REFUSED: u8 = 3;
pub(crate) const INTERRUPTED: u8 = 130;

/// Why the program ends with another code than 0.
#[derive(Debug)]
pub(crate) enum Failure {
    Core(Error),
    /// The command line makes no sense.
    Usage(String),
    Io(io::Error),
    /// The result could not be printed. What was asked for was done.
    Output(io::Error),
    /// Ended early by a signal, with what that leaves to do.
    Interrupted(&'static str),
    /// Some of several operands failed, each reported when it did; the worst code among them.
    Reported(u8),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Core(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Failure {
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Core(Error::Interrupted) | Self::Interrupted(_) => INTERRUPTED,
            Self::Core(Error::RequirementRefused { .. }) => REFUSED,
            Self::Core(Error::Pattern { .. }) | Self::Usage(_) => USAGE,
            Self::Core(_) | Self::Io(_) | Self::Output(_) => FAILED,
            Self::Reported(code) => *code,
        }
    }

    /// Prints the error and its hint, and says how the program ends.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Self::Core(error) => output::error(&error.to_string(), error.hint().as_deref()),
            Self::Usage(text) => output::error(text, Some("see `calve --help`")),
            Self::Io(error) => output::error(&error.to_string(), None),
            Self::Output(error) => {
                let hint = "only the report is lost: what was asked for was done";
                output::error(&format!("write the report to stdout: {error}"), Some(hint));
            }
            Self::Interrupted(hint) => output::error(&Error::Interrupted.to_string(), Some(hint)),
            Self::Reported(_) => {}
        }
        ExitCode::from(self.code())
    }
}
