use strum::{Display, EnumString, VariantNames};

/// A clone's purpose, which decides how it is made: a word on the command line, kept in git's `calve.purpose` setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Purpose {
    /// For a developer: it lives long, is fetched into often, and its history is read.
    Dev,
    /// For a build that needs the files of one commit. It is thrown away.
    Ci,
    /// For a build that also needs history (versions from tags, changed paths, merge bases). It is thrown away.
    History,
    /// For a developer of a repository with many or large files, whose old versions are hardly ever read.
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
