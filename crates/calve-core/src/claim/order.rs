//! The order of a record's directories: each is followed by its descendants.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Directories with their descendants, to be queried in the order of a record.
#[derive(Default)]
pub(crate) struct Subtrees {
    roots: HashSet<Vec<u8>>,
    /// The root that the last queried directory is in.
    within: Option<Vec<u8>>,
}

impl Subtrees {
    pub(crate) fn insert(&mut self, path: &Path) {
        self.roots.insert(path.as_os_str().as_bytes().to_vec());
    }

    /// Returns whether a directory is one of the roots or below one.
    pub(crate) fn has(&mut self, directory: &Path) -> bool {
        if self.roots.is_empty() {
            return false;
        }
        let path = directory.as_os_str().as_bytes();
        let is_below = |root: &Vec<u8>| {
            root.is_empty() || path.strip_prefix(root.as_slice()).is_some_and(|rest| rest.first() == Some(&b'/'))
        };
        if self.within.as_ref().is_some_and(is_below) {
            return true;
        }
        let is_root = self.roots.contains(path);
        if is_root {
            self.within = Some(path.to_vec());
        }
        is_root
    }

    pub(crate) fn are_above(&self, path: &Path) -> bool {
        path.ancestors().skip(1).any(|above| self.roots.contains(above.as_os_str().as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_followed_by_what_is_below_it() {
        let ordered = ["", "a", "a/b", "a/b/c", "a/b-c", "a-b", "a-b/c", "aa", "b"];
        for (at, one) in ordered.iter().enumerate() {
            for (other_at, other) in ordered.iter().enumerate() {
                assert_eq!(Path::new(one).cmp(Path::new(other)), at.cmp(&other_at), "{one} {other}");
            }
        }
        let mut subtrees = Subtrees::default();
        subtrees.insert(Path::new("a/b"));
        subtrees.insert(Path::new("aa"));
        let inside: Vec<&str> = ordered.into_iter().filter(|path| subtrees.has(Path::new(path))).collect();
        assert_eq!(inside, ["a/b", "a/b/c", "aa"]);
        assert!(subtrees.are_above(Path::new("a/b/c/d")) && !subtrees.are_above(Path::new("a/b")));
    }
}
