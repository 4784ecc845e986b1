//! Which entries are left out.

use std::ffi::CStr;
use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::error::Error;
use crate::options::{Selected, Selection};

/// Patterns in the manner of gitignore: without a slash they match a name in any directory, with one a path from the root; a
/// trailing slash matches directories only.
pub(crate) struct Exclude {
    anything: GlobSet,
    directories: GlobSet,
    select: Option<Selection>,
    empty: bool,
}

impl Exclude {
    pub(crate) fn new(patterns: &[String]) -> Result<Self, Error> {
        let mut anything = GlobSetBuilder::new();
        let mut directories = GlobSetBuilder::new();
        for pattern in patterns {
            let invalid = |reason: String| Error::Pattern { pattern: pattern.clone(), reason };
            let (body, set) = match pattern.strip_suffix('/') {
                Some(body) => (body, &mut directories),
                None => (pattern.as_str(), &mut anything),
            };
            let glob = match body.strip_prefix('/') {
                Some(anchored) => anchored.to_owned(),
                None if body.contains('/') => body.to_owned(),
                None => format!("**/{body}"),
            };
            if body.trim_matches('/').is_empty() {
                return Err(invalid("it names nothing".into()));
            }
            let glob = GlobBuilder::new(&glob)
                .literal_separator(true)
                .build()
                .map_err(|error| invalid(error.kind().to_string()))?;
            set.add(glob);
        }
        let build = |set: GlobSetBuilder| {
            set.build().map_err(|error| Error::Pattern { pattern: String::new(), reason: error.to_string() })
        };
        Ok(Self {
            anything: build(anything)?,
            directories: build(directories)?,
            select: None,
            empty: patterns.is_empty(),
        })
    }

    /// The same, and of what is then left only what is selected.
    pub(crate) fn and_select(mut self, select: Option<Selection>) -> Self {
        self.empty &= select.is_none();
        self.select = select;
        self
    }

    /// True when nothing is left out: callers then need not know paths.
    pub(crate) fn is_empty(&self) -> bool {
        self.empty
    }

    pub(crate) fn matches(&self, path: &Path, is_directory: bool) -> bool {
        self.of(path, is_directory) != Selected::Take
    }

    pub(crate) fn of(&self, path: &Path, is_directory: bool) -> Selected {
        if self.anything.is_match(path) || is_directory && self.directories.is_match(path) {
            return Selected::LeaveBecause("excluded");
        }
        self.select.as_ref().map_or(Selected::Take, |select| select.of(path, is_directory))
    }
}

/// Whether a name is a staged tree, trash, an overlay's place or the lock of one: whoever made it, on whatever machine, it is no
/// part of what a user wants cloned.
pub(crate) fn is_calves_own(name: &CStr) -> bool {
    is_calves_own_text(name.to_bytes())
}

/// The same, for a name that is no C string.
pub(crate) fn is_calves_own_text(name: &[u8]) -> bool {
    const KINDS: [&[u8]; 3] = [b"staging-", b"trash-", b"overlay-"];
    name.first() == Some(&b'.')
        && name.strip_prefix(b".calve-").is_some_and(|rest| KINDS.iter().any(|kind| rest.starts_with(kind)))
}

/// Why such a name is left out.
pub(crate) const CALVES_OWN: &str = "calve's own";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calves_own_names_are_known() {
        for name in [c".calve-trash-0-a-b-c", c".calve-staging-7-x.lock", c".calve-overlay-1"] {
            assert!(is_calves_own(name), "{name:?}");
        }
        for name in [c".calve.toml", c".calve-notes", c"calve-trash-0", c".cargo", c".calve-trash"] {
            assert!(!is_calves_own(name), "{name:?}");
        }
    }

    #[test]
    fn patterns_match_as_gitignore_does() {
        let exclude = |pattern: &str| Exclude::new(&[pattern.to_owned()]).unwrap();
        let cases = [
            ("*.log", "a/b.log", false, true),
            ("*.log", "a.logs", false, false),
            ("/build", "build", true, true),
            ("/build", "a/build", true, false),
            ("a/*.c", "a/x.c", false, true),
            ("a/*.c", "a/b/x.c", false, false),
            ("cache/", "x/cache", true, true),
            ("cache/", "x/cache", false, false),
            ("**/tmp/x", "a/b/tmp/x", false, true),
        ];
        for (pattern, path, is_directory, expected) in cases {
            let matched = exclude(pattern).matches(Path::new(path), is_directory);
            assert_eq!(matched, expected, "{pattern} on {path}");
        }
        assert!(Exclude::new(&["[".into()]).is_err());
        assert!(Exclude::new(&["/".into()]).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn fuzz_patterns() {
        let seeds: [&[u8]; 5] = [
            b"*.log\n/build/\n!keep",
            b"a/**/b\nc?[a-z]{x,y}",
            b"node_modules",
            b"\\!x\n# comment",
            b"**/**/**/a*b*c*d*e",
        ];
        calve_testkit::fuzz(&seeds, |input| {
            let text = String::from_utf8_lossy(&input[..input.len().min(2000)]);
            let patterns: Vec<String> = text.lines().map(Into::into).collect();
            if let Ok(exclude) = Exclude::new(&patterns) {
                exclude.matches(Path::new("a/node_modules/b.log"), false);
                exclude.matches(Path::new("aaaaaaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbbbcccccccccccccccccccd"), true);
            }
        });
    }
}
