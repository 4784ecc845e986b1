//! Spares: one that is handed over equals its source, whatever was done to that, and whatever happened to the process.

mod bad_input;
pub(crate) mod edits;
mod templates;
mod watched;

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use calve_core::options::{Background, SpareUse};
use calve_core::report::SpareCheck;
use calve_core::spares::{Readiness, RefillOptions, SpareOptions, SpareOrigin, SpareSource, Spares};
use calve_core::{CancelToken, CloneOptions, CloneReport, CloneVerification, Error, Strategy, clone_tree};
use calve_testkit::{FileSystem, Tree, Volume, assert_same, everything, fingerprint, rounds};
use fs_err as fs;

use crate::cloning::{assert_holds, options};

/// A volume with a source, a store and a place for clones.
struct SpareFixture {
    volume: Volume,
    spares: Spares,
}

impl SpareFixture {
    fn new(file_system: FileSystem) -> Option<Self> {
        let volume = Volume::new(file_system)?;
        Tree::new(volume.path()).dir("home").dir("place");
        let spares = Spares::at(volume.path().join("home/spares"));
        Some(Self { volume, spares })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.volume.path().join(name)
    }

    fn src(&self) -> PathBuf {
        self.path("src")
    }

    fn home(&self) -> PathBuf {
        self.path("home/spares")
    }

    /// Asks for spares of the source, and builds them.
    fn add(&self, count: usize) {
        let mut options = SpareOptions::default();
        options.count = Some(count);
        self.spares.add(&SpareOrigin::Directory(self.src()), &options).unwrap();
        assert_eq!(self.refill(), (count as u64, 0));
    }

    /// Builds missing spares. Returns how many were built, and how many were deleted.
    fn refill(&self) -> (u64, u64) {
        let report = self.spares.refill(&foreground()).unwrap();
        assert!(report.failures.is_empty(), "{:?}", report.failures);
        (report.built, report.removed)
    }

    fn options(&self) -> CloneOptions {
        options(|options| options.spares = Some(SpareUse::kept_in(self.home())))
    }

    /// Clones the source, and compares.
    #[track_caller]
    fn clone(&self, name: &str) -> CloneReport {
        let dst = self.path("place").join(name);
        let report = clone_tree(&self.src(), &dst, &self.options()).unwrap();
        assert_same(self.src(), &dst);
        report
    }

    /// Clones the source from a spare, and compares.
    #[track_caller]
    fn claim(&self, name: &str) -> CloneReport {
        let report = self.clone(name);
        assert_eq!(report.strategy, Strategy::Spare, "{:?}", report.refused);
        report
    }

    /// Clones the source without a spare, and returns why there was none.
    #[track_caller]
    fn refusal(&self, name: &str) -> String {
        let report = self.clone(name);
        assert_ne!(report.strategy, Strategy::Spare);
        let refused = report.refused.into_iter().find(|refusal| refusal.strategy == Strategy::Spare);
        refused.map(|refusal| refusal.reason).unwrap_or_default()
    }

    fn standing(&self) -> Vec<(Readiness, Option<&'static str>)> {
        let sets = self.spares.list(directory).unwrap();
        sets.iter().flat_map(|set| set.spares.iter().map(|spare| (spare.state, spare.reason))).collect()
    }
}

fn directory(source: &SpareSource) -> Option<SpareOrigin> {
    match source {
        SpareSource::Directory(path) => Some(SpareOrigin::Directory(path.clone())),
        SpareSource::Template(_) => None,
    }
}

pub(crate) fn foreground() -> RefillOptions {
    RefillOptions {
        resolve: directory,
        only: None,
        background: Background::No,
        progress: Default::default(),
        cancel: CancelToken::default(),
    }
}

pub(crate) const DISKS: [FileSystem; 3] = [FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs];

#[test]
fn files_with_several_names_have_their_size_once() {
    let Some(fixture) = SpareFixture::new(FileSystem::Ext4) else { return };
    let tree = Tree::new(fixture.src()).file("a", vec![1; 9001]).file("b/alone", vec![2; 3]);
    let _ = tree.hard_link("b/c", "a").hard_link("b/d", "a");
    fs::hard_link(fixture.src().join("a"), fixture.path("place/outside")).unwrap();
    fixture.volume.settle();
    let like = SpareOptions::default();
    fixture.spares.add(&SpareOrigin::Directory(fixture.src()), &like).unwrap();
    let listed = |fixture: &SpareFixture| fixture.spares.list(directory).unwrap().remove(0);
    let blocks = |name: &str| fs::metadata(fixture.src().join(name)).unwrap().blocks() * 512;
    assert_eq!(listed(&fixture).next_bytes, Some(blocks("a") + blocks("b/alone")));
    fixture.refill();
    assert_eq!(listed(&fixture).spares[0].apparent_bytes, Some(9004));
}

#[test]
fn a_spare_is_everything_that_its_source_is() {
    for file_system in DISKS {
        let Some(fixture) = SpareFixture::new(file_system) else { return };
        everything(fixture.src());
        let before = fingerprint(fixture.src());
        fixture.add(2);
        assert_eq!(fixture.standing(), [(Readiness::Ready, None); 2]);
        let report = fixture.claim("one");
        let spare = report.spare.unwrap();
        assert_eq!((spare.checked, spare.entries_updated), (SpareCheck::Walked, 0), "{file_system:?}");
        assert!(spare.entries_checked > 20 && report.spares_wanted);
        fixture.claim("two");
        before.assert_unchanged(fixture.src());
        assert_eq!(fixture.refusal("three"), "no spare is ready");
        assert_holds(fixture.path("place"), &["one", "two", "three"]);
        assert_eq!(fixture.refill(), (2, 0));
        fixture.claim("four");
    }
}

/// A change of a spare's contents shows nowhere but in a comparison.
#[test]
fn a_clone_from_a_spare_is_verified() {
    for file_system in DISKS {
        let Some(fixture) = SpareFixture::new(file_system) else { return };
        Tree::new(fixture.src()).file("a", "contents").file("d/b", "more");
        fixture.add(2);
        let mut options = fixture.options();
        options.verify = CloneVerification::Contents;
        let report = clone_tree(&fixture.src(), &fixture.path("place/fine"), &options).unwrap();
        assert_eq!(report.strategy, Strategy::Spare, "{file_system:?}");
        assert_same(fixture.src(), fixture.path("place/fine"));
        let spare = below(&fixture.home(), "a").expect("the other spare");
        fs::write(&spare, "CONTENTS").unwrap();
        let changed = clone_tree(&fixture.src(), &fixture.path("place/changed"), &options);
        match changed {
            // It was not taken, or the comparison has found it.
            Ok(_) => assert_same(fixture.src(), fixture.path("place/changed")),
            Err(error) => assert!(matches!(error, Error::VerifyFailed { .. }), "{error}"),
        }
    }
}

/// Finds a file of this name.
fn below(directory: &Path, name: &str) -> Option<PathBuf> {
    let entries: Vec<PathBuf> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    let found = entries.iter().find(|path| path.is_file() && path.ends_with(name)).cloned();
    found.or_else(|| entries.iter().filter(|path| path.is_dir()).find_map(|path| below(path, name)))
}

#[test]
fn nobody_else_can_look_into_a_spare_before_it_is_handed_over() {
    let Some(fixture) = SpareFixture::new(FileSystem::Ext4) else { return };
    Tree::new(fixture.src()).file("file", "1");
    fs::set_permissions(fixture.src(), Permissions::from_mode(0o755)).unwrap();
    fixture.add(1);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let mut directories = vec![fixture.home()];
    for _ in 0..2 {
        assert!(!directories.is_empty());
        directories.iter().for_each(|path| assert_eq!(mode(path), 0o700, "{}", path.display()));
        let entries = directories.iter().flat_map(|path| fs::read_dir(path).unwrap());
        directories = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    }
    assert!(!directories.is_empty());
    directories.iter().for_each(|path| assert_eq!(mode(path), 0o700, "{}", path.display()));
    fixture.claim("one");
    assert_eq!(mode(&fixture.path("place/one")), 0o755);
}

#[test]
fn a_directory_for_spares_is_made_while_others_remove_it() {
    let Some(fixture) = SpareFixture::new(FileSystem::Ext4) else { return };
    Tree::new(fixture.path("")).file("a/f", "1").file("b/f", "1");
    let mut options = SpareOptions::default();
    options.at = Some(fixture.path("place"));
    let add_and_remove = |name: &str| {
        let source = fixture.path(name);
        for _ in 0..rounds(3000) {
            let set = fixture.spares.add(&SpareOrigin::Directory(source.clone()), &options).unwrap();
            fixture.spares.remove(&set.source, &CancelToken::default()).unwrap();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| add_and_remove("a"));
        add_and_remove("b");
    });
    assert_holds(fixture.path("place"), &[]);
}
