//! A clone that was written to becomes again what it was.

use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use calve_core::internal::{CloneState, RevertReport, revert};
use calve_core::{CancelToken, CloneOptions, clone_tree};
use calve_testkit::{
    BindMount, FileSystem, Tree, Volume, assert_same, few_rounds, fingerprint, is_root, node_modules_like,
    require_program,
};
use fs_err as fs;

use crate::cloning::{assert_holds, names_in};
use crate::spare::DISKS;
use crate::spare::edits::Editor;

/// A source and a clone of it.
struct RevertFixture {
    volume: Volume,
    state: Option<CloneState>,
}

impl RevertFixture {
    fn new(file_system: FileSystem, make: impl FnOnce(PathBuf)) -> Option<Self> {
        let volume = Volume::new(file_system)?;
        make(volume.path().join("src"));
        let mut fixture = Self { volume, state: None };
        clone_tree(&fixture.src(), &fixture.clone(), &CloneOptions::default()).unwrap();
        fixture.record(None);
        Some(fixture)
    }

    fn record(&mut self, after: Option<&RevertReport>) {
        self.state = CloneState::record(&self.clone(), after, &CancelToken::default()).unwrap();
    }

    fn src(&self) -> PathBuf {
        self.volume.path().join("src")
    }

    fn clone(&self) -> PathBuf {
        self.volume.path().join("clone")
    }

    fn revert(&self) -> Option<RevertReport> {
        let state = self.state.as_ref().unwrap();
        revert(&self.clone(), &self.src(), state, &CloneOptions::default()).unwrap()
    }

    /// Reverts the clone, and compares.
    #[track_caller]
    fn reverted(&self) -> RevertReport {
        let reverted = self.revert().unwrap();
        assert_same(self.src(), self.clone());
        reverted
    }
}

fn packages(src: PathBuf) {
    node_modules_like(src, 300);
}

#[test]
fn a_reverted_clone_equals_its_source_after_random_edits() {
    if !require_program("python3") {
        return;
    }
    for file_system in DISKS {
        let Some(mut fixture) = RevertFixture::new(file_system, packages) else { return };
        let before = fingerprint(fixture.src());
        let mut editor = Editor::of(fixture.clone(), 11);
        let edits = crate::spare::edits::edits();
        let (mut done, mut kept) = (0, 0);
        while done < edits {
            for _ in 0..editor.random.below(6) {
                editor.edit();
                done += 1;
            }
            let reverted = fixture.revert();
            if reverted.is_some() {
                kept += 1;
            } else {
                fs::remove_dir_all(fixture.clone()).unwrap();
                clone_tree(&fixture.src(), &fixture.clone(), &CloneOptions::default()).unwrap();
            }
            assert_same(fixture.src(), fixture.clone());
            fixture.record(reverted.as_ref());
        }
        assert!(few_rounds() || kept > 0, "{file_system:?}: {:?}", editor.kinds);
        before.assert_unchanged(fixture.src());
    }
}

#[test]
fn what_has_not_changed_stays_the_same_file() {
    for file_system in DISKS {
        let make = |src: PathBuf| {
            Tree::new(&src).dir("a").file("a/one", "one").file("two", "two").dir("b/c").file("b/c/three", "three");
        };
        let Some(mut fixture) = RevertFixture::new(file_system, make) else { return };
        // Entries made in the tick of their record are made again once.
        std::thread::sleep(std::time::Duration::from_millis(20));
        fixture.record(None);
        let inode = |name: &str| fs::symlink_metadata(fixture.clone().join(name)).unwrap().ino();
        let before = ["a/one", "two", "b/c", "b/c/three"].map(inode);
        fs::write(fixture.clone().join("two"), "TWO").unwrap();
        fixture.reverted();
        let after = ["a/one", "two", "b/c", "b/c/three"].map(inode);
        // A file system may give the new `two` the number of the old one.
        assert_eq!((before[0], before[2], before[3]), (after[0], after[2], after[3]), "{file_system:?}");
    }
}

#[test]
fn new_entries_go_and_links_are_not_followed() {
    for file_system in DISKS {
        let make = |src: PathBuf| {
            Tree::new(&src).dir("a").file("a/one", "one").dir("b/c").file("b/c/three", "three");
        };
        let Some(fixture) = RevertFixture::new(file_system, make) else { return };
        let (clone, outside) = (fixture.clone(), fixture.volume.path().join("outside"));
        Tree::new(&outside).file("one", "outside").file("c/three", "outside");
        let before = fingerprint(&outside);
        let link = |name: &str| {
            fs::remove_dir_all(clone.join(name)).unwrap();
            fs_err::os::unix::fs::symlink(&outside, clone.join(name)).unwrap();
        };
        link("a");
        link("b");
        // Names that only Calve gives, and a socket, which cannot be cloned.
        Tree::new(&clone).dir(".calve-staging-0-a-b-c").file(".calve-trash-0-a-b-c", "x").dir("new").file("new/x", "x");
        let _socket = UnixListener::bind(clone.join("new/socket")).unwrap();
        fixture.reverted();
        before.assert_unchanged(&outside);
        assert_holds(&clone, &["a", "b"]);
        assert_holds(fixture.volume.path(), &["clone", "outside", "src"]);
    }
}

#[test]
fn another_clone_and_one_that_changed_altogether_are_left_alone() {
    for file_system in DISKS {
        let Some(fixture) = RevertFixture::new(file_system, packages) else { return };
        let clone = fixture.clone();
        let away = fixture.volume.path().join("away");
        fs::rename(&clone, &away).unwrap();
        clone_tree(&fixture.src(), &clone, &CloneOptions::default()).unwrap();
        fs::write(clone.join("new"), "new").unwrap();
        let before = fingerprint(&clone);
        assert!(fixture.revert().is_none(), "{file_system:?}");
        before.assert_unchanged(&clone);
        fs::remove_dir_all(&clone).unwrap();
        fs::rename(&away, &clone).unwrap();
        for number in 0..200 {
            fs::write(clone.join(format!("new-{number}")), "new").unwrap();
        }
        let before = names_in(&clone);
        assert!(fixture.revert().is_none(), "{file_system:?}");
        assert_eq!(names_in(&clone), before);
    }
}

#[test]
fn a_write_during_a_revert_is_found_by_the_next_one() {
    for file_system in DISKS {
        let make = |src: PathBuf| {
            Tree::new(&src).file("one", "one").file("two", "two");
        };
        let Some(mut fixture) = RevertFixture::new(file_system, make) else { return };
        fs::write(fixture.clone().join("one"), "changed").unwrap();
        let reverted = fixture.reverted();
        // By a program that had the file open: as if it came after that file was compared.
        fs::write(fixture.clone().join("two"), "owt").unwrap();
        fixture.record(Some(&reverted));
        fixture.reverted();
    }
}

#[test]
fn exchanged_directories_mounts_and_second_names_ask_for_a_new_clone() {
    for file_system in DISKS {
        let make = |src: PathBuf| {
            Tree::new(&src).dir("a").file("a/one", "one").dir("b").file("b/two", "two").file("three", "three");
        };
        let exchanged = |clone: &Path| {
            fs::rename(clone.join("a"), clone.join("c")).unwrap();
            fs::create_dir(clone.join("a")).unwrap();
        };
        let named_twice = |clone: &Path| fs::hard_link(clone.join("three"), clone.join("b/four")).unwrap();
        for change in [&exchanged as &dyn Fn(&Path), &named_twice] {
            let Some(fixture) = RevertFixture::new(file_system, make) else { return };
            change(&fixture.clone());
            assert!(fixture.revert().is_none(), "{file_system:?}");
        }
        if !is_root() {
            continue;
        }
        let Some(fixture) = RevertFixture::new(file_system, make) else { return };
        let outside = fixture.volume.path().join("outside");
        Tree::new(&outside).file("kept", "kept");
        let mount = BindMount::new(&outside, fixture.clone().join("b"));
        fs::write(fixture.clone().join("three"), "changed").unwrap();
        assert!(fixture.revert().is_none(), "{file_system:?}");
        drop(mount);
        assert_holds(&outside, &["kept"]);
    }
}

#[test]
fn no_state_is_recorded_where_changes_may_leave_no_trace() {
    let Some(volume) = Volume::new(FileSystem::Tmpfs) else { return };
    Tree::new(volume.path().join("clone")).file("one", "one");
    assert!(CloneState::record(&volume.path().join("clone"), None, &CancelToken::default()).unwrap().is_none());
}
