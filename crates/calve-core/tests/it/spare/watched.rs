//! Claims while a watcher runs.

use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use calve_core::options::SpareUse;
use calve_core::report::SpareCheck;
use calve_core::spares::{
    Readiness, SpareOptions, SpareOrigin, Spares, WatchEnd, WatchNote, WatchOptions, WatchOutcome,
};
use calve_core::{CancelToken, CloneReport, Strategy, clone_tree};
use calve_testkit::{BindMount, FileSystem, Tree, Volume, few_rounds, node_modules_like, require_program};
use fs_err as fs;

use super::edits::{Editor, IN_PLACE, edits};
use super::{DISKS, SpareFixture};

/// A watcher, which ends with this.
struct Watcher {
    notes: Receiver<&'static str>,
    cancel: CancelToken,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    fn start(fixture: &SpareFixture) -> Self {
        let (sender, notes) = channel();
        let cancel = CancelToken::default();
        let (spares, switch) = (fixture.spares.clone(), cancel.clone());
        let thread = std::thread::spawn(move || {
            let mut told = |note: WatchNote<'_>| {
                let kind = match note {
                    WatchNote::Listening => "listening",
                    WatchNote::Knows { .. } => "knows",
                    WatchNote::Lost { .. } => "lost",
                    _ => return,
                };
                let _ = sender.send(kind);
            };
            let mut options = WatchOptions { notify: &mut told, end: WatchEnd::Never, cancel: switch };
            assert_eq!(spares.watch(&mut options).unwrap(), WatchOutcome::Ended);
        });
        Self { notes, cancel, thread: Some(thread) }
    }

    /// Waits until the watcher says so.
    fn wait_for(&self, kind: &str) {
        while self.notes.recv().expect("the watcher runs") != kind {}
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.cancel.cancel();
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

/// Returns how a clone's spare was checked, and how many entries were brought up to date.
fn checked(report: &CloneReport) -> Option<(SpareCheck, u64)> {
    report.spare.as_ref().map(|spare| (spare.checked, spare.entries_updated))
}

#[test]
fn a_watched_source_is_not_walked() {
    for file_system in DISKS {
        let Some(fixture) = SpareFixture::new(file_system) else { return };
        node_modules_like(fixture.src(), 300);
        fixture.add(3);
        let watcher = Watcher::start(&fixture);
        for _ in 0..3 {
            watcher.wait_for("knows");
        }
        // Without reading the source: a file that was opened may have been written.
        let report = clone_tree(&fixture.src(), &fixture.path("place/one"), &fixture.options()).unwrap();
        assert_eq!(checked(&report), Some((SpareCheck::Watched, 0)));
        fs::write(fixture.src().join("changed"), "changed").unwrap();
        let report = fixture.claim("two");
        assert_eq!(checked(&report).map(|(check, updated)| (check, updated > 0)), Some((SpareCheck::Watched, true)));
        let entries = report.spare.unwrap().entries_checked;
        assert!(entries < 100, "only the directory that changed, and not {entries} entries");
        // Another name may have been removed, by which any entry may have been changed.
        fs::remove_file(fixture.src().join("changed")).unwrap();
        assert_eq!(checked(&fixture.claim("three")).map(|(check, _)| check), Some(SpareCheck::Walked));
        // The watcher learns of spares that are built while it runs.
        assert_eq!(fixture.refill(), (3, 0));
        watcher.wait_for("knows");
    }
}

#[test]
fn a_store_with_a_long_path_is_watched() {
    let Some(mut fixture) = SpareFixture::new(FileSystem::Xfs) else { return };
    let home = fixture.path(&"long".repeat(40));
    fs::create_dir(&home).unwrap();
    fixture.spares = Spares::at(home.join("spares"));
    fs::create_dir(fixture.src()).unwrap();
    fixture.add(1);
    let watcher = Watcher::start(&fixture);
    watcher.wait_for("knows");
    let mut options = fixture.options();
    options.spares = Some(SpareUse::in_home(&home));
    let report = clone_tree(&fixture.src(), &fixture.path("place/one"), &options).unwrap();
    assert_eq!(checked(&report), Some((SpareCheck::Watched, 0)));
}

#[test]
fn what_is_mounted_in_a_watched_source_is_seen() {
    let Some(fixture) = SpareFixture::new(FileSystem::Ext4) else { return };
    let Some(other) = Volume::new(FileSystem::Tmpfs) else { return };
    fs::write(other.path().join("file"), "mounted").unwrap();
    fs::create_dir_all(fixture.src().join("inner")).unwrap();
    fs::write(fixture.src().join("inner/file"), "covered").unwrap();
    fixture.add(1);
    let watcher = Watcher::start(&fixture);
    watcher.wait_for("knows");
    let _mount = BindMount::new(other.path(), fixture.src().join("inner"));
    fixture.clone("one");
    assert_eq!(fs::read_to_string(fixture.path("place/one/inner/file")).unwrap(), "mounted");
}

#[test]
fn a_spare_that_was_built_below_a_mount_is_not_handed_over_when_that_is_gone() {
    let Some(fixture) = SpareFixture::new(FileSystem::Ext4) else { return };
    Tree::new(fixture.src()).file("d/file", "own");
    Tree::new(fixture.path("other")).file("file", "foreign");
    let mount = BindMount::new(fixture.path("other/file"), fixture.src().join("d/file"));
    fixture.add(1);
    let watcher = Watcher::start(&fixture);
    watcher.wait_for("listening");
    drop(mount);
    let report = fixture.clone("one");
    assert_eq!(checked(&report), Some((SpareCheck::Walked, 1)));
    assert_eq!(fs::read_to_string(fixture.path("place/one/d/file")).unwrap(), "own");
}

#[test]
fn there_is_one_watcher() {
    let Some(fixture) = SpareFixture::new(FileSystem::Ext4) else { return };
    let watcher = Watcher::start(&fixture);
    watcher.wait_for("listening");
    let mut told = |_: WatchNote<'_>| {};
    let mut options = WatchOptions { notify: &mut told, end: WatchEnd::Never, cancel: CancelToken::default() };
    assert_eq!(fixture.spares.watch(&mut options).unwrap(), WatchOutcome::Elsewhere);
}

#[test]
fn no_spare_differs_after_random_edits_of_a_watched_source() {
    if !require_program("python3") {
        return;
    }
    for file_system in DISKS {
        let Some(fixture) = SpareFixture::new(file_system) else { return };
        node_modules_like(fixture.src(), 300);
        let mut editor = Editor::of(fixture.src(), 11);
        fixture.add(1);
        let mut watcher = Watcher::start(&fixture);
        let (mut done, mut round, mut watched) = (0, 0, 0);
        while done < edits() {
            // One that often loses a source waits longer each time before it begins again, up to ten minutes.
            if round % 64 == 63 {
                drop(watcher);
                watcher = Watcher::start(&fixture);
            }
            // Once in a while something is removed, and the watcher has to begin again.
            editor.only = if round % 16 == 15 { None } else { Some(&IN_PLACE) };
            if round % 16 < 14 {
                watcher.wait_for("knows");
            }
            for _ in 0..editor.random.below(12) {
                editor.edit();
                done += 1;
            }
            round += 1;
            let name = format!("clone-{round}");
            let report = fixture.clone(&name);
            watched += u64::from(checked(&report).is_some_and(|(check, _)| check == SpareCheck::Watched));
            fs::remove_dir_all(fixture.path("place").join(&name)).unwrap();
            editor.edit();
            done += 1;
            let report = fixture.spares.refill(&super::foreground()).unwrap();
            assert!(report.failures.is_empty(), "{:?}", report.failures);
        }
        assert!(few_rounds() || watched * 2 > round, "{watched} of {round} were watched");
    }
}

/// While it was away, it may have been written to.
#[test]
fn a_spare_whose_file_system_was_mounted_again_is_not_handed_over() {
    for file_system in DISKS {
        let (Some(fixture), Some(away)) = (SpareFixture::new(file_system), Volume::new(file_system)) else { return };
        Tree::new(fixture.src()).file("a", "1");
        fs::create_dir(fixture.path("mount")).unwrap();
        let mount = || BindMount::new(away.path(), fixture.path("mount"));
        let first = mount();
        let mut options = SpareOptions::default();
        options.at = Some(fixture.path("mount"));
        fixture.spares.add(&SpareOrigin::Directory(fixture.src()), &options).unwrap();
        assert_eq!(fixture.refill(), (1, 0));
        assert_eq!(fixture.standing(), [(Readiness::Ready, None)]);
        drop(first);
        let _second = mount();
        let reason = "the source's file system, or its own, was mounted again, or is seen through another mount";
        assert_eq!(fixture.standing(), [(Readiness::Stale, Some(reason))]);
        let report = clone_tree(&fixture.src(), &fixture.path("mount/dst"), &fixture.options()).unwrap();
        assert_ne!(report.strategy, Strategy::Spare);
        assert_eq!(fixture.refill(), (1, 1));
        let report = clone_tree(&fixture.src(), &fixture.path("mount/dst2"), &fixture.options()).unwrap();
        assert_eq!(report.strategy, Strategy::Spare);
    }
}
