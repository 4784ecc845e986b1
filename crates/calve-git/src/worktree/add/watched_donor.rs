//! The status of a donor that a watcher knows. git is asked only about the paths that it has to look at.
//!
//! `git status` looks at every tracked file and lists every directory with tracked files. The record of a donor's spare has every entry, and
//! the watcher knows which of them may have changed since. With git's index, the record shows which tracked files are as git last found
//! them, and where untracked entries are. git is asked about all else, and all untracked entries: only git knows what it ignores.

use std::collections::HashMap;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use calve_core::CancelToken;
use calve_core::internal::{EntryKind, ListedEntry, RecordedTree, joined};
use calve_core::options::SpareUse;
use calve_core::spares::{SpareSource, Spares};

use crate::error::Result;
use crate::git::Git;
use crate::worktree::add::request::AddRequest;
use crate::worktree::status::{GitPath, Status, split};
use crate::worktree::tracked::index::{self, GITLINK, Index, IndexEntry};

/// A watched donor, with an index that is exactly its commit's.
pub(crate) struct WatchedDonor {
    pub(crate) source: RecordedTree,
    pub(crate) index: Index,
    pub(crate) index_path: PathBuf,
    /// The donor's commit has the same files as the new worktree's.
    is_same_tree: bool,
}

impl WatchedDonor {
    /// Collects the known facts about the donor. `None` if git has to look at all of it.
    pub(crate) fn find(request: &AddRequest, spare: &SpareUse) -> Result<Option<WatchedDonor>> {
        let AddRequest { repository, donor, target, .. } = request;
        // If the file system takes several names for one, git's own rules tell which is tracked.
        if request.provenance.is_untrusted() || request.is_sparse || repository.is_set("core.ignorecase") {
            return Ok(None);
        }
        let spares = Spares::at(&spare.home);
        if !spares.are_known(&SpareSource::Directory(donor.clone()))? {
            return Ok(None);
        }
        let trees = ["HEAD", &target.oid].map(|commit| format!("{commit}^{{tree}}"));
        let (source, trees, index) = std::thread::scope(|scope| {
            let source = scope.spawn(|| spares.watched_listing(donor, &spare.made_without, &CancelToken::default()));
            let trees = scope.spawn(|| Git::at(donor).output(&["rev-parse", &trees[0], &trees[1]]));
            let index = request.donor_index().and_then(|path| Ok((Index::read(&path, repository.hash_bytes())?, path)));
            (joined(source), joined(trees), index)
        });
        let (Some(source), trees, (index, index_path)) = (source?, trees?, index?) else { return Ok(None) };
        let trees: Vec<&[u8]> = trees.stdout.split(|&byte| byte == b'\n').collect();
        let [head, wanted, ..] = trees.as_slice() else { return Ok(None) };
        let own = index.tree.as_deref().map(index::hex);
        if own.is_none_or(|own| own.as_bytes() != *head) {
            return Ok(None);
        }
        Ok(Some(WatchedDonor { source, index, index_path, is_same_tree: head == wanted }))
    }

    /// Returns the index of the new worktree's commit, if it can be made from the donor's.
    pub(crate) fn commit_index(&self) -> Option<Index> {
        if self.is_same_tree { self.index.of_its_tree() } else { None }
    }

    /// Returns the donor's status, `None` if git has to look at everything.
    pub(crate) fn status(&self, git: &Git) -> Option<Result<Status>> {
        let paths = to_look_at(&self.source, &self.index)?;
        Some(if paths.is_empty() { Ok(Status::default()) } else { Status::of_paths(git, &paths) })
    }
}

/// git compares each path of the index with each one that it is asked about.
const MOST_PATHS: usize = 64;

/// The tracked files in a directory: their names, and their positions in the index.
type Folder<'i> = Vec<(&'i [u8], usize)>;

/// Returns the paths that git has to look at, with descendants. `None` if too many, or the index has more than files.
fn to_look_at(known: &RecordedTree, index: &Index) -> Option<Vec<GitPath>> {
    let is_file = |entry: &IndexEntry| {
        entry.stage == 0 && !entry.is_special && entry.mode != GITLINK && entry.directory().is_none()
    };
    if index.is_partial || !index.entries.iter().all(is_file) {
        return None;
    }
    let folders = folders(index);
    let mut seen = vec![false; index.entries.len()];
    let (mut paths, mut is_root_unsure): (Vec<GitPath>, bool) = (Vec::new(), false);
    let mut unsure = Vec::new();
    let visit = |folder: &Path, name: &CStr, kind: EntryKind, now: ListedEntry| {
        // git leaves `.git` alone wherever it is.
        if name.to_bytes().eq_ignore_ascii_case(b".git") || paths.len() > MOST_PATHS {
            return;
        }
        let bytes = folder.as_os_str().as_bytes();
        let names = folders.get(bytes).map_or(&[][..], Vec::as_slice);
        if let Ok(at) = names.binary_search_by_key(&name.to_bytes(), |(name, _)| name)
            && let ListedEntry::Other(state) = &now
            && index.is_unchanged(names[at].1, state)
        {
            seen[names[at].1] = true;
            return;
        }
        let name = name.to_bytes();
        let path = if bytes.is_empty() { name.to_vec() } else { [bytes, b"/", name].concat() };
        if kind == EntryKind::Directory && now == ListedEntry::Directory && folders.contains_key(path.as_slice()) {
            return;
        }
        paths.push(path);
    };
    let is_whole = known.list(
        |folder| folders.contains_key(folder.as_os_str().as_bytes()),
        visit,
        |folder| {
            is_root_unsure |= folder.as_os_str().is_empty();
            unsure.push(folder.as_os_str().as_bytes().to_vec());
        },
    );
    if !is_whole || is_root_unsure {
        return None;
    }
    paths.append(&mut unsure);
    let unseen = index.entries.iter().zip(seen).filter(|(_, seen)| !seen).map(|(entry, _)| entry.path.clone());
    paths.extend(unseen.take(MOST_PATHS + 1));
    (paths.len() <= MOST_PATHS).then(|| outermost(paths))
}

/// Returns the directories with tracked files in or below them, each with its names in order.
fn folders(index: &Index) -> HashMap<&[u8], Folder<'_>> {
    let mut folders: HashMap<&[u8], Folder<'_>> = HashMap::from([(&b""[..], Vec::new())]);
    let mut first = 0;
    for run in index.entries.chunk_by(|one, next| split(&one.path).0 == split(&next.path).0) {
        let mut folder = split(&run[0].path).0;
        let names = run.iter().zip(first..).map(|(entry, at)| (split(&entry.path).1, at));
        folders.entry(folder).or_default().extend(names);
        first += run.len();
        while !folder.is_empty() {
            folder = split(folder).0;
            folders.entry(folder).or_default();
        }
    }
    folders
}

/// Removes paths below others: git reports an untracked directory differently if asked about something in it.
fn outermost(mut paths: Vec<GitPath>) -> Vec<GitPath> {
    fn path(bytes: &[u8]) -> &Path {
        Path::new(OsStr::from_bytes(bytes))
    }
    paths.sort_by(|a, b| path(a).cmp(path(b)));
    paths.dedup_by(|path_below, above| path(path_below).starts_with(path(above)));
    paths
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::{Duration, SystemTime};

    use calve_core::options::Background;
    use calve_core::spares::{RefillOptions, SpareOptions, SpareOrigin, WatchEnd, WatchOptions};
    use calve_testkit::{FileSystem, SplitMix64, Volume, few_rounds, rounds};

    use super::*;
    use crate::repository::Repository;
    use crate::worktree::add::options::AddOptions;

    /// A worktree with a spare and a watcher.
    struct WatchedWorktree {
        root: PathBuf,
        using: SpareUse,
        watcher: Option<(CancelToken, std::thread::JoinHandle<()>)>,
    }

    impl WatchedWorktree {
        fn new(volume: &Volume) -> Self {
            let root = volume.path().join("proj");
            let mut using = SpareUse::kept_in(volume.path().join("home"));
            using.made_without = vec!["/.git".to_owned()];
            Self { root, using, watcher: None }
        }

        fn git(&self, arguments: &[&str]) {
            let git = Git::at(&self.root).with("GIT_CONFIG_GLOBAL", "/dev/null").with("GIT_OPTIONAL_LOCKS", "1");
            let by = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0"];
            // Some changes leave nothing to commit.
            git.output(&[&by, arguments].concat()).unwrap();
        }

        fn write(&self, path: &str, text: &str) {
            let full = self.root.join(path);
            let above = full.parent().unwrap();
            let leads_to_itself = path == "file" && full.is_symlink();
            if fs_err::create_dir_all(above).is_ok() && !full.is_dir() && !above.is_symlink() && !leads_to_itself {
                fs_err::write(full, text).unwrap();
            }
        }

        fn make_spare(&self) {
            let spares = Spares::at(&self.using.home);
            let source = SpareSource::Directory(self.root.clone());
            spares.remove(&source, &CancelToken::default()).unwrap();
            let mut options = SpareOptions::default();
            options.staged = true;
            options.like.exclude.clone_from(&self.using.made_without);
            spares.add(&SpareOrigin::Directory(self.root.clone()), &options).unwrap();
            let resolve = |source: &SpareSource| match source {
                SpareSource::Directory(path) => Some(SpareOrigin::Directory(path.clone())),
                SpareSource::Template(_) => None,
            };
            let refill = RefillOptions {
                resolve,
                only: None,
                background: Background::No,
                progress: Default::default(),
                cancel: CancelToken::default(),
            };
            assert_eq!(spares.refill(&refill).unwrap().built, 1);
        }

        /// Waits until the watcher knows. One that has lost track waits for a while before it compares everything: it is started anew.
        fn wait_until_known(&mut self) {
            for _ in 0..200 {
                self.end();
                let (cancel, spares) = (CancelToken::default(), Spares::at(&self.using.home));
                let switch = cancel.clone();
                let watch = move || {
                    let mut options = WatchOptions { notify: &mut |_| (), end: WatchEnd::Never, cancel: switch };
                    spares.watch(&mut options).unwrap();
                };
                self.watcher = Some((cancel, std::thread::spawn(watch)));
                for _ in 0..100 {
                    let spares = Spares::at(&self.using.home);
                    if spares
                        .watched_listing(&self.root, &self.using.made_without, &CancelToken::default())
                        .unwrap()
                        .is_some()
                    {
                        return;
                    }
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
            panic!("the watcher never knows");
        }

        fn end(&mut self) {
            if let Some((cancel, thread)) = self.watcher.take() {
                cancel.cancel();
                thread.join().unwrap();
            }
        }

        fn change(&self, random: &mut SplitMix64) {
            const PATHS: [&str; 12] = [
                "file",
                "src/a",
                "src/b",
                "src/deep/c",
                "src/deep/d.log",
                "new",
                "src/new",
                "lib/.gitignore",
                "out/x.o",
                "out/y",
                "node_modules/z",
                "node_modules/.git/config",
            ];
            let path = *random.pick(&PATHS);
            let full = self.root.join(path);
            match random.below(14) {
                0 => drop(fs_err::remove_file(&full)),
                1 if full.is_file() => fs_err::set_permissions(&full, PermissionsExt::from_mode(0o755)).unwrap(),
                2 => drop(fs_err::rename(self.root.join("src/deep"), self.root.join("src/moved"))),
                3 => drop(fs_err::rename(self.root.join("src/moved"), self.root.join("src/deep"))),
                4 => drop(fs_err::remove_file(&full).and_then(|()| symlink("file", &full))),
                5 if full.is_file() => {
                    // Another text of the same length, with the time set back.
                    let (text, modified) =
                        (fs_err::read(&full).unwrap(), fs_err::metadata(&full).unwrap().modified().unwrap());
                    fs_err::write(&full, vec![b'x'; text.len()]).unwrap();
                    std::fs::File::options().write(true).open(&full).unwrap().set_modified(modified).unwrap();
                }
                6 if full.is_file() => {
                    let later = SystemTime::now() + Duration::from_secs(100);
                    std::fs::File::options().write(true).open(&full).unwrap().set_modified(later).unwrap();
                }
                7 => self.git(&["add", "-A"]),
                8 => self.git(&["commit", "-qm", "more", "-a"]),
                9 => self.git(&["status"]),
                10 => {
                    let path = *random.pick(&["lib/.gitignore", ".gitignore"]);
                    self.write(path, random.pick::<&str>(&["*.o\n", "out\n", "a\n"]));
                }
                11 if full.is_file() => {
                    fs_err::remove_file(&full).unwrap();
                    self.write(&format!("{path}/inside"), "in a directory that was a file");
                }
                12 => self.git(&["rm", "-q", "--cached", "src/a"]),
                _ => self.write(path, &random.next_u64().to_string()),
            }
        }
    }

    impl Drop for WatchedWorktree {
        fn drop(&mut self) {
            if let Some((cancel, _)) = &self.watcher {
                cancel.cancel();
            }
        }
    }

    #[test]
    fn what_is_said_of_a_known_donor_is_what_git_says_of_all_of_it() {
        let rounds = rounds(12);
        let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
        let mut watched = WatchedWorktree::new(&volume);
        fs_err::create_dir(&watched.root).unwrap();
        watched.git(&["init", "-q", "-b", "main"]);
        for (path, text) in [(".gitignore", "node_modules\n*.log\n"), ("file", "1"), ("src/a", ""), ("src/b", "2")] {
            watched.write(path, text);
        }
        for (path, text) in [("src/deep/c", "3"), ("lib/.gitignore", "*.o\n"), ("node_modules/z", "4"), ("out/y", "5")]
        {
            watched.write(path, text);
        }
        watched.git(&["add", "-A"]);
        watched.git(&["commit", "-qm", "one"]);
        let (mut random, mut told) = (SplitMix64::new(12), 0);
        for round in 0..rounds {
            if round % 4 == 0 {
                // Committed files are known to be as they are.
                watched.git(&["add", "-A"]);
                watched.git(&["commit", "-qm", "all"]);
                watched.end();
                watched.make_spare();
                watched.wait_until_known();
            }
            (0..random.below(4)).for_each(|_| watched.change(&mut random));
            watched.wait_until_known();
            let mut options = AddOptions::default();
            options.start.clone_from(&watched.root);
            options.branch = "another".to_owned();
            let request = AddRequest::new(Repository::open(&watched.root).unwrap(), &options).unwrap();
            let git = Git::at(&watched.root);
            let all = Status::read(&git).unwrap();
            let Some(known) = WatchedDonor::find(&request, &watched.using).unwrap() else {
                // Reading all of it may have made the watcher unsure for a moment.
                continue;
            };
            assert_eq!(all.staged, Vec::<GitPath>::new(), "round {round}");
            if let Some(status) = known.status(&git) {
                told += 1;
                assert_eq!(status.unwrap(), all, "round {round}");
            }
        }
        watched.end();
        assert!(
            few_rounds() || told * 4 >= rounds,
            "git was asked about all of it in all but {told} of {rounds} rounds"
        );
    }
}
