//! Selects a donor's entries for the new worktree: the clone engine asks about each path.

use std::collections::{HashMap, HashSet};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use calve_core::Selection;
use calve_core::options::{Decision, EntryDecider, EntrySelector};

use crate::paths::path_of;
use crate::worktree::add::ignored::left_behind;
use crate::worktree::add::ignored::rules::Rules;
use crate::worktree::status::{GitPath, UntrackedEntry, split};

/// The decision about one name in a directory that is taken in part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameDecision {
    File,
    /// The directory. Its entries are decided one by one.
    Inside,
    /// The entry, and everything in it that the rules allow.
    Whole,
}

#[derive(Debug, Default)]
struct Directory {
    names: HashMap<Vec<u8>, NameDecision>,
    /// Unlisted names are taken too: it is in a directory that is taken as a whole.
    rest: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Selector {
    /// Directories that are taken in part. The root is always one.
    directories: HashMap<GitPath, Directory>,
    whole: HashSet<GitPath>,
    pub(crate) rules: Rules,
    nested: HashSet<PathBuf>,
    /// Entries that stay, although the directory around them is taken as a whole.
    staying: HashSet<PathBuf>,
    pointers: Mutex<Vec<PathBuf>>,
}

impl Selector {
    /// Takes these roots, of which one may be inside another.
    pub(crate) fn new<'r>(
        rules: Rules,
        nested: HashSet<PathBuf>,
        staying: HashSet<PathBuf>,
        roots: impl Iterator<Item = &'r UntrackedEntry> + Clone,
    ) -> Selector {
        let path = |root: &'r UntrackedEntry| root.path.as_os_str().as_bytes();
        let whole = roots.clone().filter(|root| root.is_directory).map(|root| path(root).to_vec()).collect();
        let mut plan = Selector { whole, rules, nested, staying, ..Selector::default() };
        plan.directories.insert(Vec::new(), Directory::default());
        roots.for_each(|root| plan.insert(path(root), NameDecision::Whole));
        plan
    }

    pub(crate) fn file(&mut self, path: &[u8]) {
        self.insert(path, NameDecision::File);
    }

    fn insert(&mut self, path: &[u8], take: NameDecision) {
        let (above, name) = split(path);
        self.open(above).names.insert(name.to_vec(), take);
    }

    fn open(&mut self, path: &[u8]) -> &mut Directory {
        if !self.directories.contains_key(path) {
            let (above, name) = split(path);
            let parent = self.open(above);
            parent.names.entry(name.to_vec()).or_insert(NameDecision::Inside);
            let is_in_whole = parent.rest;
            // The rules judge a directory once, when it is entered: if they leave it, only listed names are taken.
            let stays = |path: &Path| self.staying.contains(path) || self.rules.leave(path, true).is_some();
            let rest = self.whole.contains(path) || is_in_whole && !stays(&path_of(path));
            self.directories.insert(path.to_vec(), Directory { names: HashMap::new(), rest });
        }
        self.directories.entry(path.to_vec()).or_default()
    }

    /// Decides about an entry. `known`: its directory's record, `None` if whole. Nothing is asked below a left-out one.
    fn decide(&self, known: Option<&Directory>, path: &Path, name: &[u8], is_directory: bool) -> Decision {
        let listed = known.and_then(|known| known.names.get(name)).copied();
        let is_in_whole = known.is_none_or(|known| known.rest);
        let Some(take) = listed.or(is_in_whole.then_some(NameDecision::Whole)) else { return Decision::Leave };
        match take {
            NameDecision::File if is_directory => Decision::Leave,
            NameDecision::Inside if !is_directory => Decision::Leave,
            NameDecision::File | NameDecision::Inside => match &self.rules.only {
                Some(only) if !only.may_have(path, is_directory) => Decision::Leave,
                _ => Decision::Take,
            },
            NameDecision::Whole if self.staying.contains(path) => Decision::Leave,
            NameDecision::Whole if is_directory && self.nested.contains(path) => {
                Decision::LeaveBecause(left_behind::NESTED_WORKTREE)
            }
            NameDecision::Whole => self.by_rules(path, is_directory),
        }
    }

    fn by_rules(&self, path: &Path, is_directory: bool) -> Decision {
        let Some(reason) = self.rules.leave(path, is_directory) else { return Decision::Take };
        if reason == left_behind::POINTER {
            self.pointers.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_path_buf());
        }
        Decision::LeaveBecause(reason)
    }

    /// Returns the `.git` files that were left out: each is in a worktree, or a submodule, of another repository.
    pub(crate) fn pointers(&self) -> Vec<PathBuf> {
        self.pointers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl EntrySelector for Selector {
    fn choose(&self, path: &Path, is_directory: bool) -> Decision {
        let (above, name) = split(path.as_os_str().as_bytes());
        self.decide(self.directories.get(above), path, name, is_directory)
    }

    fn inside<'a>(&'a self, directory: &Path) -> Box<EntryDecider<'a>> {
        let known = self.directories.get(directory.as_os_str().as_bytes());
        Box::new(move |path, is_directory| self.decide(known, path, split(path.as_os_str().as_bytes()).1, is_directory))
    }
}

pub(crate) fn selection(plan: &Arc<Selector>) -> Selection {
    Selection::from(Arc::clone(plan) as Arc<dyn EntrySelector>)
}

/// Returns a selection by the rules alone, for a directory of the donor that is cloned to `at`.
pub(crate) fn rules_below(plan: &Arc<Selector>, at: &Path) -> Selection {
    let (plan, at) = (Arc::clone(plan), at.to_path_buf());
    Selection::new(move |path, is_directory| plan.by_rules(&at.join(path), is_directory))
}

/// Returns the same for another worktree's directory, whose `.git` files are no pointers of the donor's.
pub(crate) fn rules_elsewhere(plan: &Arc<Selector>, at: &Path) -> Selection {
    let (plan, at) = (Arc::clone(plan), at.to_path_buf());
    Selection::new(move |path, is_directory| {
        plan.rules.leave(&at.join(path), is_directory).map_or(Decision::Take, Decision::LeaveBecause)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_roots_and_what_is_between_are_told_apart() {
        let nested = HashSet::from([PathBuf::from("cache/wt")]);
        let root = |path: &str, is_directory| UntrackedEntry { path: path.into(), is_directory };
        let roots = [root("cache/deep/x", false), root("cache", true), root("a/b/out", true), root(".env", false)];
        let staying = HashSet::from(["cache/log".into(), "cache/out".into()]);
        let mut plan = Selector::new(Rules::default(), nested, staying, roots.iter());
        plan.file(b"a/file");
        plan.file(b"cache/deep/tracked");
        plan.file(b"cache/out/tracked");
        let taken = |path: &str, is_directory| {
            let path = Path::new(path);
            let decision = plan.choose(path, is_directory);
            assert_eq!(plan.inside(path.parent().unwrap())(path, is_directory), decision, "{path:?}");
            decision == Decision::Take
        };
        for (path, is_directory, expected) in [
            ("a", true, true),
            ("a", false, false),
            ("a/file", false, true),
            ("a/file", true, false),
            ("a/other", false, false),
            ("a/b", true, true),
            ("a/b/x", true, false),
            ("a/b/out", true, true),
            ("a/b/out/deep/x", false, true),
            ("cache", true, true),
            ("cache/x", false, true),
            ("cache/deep", true, true),
            ("cache/deep/tracked", false, true),
            ("cache/deep/beside", false, true),
            ("cache/wt", true, false),
            ("cache/log", false, false),
            ("cache/out", true, true),
            ("cache/out/tracked", false, true),
            ("cache/out/beside", false, false),
            (".env", false, true),
            (".git", true, false),
        ] {
            assert_eq!(taken(path, is_directory), expected, "{path}");
        }
    }

    #[test]
    fn beside_a_tracked_file_in_a_directory_of_secrets_nothing_is_taken() {
        let rules = Rules { secrets: crate::config::Secrets::Leave, ..Rules::default() };
        let root = UntrackedEntry { path: "ign".into(), is_directory: true };
        let mut plan = Selector::new(rules, HashSet::new(), HashSet::new(), std::iter::once(&root));
        plan.file(b"ign/.env.d/tracked");
        let taken = ["ign/.env.d/tracked", "ign/.env.d/prod", "ign/x"]
            .map(|path| plan.choose(Path::new(path), false) == Decision::Take);
        assert_eq!(taken, [true, false, true]);
    }
}
