//! Errors between here and a repository elsewhere, and the next step.

use std::ffi::OsStr;
use std::path::PathBuf;

use calve_core::Shown;

use crate::error::Error;
use crate::redact::{self, Url};
use crate::remedy::Remedy;
use crate::remote::clone::purpose::Purpose;
use crate::remote::clone::recipe::Property;

/// Why a clone or a fetch failed. No message holds credentials.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// git must not be given this.
    #[error("`{url}` is no repository to clone: {why}")]
    Url {
        /// As given, without what may be secret.
        url: String,
        /// The reason.
        why: String,
    },
    /// The URL has no name for a directory in it, and none was given.
    #[error("`{0}` names no directory to clone into")]
    NoName(String),
    /// The options do not go together, or not with this repository.
    #[error("{why}")]
    Senseless {
        /// The options, and why not.
        why: String,
    },
    /// There is nothing to fetch from.
    #[error("this repository has no remote `origin` to fetch from")]
    NoRemote,
    /// The destination is there, and is not an empty directory.
    #[error("`{}` exists and is not an empty directory", Shown(.0))]
    NotEmpty(PathBuf),
    /// git is too old.
    #[error("git {version} is too old: 2.30 is the oldest that works")]
    OldGit {
        /// Its version, in its words.
        version: String,
    },
    /// The installed git cannot do what was asked for.
    #[error("git {version} has no `{feature}`, which came with git {since}")]
    Missing {
        /// The installed one.
        version: String,
        /// The option or command.
        feature: &'static str,
        /// The first version that has it.
        since: &'static str,
    },
    /// A property that was required does not hold. Nothing was made.
    #[error("the required {property} is not possible: {why}")]
    Refused {
        /// Which.
        property: Property,
        /// The finding.
        why: String,
    },
    /// A property was required that this purpose does not ask the server for.
    #[error("the required {property} is not possible: the purpose `{purpose}` asks the server for none here")]
    NotAsked {
        /// Which.
        property: Property,
        /// The purpose of the clone.
        purpose: Purpose,
    },
    /// A fetch that would cost much more than it saves.
    #[error("{why}")]
    Costly {
        /// The cost, in numbers.
        why: String,
    },
    /// git failed.
    #[error("{what} failed: {said}")]
    Git {
        /// The command, in words.
        what: String,
        /// The kind of failure, as far as git's words tell.
        trouble: TransferFailure,
        /// git's words.
        said: String,
    },
    /// The caller cancelled.
    #[error("interrupted")]
    Interrupted,
    /// A file, a directory or a program could not be used.
    #[error("{}", redact::prose(&.0.to_string()))]
    Other(Error),
}

impl From<Error> for RemoteError {
    fn from(error: Error) -> Self {
        match error {
            Error::Clone(error) => error.into(),
            error => Self::Other(error),
        }
    }
}

impl From<calve_core::Error> for RemoteError {
    fn from(error: calve_core::Error) -> Self {
        match error {
            calve_core::Error::DestinationExists(path) => Self::NotEmpty(path),
            calve_core::Error::Interrupted => Self::Interrupted,
            error => Self::Other(Error::Clone(error)),
        }
    }
}

impl From<std::io::Error> for RemoteError {
    fn from(error: std::io::Error) -> Self {
        Self::Other(Error::Io(error))
    }
}

impl RemoteError {
    pub(crate) fn url(given: &OsStr, why: &str) -> Self {
        Self::Url { url: Url::new(given).to_string(), why: why.into() }
    }

    /// Returns what the user can do next.
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Url { .. } => Remedy::GiveUrl,
            Self::NoName(_) => Remedy::NameDirectory,
            Self::Senseless { .. } => Remedy::ReadHelp,
            Self::NoRemote => Remedy::AddRemote,
            Self::NotEmpty(_) => Remedy::ChooseAnotherDirectory,
            Self::OldGit { .. } | Self::Missing { .. } => Remedy::UpdateGitOrDoWithout,
            Self::Refused { property: Property::Filter, .. } => Remedy::AllowFiltersOrDropRequirement,
            Self::Refused { property: Property::Depth, .. } => Remedy::ChooseTransportOrDropRequirement,
            Self::NotAsked { .. } => Remedy::ChoosePurposeOrDropRequirement,
            Self::Costly { .. } => Remedy::DropDepthOrForce,
            Self::Git { trouble, .. } => Remedy::Transfer(*trouble),
            Self::Interrupted => Remedy::RunAgainUnchanged,
            Self::Other(Error::Clone(calve_core::Error::ParentMissing(_))) => Remedy::CreateParent,
            Self::Other(error) => error.remedy().unwrap_or(Remedy::CheckPath),
        }
    }
}

/// The kinds of failure that git's words tell apart. git has one exit code for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferFailure {
    /// The server wants to know who asks, or does not let them in.
    Refused,
    /// There is no such repository, or nobody may know that there is.
    NoRepository,
    /// There is no such host, or nothing listens there.
    Unreachable,
    /// The repository has no such branch or tag.
    NoBranch,
    /// The repository has no such commit, or does not hand it out.
    NoCommit,
    /// The connection ended before everything had arrived.
    CutShort,
    /// The disk is full, here.
    DiskFull,
    /// Anything else.
    Unknown,
}

const DISK_FULL: &[&str] =
    &["No space left on device", "Disk quota exceeded", "Out of diskspace", "file write error", "unable to write file"];
const REFUSED: &[&str] = &[
    "Authentication failed",
    "could not read Username",
    "could not read Password",
    "terminal prompts disabled",
    "Permission denied (",
    "Host key verification failed",
    "The requested URL returned error: 401",
    "The requested URL returned error: 403",
    "HTTP 401",
    "HTTP 403",
];
const NO_BRANCH: &[&str] = &["Remote branch", "couldn't find remote ref", "Could not find remote branch"];
const NO_COMMIT: &[&str] =
    &["not our ref", "no such remote ref", "unadvertised object", "reference is not a tree", "bad object"];
const UNREACHABLE: &[&str] = &[
    "Could not resolve host",
    "Could not resolve hostname",
    "Failed to connect",
    "Connection refused",
    "unable to connect",
    "Connection timed out",
    "No route to host",
];
const CUT_SHORT: &[&str] = &[
    "early EOF",
    "unexpected disconnect",
    "hung up unexpectedly",
    "RPC failed",
    "invalid index-pack output",
    "fetch-pack: invalid",
    "transfer closed",
    "Connection reset",
    "Empty reply from server",
    "expected 'packfile'",
    "expected flush after",
    "invalid server response",
    "bad pack header",
];
const NO_REPOSITORY: &[&str] = &[
    "not found",
    "does not exist",
    "does not appear to be a git repository",
    "not a git repository",
    "no such directory",
];

impl TransferFailure {
    /// Understands what git said. More particular words come first: a cut connection says more than its cause.
    pub(crate) fn of(said: &str) -> Self {
        let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
        let kinds = [
            (DISK_FULL, Self::DiskFull),
            (REFUSED, Self::Refused),
            (NO_COMMIT, Self::NoCommit),
            (NO_BRANCH, Self::NoBranch),
            (UNREACHABLE, Self::Unreachable),
            (CUT_SHORT, Self::CutShort),
            (NO_REPOSITORY, Self::NoRepository),
        ];
        kinds.into_iter().find(|(words, _)| says(words)).map_or(Self::Unknown, |(_, kind)| kind)
    }

    /// Returns a word for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::NoRepository => "no_repository",
            Self::Unreachable => "unreachable",
            Self::NoBranch => "no_branch",
            Self::NoCommit => "no_commit",
            Self::CutShort => "cut_short",
            Self::DiskFull => "disk_full",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_git_are_understood() {
        let cases = [
            ("fatal: Authentication failed for 'http://x/'", TransferFailure::Refused),
            ("fatal: could not read Username for 'http://x': terminal prompts disabled", TransferFailure::Refused),
            ("fatal: Remote branch nope not found in upstream origin", TransferFailure::NoBranch),
            ("fatal: remote error: upload-pack: not our ref 0000", TransferFailure::NoCommit),
            ("fatal: repository 'http://x/' not found", TransferFailure::NoRepository),
            ("error: RPC failed; curl 18 transfer closed\nfatal: early EOF", TransferFailure::CutShort),
            ("fatal: write error: No space left on device\nfatal: early EOF", TransferFailure::DiskFull),
            ("fatal: unable to access 'http://x/': Failed to connect to x", TransferFailure::Unreachable),
            ("fatal: something else", TransferFailure::Unknown),
        ];
        for (said, trouble) in cases {
            assert_eq!(TransferFailure::of(said), trouble, "{said}");
        }
    }
}
