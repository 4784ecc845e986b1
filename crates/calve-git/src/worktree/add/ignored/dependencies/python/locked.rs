//! The packages that lockfiles of Python name.

/// The group of what the project itself needs. The others are for development, documentation and the like, or extras.
pub(super) const MAIN: &str = "";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Locked {
    /// Normalised.
    pub(super) name: String,
    /// `None`: any. It may end in `.*`.
    pub(super) version: Option<String>,
    pub(super) revision: Option<String>,
    /// Where it is wanted: an environment marker.
    pub(super) marker: Option<String>,
    /// The groups that need it. None: it is not known who needs it, and it may be missing.
    pub(super) groups: Vec<String>,
}

/// Returns the name that all spellings of a name have in common (PEP 503).
pub(super) fn normalised(name: &str) -> String {
    let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}
