use strum::{Display, EnumString, VariantNames};

/// The purpose of a clone, which decides how it is made: a word on the command line, and in the repository's configuration (`calve.purpose`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase")]
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
    pub const NAMES: &[&str] = Self::VARIANTS;
}

/// A requirement that the server has to honour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum Property {
    Filter,
    Depth,
}
