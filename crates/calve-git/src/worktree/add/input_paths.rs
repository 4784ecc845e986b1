//! The paths at which a planned worktree's services may have input files.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::error::Result;
use crate::git::Git;
use crate::paths::{path_of, plain};
use crate::worktree::tracked::index::{Index, SYMLINK};

/// PATH_MAX, which limits a link's target.
const LONGEST_LINK_BYTES: u64 = 4096;

#[derive(Debug)]
pub(crate) struct InputPaths {
    patterns: Vec<PathBuf>,
    globs: GlobSet,
}

impl InputPaths {
    /// Follows the links of the commit that are inputs or lead to them.
    pub(crate) fn find(mut patterns: Vec<PathBuf>, index: &Index, git: Git) -> Result<Arc<Self>> {
        let mut unread: Vec<_> = index.entries.iter().filter(|entry| entry.mode == SYMLINK).collect();
        loop {
            let paths = Self::new(patterns);
            let (links, others): (Vec<_>, Vec<_>) =
                unread.into_iter().partition(|link| paths.may_have(&path_of(&link.path), true));
            unread = others;
            let oids: Vec<String> = links.iter().map(|link| link.hex()).collect();
            let contents = git.blobs(&oids, LONGEST_LINK_BYTES)?;
            let mut targets: Vec<PathBuf> = links
                .iter()
                .zip(contents)
                .filter_map(|(link, target)| Some(plain(&path_of(&link.path).with_file_name(path_of(&target?)))))
                .collect();
            targets.retain(|target| !paths.patterns.contains(target));
            if targets.is_empty() {
                return Ok(Arc::new(paths));
            }
            patterns = [paths.patterns, targets].concat();
        }
    }

    fn new(patterns: Vec<PathBuf>) -> Self {
        let mut globs = GlobSetBuilder::new();
        for pattern in patterns.iter().filter_map(|pattern| pattern.to_str()) {
            // A file's name may be an invalid pattern.
            if let Ok(glob) = GlobBuilder::new(pattern).literal_separator(true).build() {
                globs.add(glob);
            }
        }
        Self { patterns, globs: globs.build().unwrap_or_default() }
    }

    /// Returns whether an entry may be an input, lead to one, or decide whether git ignores one.
    pub(crate) fn may_have(&self, path: &Path, is_directory: bool) -> bool {
        let may_be = |pattern: &PathBuf| {
            let has_wildcard = |part: &&OsStr| part.as_encoded_bytes().iter().any(|byte| b"*?[{".contains(byte));
            let leads: PathBuf = pattern.iter().take_while(|part| !has_wildcard(part)).collect();
            path.starts_with(pattern) || is_directory && (leads.starts_with(path) || path.starts_with(&leads))
        };
        path.ends_with(".gitignore") || self.globs.is_match(path) || self.patterns.iter().any(may_be)
    }
}
