//! Purposes of clones.

use std::fmt;
use std::str::FromStr;

/// The purpose of a clone, which decides how it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A developer's: it lives long, is fetched into often, and its history is read.
    Dev,
    /// A build's that needs the files of one commit, and is thrown away.
    Ci,
    /// A build's that needs the history too (versions from tags, changed paths, merge bases), and is thrown away.
    History,
    /// A developer's, of a repository with many or large files, whose old versions are hardly ever looked at.
    Blobs,
}

impl Purpose {
    /// All, in the order of the documentation.
    pub const ALL: [Purpose; 4] = [Purpose::Dev, Purpose::Ci, Purpose::History, Purpose::Blobs];

    /// Returns the word on the command line and in the repository's configuration (`calve.purpose`).
    pub fn name(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Ci => "ci",
            Self::History => "history",
            Self::Blobs => "blobs",
        }
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Purpose {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|purpose| purpose.name() == word);
        found.ok_or_else(|| "the purposes are dev, ci, history and blobs".into())
    }
}
