//! The tracker, on the file system that temporary directories are on.

use std::io::Write as _;
use std::path::Path;
use std::rc::Rc;

use fs_err as fs;

use super::tracker::{Tracker, UntrackedReason, WatchBudget};
use crate::sys;
use crate::tree::exclude::Exclusions;
use crate::tree::source::Source;

fn files(root: &Path, paths: &[&str]) {
    for path in paths {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        fs::write(root.join(path), path).unwrap();
    }
}

/// A watched tree, and the moment from which changes count.
struct WatchedTree {
    directory: tempfile::TempDir,
    tracker: Tracker,
    moment: u64,
}

impl WatchedTree {
    /// Watches a tree of `a/f`, `a/deep/g`, `b/h` and `i`.
    fn new() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let src = directory.path().join("src");
        files(&src, &["a/f", "a/deep/g", "b/h", "i"]);
        let mut watched = Self::in_directory(directory)?;
        // A process that another test has just forked may have a file open for writing too, until it runs its program.
        let give_up = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !watched.changed().is_empty() && std::time::Instant::now() < give_up {
            watched.tracker.check_writers();
            watched.moment = watched.tracker.catch_up().unwrap();
        }
        Some(watched)
    }

    /// Watches the tree `src` in a directory. Returns `None` on systems without a watcher.
    fn in_directory(directory: tempfile::TempDir) -> Option<Self> {
        if sys::most_watches() == 0 {
            return None;
        }
        let source = Source::open(&directory.path().join("src")).unwrap();
        let mut tracker =
            Tracker::start(&source, Exclusions::new(&[]).unwrap(), &WatchBudget::new(sys::most_watches())).unwrap();
        let moment = tracker.catch_up().unwrap();
        Some(Self { directory, tracker, moment })
    }

    fn path(&self, below: &str) -> std::path::PathBuf {
        self.directory.path().join("src").join(below)
    }

    /// Returns the directories that may have changed.
    fn changed(&mut self) -> Vec<String> {
        self.tracker.catch_up().unwrap();
        let changed = self.tracker.changed_since(self.moment);
        let mut changed: Vec<String> = changed.map(|path| path.display().to_string()).collect();
        changed.sort();
        changed
    }

    fn lost(&mut self) -> Option<UntrackedReason> {
        self.tracker.catch_up().err()
    }
}

#[test]
fn nothing_happened_and_nothing_is_said_to_have() {
    let Some(mut watched) = WatchedTree::new() else { return };
    assert!(watched.changed().is_empty());
    assert_eq!(watched.tracker.watched(), 4);
    watched.tracker.check_writers();
    assert!(watched.changed().is_empty());
}

#[test]
fn every_change_of_an_entry_is_told() {
    type Change = fn(&Path);
    let changes: [(Change, &[&str]); 9] = [
        (|src| fs::write(src.join("a/f"), "g").unwrap(), &["a"]),
        (|src| fs::write(src.join("a/deep/new"), "g").unwrap(), &["a/deep"]),
        (|src| set_mode(&src.join("b/h"), 0o600), &["b"]),
        (|src| set_mode(&src.join("b"), 0o700), &["", "b"]),
        (|src| set_mode(src, 0o700), &[""]),
        (|src| fs::rename(src.join("i"), src.join("b/h")).unwrap(), &["", "b"]),
        (|src| fs::hard_link(src.join("i"), src.join("a/i")).unwrap(), &["a"]),
        (|src| fs_err::os::unix::fs::symlink("x", src.join("b/link")).unwrap(), &["b"]),
        (
            |src| {
                fs::OpenOptions::new()
                    .write(true)
                    .open(src.join("i"))
                    .unwrap()
                    .file()
                    .set_modified(std::time::UNIX_EPOCH)
                    .unwrap()
            },
            &[""],
        ),
    ];
    for (number, (change, expected)) in changes.into_iter().enumerate() {
        let Some(mut watched) = WatchedTree::new() else { return };
        change(&watched.path(""));
        assert_eq!(watched.changed(), expected, "change {number}");
    }
}

/// Writes through a descriptor are reported to the directory of the name that it was opened by, which may be gone.
#[test]
fn a_file_that_was_open_for_writing_by_another_name_has_changed() {
    let directory = tempfile::tempdir().unwrap();
    let src = directory.path().join("src");
    files(&src, &["a/f", "b/g"]);
    let mut file = fs::OpenOptions::new().append(true).open(src.join("a/f")).unwrap();
    fs::hard_link(src.join("a/f"), src.join("b/other")).unwrap();
    fs::remove_file(src.join("a/f")).unwrap();
    let Some(mut watched) = WatchedTree::in_directory(directory) else { return };
    assert_eq!(watched.changed(), ["b"]);
    file.write_all(b"more").unwrap();
    drop(file);
    watched.tracker.check_writers();
    assert_eq!(watched.changed(), ["a", "b"]);
    watched.moment = watched.tracker.catch_up().unwrap();
    assert!(watched.changed().is_empty());
}

#[test]
fn a_file_that_came_while_it_was_open_for_writing_has_changed() {
    let Some(mut watched) = WatchedTree::new() else { return };
    let outside = watched.directory.path().join("outside");
    let mut file = fs::File::create(&outside).unwrap();
    fs::hard_link(&outside, watched.path("b/new")).unwrap();
    fs::remove_file(&outside).unwrap();
    assert_eq!(watched.changed(), ["b"]);
    watched.moment = watched.tracker.catch_up().unwrap();
    file.write_all(b"more").unwrap();
    drop(file);
    watched.tracker.check_writers();
    assert_eq!(watched.changed(), ["b"]);
    watched.moment = watched.tracker.catch_up().unwrap();
    assert!(watched.changed().is_empty());
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_new_tree_is_watched_from_its_first_moment() {
    let Some(mut watched) = WatchedTree::new() else { return };
    files(&watched.path("b/new"), &["x/y/z"]);
    assert_eq!(watched.changed(), ["b", "b/new", "b/new/x", "b/new/x/y"]);
    watched.moment = watched.tracker.catch_up().unwrap();
    watched.tracker.check_writers();
    assert!(watched.changed().is_empty());
    fs::write(watched.path("b/new/x/y/z"), "other").unwrap();
    assert_eq!(watched.changed(), ["b/new/x/y"]);
}

#[test]
fn a_tree_that_is_moved_in_is_watched() {
    let Some(mut watched) = WatchedTree::new() else { return };
    let outside = watched.directory.path().join("outside");
    files(&outside, &["x/y"]);
    fs::rename(&outside, watched.path("b/in")).unwrap();
    assert_eq!(watched.changed(), ["b", "b/in", "b/in/x"]);
}

#[test]
fn a_file_that_was_read_is_no_suspect_for_long_and_one_that_is_written_remains_one() {
    let Some(mut watched) = WatchedTree::new() else { return };
    let reader = fs::File::open(watched.path("a/f")).unwrap();
    let writer = fs::OpenOptions::new().append(true).open(watched.path("b/h")).unwrap();
    assert_eq!(watched.changed(), ["a", "b"]);
    watched.tracker.check_writers();
    assert_eq!(watched.changed(), ["b"], "one is still open, for reading only");
    watched.tracker.check_writers();
    assert_eq!(watched.changed(), ["b"]);
    drop((reader, writer));
    watched.tracker.catch_up().unwrap();
    watched.tracker.check_writers();
    // Every possible writer has closed it.
    assert_eq!(watched.changed(), ["b"]);
    watched.moment = watched.tracker.catch_up().unwrap();
    assert!(watched.changed().is_empty());
}

#[test]
fn a_file_that_is_open_for_writing_before_the_watch_begins_is_a_suspect() {
    let directory = tempfile::tempdir().unwrap();
    files(&directory.path().join("src"), &["a/f", "b/h"]);
    let mut writer = fs::OpenOptions::new().append(true).open(directory.path().join("src/b/h")).unwrap();
    let Some(mut watched) = WatchedTree::in_directory(directory) else { return };
    assert_eq!(watched.changed(), ["b"]);
    watched.tracker.check_writers();
    assert_eq!(watched.changed(), ["b"]);
    writer.write_all(b"more").unwrap();
    drop(writer);
    assert_eq!(watched.changed(), ["b"]);
}

// A name that is gone may have been another name of an entry that is still there.
#[test]
fn after_a_removal_nothing_is_known() {
    type Removal = fn(&Path);
    let removals: [Removal; 6] = [
        |src| fs::remove_file(src.join("i")).unwrap(),
        |src| fs::rename(src.join("i"), src.parent().unwrap().join("i")).unwrap(),
        |src| fs::remove_dir_all(src.join("a/deep")).unwrap(),
        |src| fs::rename(src.join("a"), src.join("b/a")).unwrap(),
        |src| {
            for name in ["one", "two"] {
                fs::write(src.join(name), name).unwrap();
                fs::rename(src.join(name), src.join("i")).unwrap();
            }
        },
        |src| {
            fs::hard_link(src.join("i"), src.join("a/new")).unwrap();
            fs::write(src.join("a/new"), "changed").unwrap();
            fs::remove_file(src.join("a/new")).unwrap();
        },
    ];
    for (number, removal) in removals.into_iter().enumerate() {
        let Some(mut watched) = WatchedTree::new() else { return };
        removal(&watched.path(""));
        assert_eq!(watched.lost(), Some(UntrackedReason::Removal), "removal {number}");
    }
}

#[test]
fn a_tree_that_is_moved_or_removed_is_lost() {
    let Some(mut watched) = WatchedTree::new() else { return };
    fs::rename(watched.path(""), watched.directory.path().join("elsewhere")).unwrap();
    assert_eq!(watched.lost(), Some(UntrackedReason::Gone));
    let Some(mut watched) = WatchedTree::new() else { return };
    fs::remove_dir_all(watched.path("")).unwrap();
    assert!(watched.lost().is_some());
}

#[test]
fn more_directories_than_it_may_watch() {
    if sys::most_watches() == 0 {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    files(&directory.path().join("src"), &["a/f", "b/h"]);
    let source = Source::open(&directory.path().join("src")).unwrap();
    let started = |budget: &Rc<WatchBudget>| Tracker::start(&source, Exclusions::new(&[]).unwrap(), budget);
    let watched = |budget: &Rc<WatchBudget>| started(budget).map(|tracker| tracker.watched());
    assert_eq!(watched(&WatchBudget::new(3)), Ok(3));
    assert_eq!(watched(&WatchBudget::new(2)), Err(UntrackedReason::TooManyDirectories));
    // Of several sources together.
    let budget = WatchBudget::new(5);
    let mut first = started(&budget).unwrap();
    assert_eq!(watched(&budget), Err(UntrackedReason::TooManyDirectories));
    fs::remove_dir_all(directory.path().join("src/a")).unwrap();
    let _ = first.catch_up();
    drop(first);
    let first = started(&budget).unwrap();
    assert_eq!((first.watched(), watched(&budget)), (2, Ok(2)));
    fs::create_dir_all(directory.path().join("src/c/d/e/f")).unwrap();
    assert_eq!(started(&budget).map(|_| ()), Err(UntrackedReason::TooManyDirectories));
}

#[test]
fn more_events_than_the_queue_holds() {
    let Some(mut watched) = WatchedTree::new() else { return };
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    // Two entries in turn: events that follow an equal one are told once.
    let (one, two) = (watched.path("i"), watched.path("b/h"));
    for round in 0..=limit {
        set_mode(if round % 2 == 0 { &one } else { &two }, 0o600);
    }
    assert_eq!(watched.lost(), Some(UntrackedReason::Overflow));
}

#[test]
fn what_is_excluded_is_not_watched() {
    if sys::most_watches() == 0 {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    files(&directory.path().join("src"), &["a/f", "left/out/h"]);
    let source = Source::open(&directory.path().join("src")).unwrap();
    let tracker = Tracker::start(&source, Exclusions::new(&["left".into()]).unwrap(), &WatchBudget::new(100)).unwrap();
    assert_eq!(tracker.watched(), 2);
}
