//! What happens to spares, and to those who use them, that should not.

use std::path::{Path, PathBuf};
use std::sync::Barrier;

use calve_core::options::{Decision, SpareUse};
use calve_core::spares::{Readiness, SpareOptions, SpareOrigin, SpareSource, Spares};
use calve_core::{Choice, Error, ExistingDestination, Requirement, Selection, Strategy, clone_tree, plan};
use calve_testkit::{
    BindMount, FileSystem, SplitMix64, Tree, Volume, assert_same, fingerprint, node_modules_like, require_program,
    require_root, rounds,
};
use fs_err as fs;

use super::{DISKS, SpareFixture, foreground};
use crate::cloning::{assert_holds, names_in, only, options};
use crate::script::{Script, python};

/// On ext4, with a small source of which there are spares.
fn with_spares(count: usize) -> Option<SpareFixture> {
    let fixture = SpareFixture::new(FileSystem::Ext4)?;
    node_modules_like(fixture.src(), 200);
    fixture.add(count);
    Some(fixture)
}

impl SpareFixture {
    /// The directories of the spares, the oldest first.
    fn spare_directories(&self) -> Vec<PathBuf> {
        let sets = self.spares.list(super::directory).unwrap();
        let in_set = |directory: &Path| -> Vec<PathBuf> {
            let names = names_in(directory).into_iter().filter(|name| name.len() == 33);
            names.map(|name| directory.join(name)).collect()
        };
        sets.iter().flat_map(|set| in_set(&set.directory)).collect()
    }

    /// Changes bytes of the head of the only spare's record, which stays sound.
    fn change_record(&self, at: usize, bytes: &[u8]) {
        const HASHED: usize = 8 + 8 + 8 * 4 + 32 + 8 * 5 + 32;
        let record = self.spare_directories()[0].join("record");
        let mut whole = fs::read(&record).unwrap();
        whole[at..at + bytes.len()].copy_from_slice(bytes);
        let hash = blake3::hash(&whole[..HASHED]);
        whole[HASHED..HASHED + 32].copy_from_slice(hash.as_bytes());
        fs::write(&record, whole).unwrap();
    }
}

#[test]
fn a_spare_that_does_not_fit_is_thrown_away() {
    let Some(fixture) = with_spares(1) else { return };
    type Change = fn(&SpareFixture);
    let changes: [(&str, Change); 3] = [
        ("it was built before the system was started", |fixture| {
            fixture.change_record(8, b"otherone");
            let expected = Some("it was built before the system was started");
            assert_eq!(fixture.standing(), [(Readiness::Stale, expected)]);
        }),
        ("the clock was set back after it was built", |fixture| {
            fixture.change_record(8 + 8 + 8 * 2, &(u64::MAX / 4).to_le_bytes());
        }),
        ("more than a quarter of the source has changed since it was built", |fixture| {
            (0..400).for_each(|number| fs::write(fixture.src().join(format!("new-{number}")), "1").unwrap());
        }),
    ];
    for (number, (expected, change)) in changes.into_iter().enumerate() {
        change(&fixture);
        assert_eq!(fixture.refusal(&format!("dst-{number}")), expected);
        assert_eq!(fixture.refill(), (1, 1));
        fixture.claim(&format!("again-{number}"));
        assert_eq!(fixture.refill(), (1, 0));
    }
}

#[test]
fn a_record_that_is_damaged_is_not_used() {
    for (at, expected) in [(3, "no spare is ready"), (20, "no spare is ready"), (400, "its record is damaged")] {
        let Some(fixture) = with_spares(1) else { return };
        let record = fixture.spare_directories()[0].join("record");
        let mut bytes = fs::read(&record).unwrap();
        bytes[at] ^= 1;
        fs::write(&record, &bytes).unwrap();
        assert_eq!(fixture.refusal("dst"), expected);
        assert_eq!(fixture.refill(), (1, 1));
        fs::write(fixture.spare_directories()[0].join("record"), &bytes[..100]).unwrap();
        assert_eq!(fixture.refusal("short"), "no spare is ready");
    }
}

#[test]
fn a_source_that_was_moved_or_replaced_gets_no_spare_of_another() {
    let Some(fixture) = with_spares(1) else { return };
    // Moved away, and another directory in its place.
    fs::rename(fixture.src(), fixture.path("moved")).unwrap();
    Tree::new(fixture.src()).file("other", "1");
    assert_eq!(fixture.refusal("other"), "the source is another directory than the one it was built from");
    assert_eq!(fixture.refill(), (1, 1));
    fixture.claim("of-the-new-one");
    fixture.refill();
    // A link in its place: the link is cloned, and behind it is what the link names.
    fs::remove_dir_all(fixture.src()).unwrap();
    fs_err::os::unix::fs::symlink(fixture.path("moved"), fixture.src()).unwrap();
    let report = clone_tree(&fixture.src(), &fixture.path("place/link"), &fixture.options()).unwrap();
    assert_ne!(report.strategy, Strategy::Spare);
    assert_eq!(fs::read_link(fixture.path("place/link")).unwrap(), fixture.path("moved"));
    let behind = clone_tree(&fixture.path("src/"), &fixture.path("place/behind"), &fixture.options()).unwrap();
    assert_ne!(behind.strategy, Strategy::Spare);
    assert_same(fixture.path("moved"), fixture.path("place/behind"));
    assert_eq!(
        fixture.standing(),
        [(Readiness::Stale, Some("the source is another directory than the one it was built from"))]
    );
    // Gone.
    fs::remove_file(fixture.src()).unwrap();
    assert_eq!(fixture.standing(), [(Readiness::Stale, Some("the source is missing"))]);
    let report = fixture.spares.refill(&foreground()).unwrap();
    assert_eq!((report.built, report.removed), (0, 1));
    assert!(matches!(report.failures[0].1, Error::Missing(_)), "{:?}", report.failures);
}

/// A rename of the source changes nothing in it, and moving it back leaves its spares fit.
#[test]
fn a_source_that_was_away_for_a_while_is_checked_like_any_other() {
    let Some(fixture) = with_spares(1) else { return };
    fs::rename(fixture.src(), fixture.path("away")).unwrap();
    fs::write(fixture.path("away/package-000/new"), "1")
        .unwrap_or_else(|_| fs::write(fixture.path("away/new"), "1").unwrap());
    fs::rename(fixture.path("away"), fixture.src()).unwrap();
    assert!(fixture.claim("dst").spare.unwrap().entries_updated > 0);
}

#[test]
fn a_file_system_that_was_mounted_again_gets_no_old_spare() {
    for file_system in DISKS {
        let (Some(outer), Some(inner)) = (SpareFixture::new(file_system), Volume::new(file_system)) else { return };
        fs::create_dir(outer.path("mount")).unwrap();
        Tree::new(inner.path()).file("src/a", "1");
        let at_mount = |name: &str| outer.path("mount").join(name);
        let through_mount = || {
            let _mount = BindMount::new(inner.path(), outer.path("mount"));
            let options = SpareOptions::default();
            Spares::at(at_mount("spares")).add(&SpareOrigin::Directory(at_mount("src")), &options).unwrap();
            Spares::at(at_mount("spares")).refill(&foreground()).unwrap();
        };
        through_mount();
        let _mount = BindMount::new(inner.path(), outer.path("mount"));
        let using = options(|options| options.spares = Some(SpareUse::kept_in(at_mount("spares"))));
        let report = clone_tree(&at_mount("src"), &at_mount("dst"), &using).unwrap();
        let reason = &report.refused.iter().find(|refusal| refusal.strategy == Strategy::Spare).unwrap().reason;
        assert!(reason.starts_with("the source's file system, or its own, was mounted again"), "{reason}");
    }
}

#[test]
fn what_somebody_does_in_the_store_by_hand_does_no_harm() {
    let Some(fixture) = with_spares(1) else { return };
    let spare = fixture.spare_directories().remove(0);
    let set = spare.parent().unwrap().to_path_buf();
    // Things of other kinds and names, and half a spare.
    fs::write(set.join("note"), "1").unwrap();
    fs::create_dir(set.join("directory")).unwrap();
    fs::write(fixture.home().join("file"), "1").unwrap();
    fs::create_dir(fixture.home().join("0123456789abcdef-01234567")).unwrap();
    fs_err::os::unix::fs::symlink("/etc", set.join("ffffffffffffffff-ffffffffffffffff")).unwrap();
    fs::create_dir(set.join("fffffffffffffffe-ffffffffffffffff")).unwrap();
    Tree::new(set.join("fffffffffffffffd-ffffffffffffffff")).file("tree/half", "1");
    let claimed = fixture.claim("one");
    assert_eq!(claimed.spare.unwrap().entries_updated, 0);
    // The half one is swept, and foreign files stay.
    let (built, removed) = fixture.refill();
    assert_eq!((built, removed), (1, 2));
    assert!(set.join("note").exists() && set.join("directory").exists());
    // A spare without its tree, or with a file for one.
    let spare = fixture.spare_directories().pop().unwrap();
    let spare = if spare.is_symlink() { fixture.spare_directories().remove(0) } else { spare };
    fs::remove_dir_all(spare.join("tree")).unwrap();
    fs::write(spare.join("tree"), "1").unwrap();
    assert!(fixture.refusal("two").starts_with("cannot move the spare") || !fixture.refusal("two-b").is_empty());
    fixture.refill();
    // All of it.
    fs::remove_dir_all(&set).unwrap();
    assert_eq!(fixture.refusal("three"), "");
    fs::remove_dir_all(fixture.home()).unwrap();
    assert_eq!(fixture.refusal("four"), "");
    fixture.add(1);
    fixture.claim("five");
}

#[test]
fn a_store_of_somebody_else_is_not_used() {
    if !require_root("another user") {
        return;
    }
    let Some(fixture) = with_spares(1) else { return };
    std::os::unix::fs::chown(fixture.home(), Some(12345), None).unwrap();
    assert!(fixture.refusal("dst").starts_with("the spares cannot be reached: "), "{}", fixture.refusal("dst-2"));
    assert!(matches!(fixture.spares.refill(&foreground()), Err(Error::Io { .. })));
}

#[test]
fn a_full_disk_disturbs_nothing_but_the_refill() {
    let Some(volume) = Volume::with_size(FileSystem::Ext4, 64 << 20) else { return };
    Tree::new(volume.path()).dir("home").dir("place").file("src/large", vec![b'x'; 6 << 20]);
    let fixture = SpareFixture { spares: Spares::at(volume.path().join("home/spares")), volume };
    fixture.add(1);
    let before = fingerprint(fixture.src());
    fixture.claim("one");
    let ballast = fs::File::create(fixture.path("ballast")).unwrap();
    let free = rustix::fs::statvfs(fixture.volume.path()).unwrap();
    let bytes = free.f_bavail * free.f_frsize - (11 << 20);
    rustix::fs::fallocate(&ballast, rustix::fs::FallocateFlags::empty(), 0, bytes).unwrap();
    let report = fixture.spares.refill(&foreground()).unwrap();
    assert_eq!(report.built, 0);
    let message = report.failures[0].1.to_string();
    assert!(message.contains("less than a fifth of the disk would stay free"), "{message}");
    assert_eq!(fixture.spare_directories(), [] as [PathBuf; 0]);
    before.assert_unchanged(fixture.src());
    assert_eq!(fixture.refusal("two"), "no spare is ready");
}

/// Another process takes the inodes that were free when the spare was begun.
#[test]
fn a_disk_that_gets_full_in_the_middle_of_a_refill_has_nothing_of_it_afterwards() {
    let Some(volume) = Volume::with_size(FileSystem::Ext4, 64 << 20) else { return };
    Tree::new(volume.path()).dir("home").dir("place").dir("ballast");
    let fixture = SpareFixture { spares: Spares::at(volume.path().join("home/spares")), volume };
    node_modules_like(fixture.src(), 1500);
    let inodes = || rustix::fs::statvfs(fixture.volume.path()).unwrap().f_ffree;
    let with_none = inodes();
    fixture.add(1);
    let needed = with_none - inodes();
    fixture.claim("one");
    let take = |numbers: std::ops::Range<u64>| {
        numbers.filter(|number| fs::write(fixture.path(&format!("ballast/{number}")), "").is_ok()).count() as u64
    };
    let most = inodes() - needed - 200;
    assert_eq!(take(0..most), most);
    let (free, before) = (inodes(), fingerprint(fixture.src()));
    let (report, taken) = std::thread::scope(|scope| {
        let refill = scope.spawn(|| fixture.spares.refill(&foreground()).unwrap());
        while inodes() + 20 > free && !refill.is_finished() {
            std::thread::yield_now();
        }
        let taken = take(most..most + 800);
        (refill.join().unwrap(), taken)
    });
    let message = report.failures[0].1.to_string();
    assert!(report.built == 0 && message.contains("No space left on device"), "{message}");
    assert_eq!(fixture.spare_directories(), [] as [PathBuf; 0]);
    let back = inodes() + taken;
    assert!(back + 20 > free, "of {needed}, only {back} of {free} came back");
    before.assert_unchanged(fixture.src());
    fs::remove_dir_all(fixture.path("ballast")).unwrap();
    assert_eq!(fixture.refill(), (1, 0));
    fixture.claim("two");
}

#[test]
fn of_two_claims_of_one_spare_one_wins() {
    let Some(fixture) = SpareFixture::new(FileSystem::Ext4) else { return };
    node_modules_like(fixture.src(), 20);
    fixture.add(1);
    for round in 0..rounds(50) {
        // So that the other one may come while the first updates the spare.
        fs::write(fixture.src().join("changed"), round.to_string()).unwrap();
        let barrier = Barrier::new(2);
        let one = |name: &str| {
            barrier.wait();
            clone_tree(&fixture.src(), &fixture.path("place").join(name), &fixture.options()).unwrap()
        };
        let both = std::thread::scope(|scope| {
            let other = scope.spawn(|| one("a"));
            [one("b"), other.join().unwrap()]
        });
        let won = both.iter().filter(|report| report.strategy == Strategy::Spare).count();
        assert_eq!(won, 1, "round {round}: {:?}", both.map(|report| report.refused));
        for name in ["a", "b"] {
            let dst = fixture.path("place").join(name);
            assert_same(fixture.src(), &dst);
            fs::remove_dir_all(dst).unwrap();
        }
        assert_eq!(fixture.refill(), (1, 0), "round {round}");
    }
}

/// While one claim checks and updates, another one gets another spare.
#[test]
fn claims_of_several_spares_do_not_meet() {
    let Some(fixture) = with_spares(3) else { return };
    fs::write(fixture.src().join("changed"), "1").unwrap();
    let barrier = Barrier::new(3);
    std::thread::scope(|scope| {
        for name in ["a", "b", "c"] {
            let (fixture, barrier) = (&fixture, &barrier);
            scope.spawn(move || {
                barrier.wait();
                assert!(fixture.claim(name).spare.unwrap().entries_updated > 0);
            });
        }
    });
    assert_eq!(fixture.spare_directories(), [] as [PathBuf; 0]);
}

#[test]
fn other_options_get_no_spare() {
    let Some(fixture) = with_spares(1) else { return };
    let refusal = |change: &dyn Fn(&mut calve_core::CloneOptions)| {
        let mut options = fixture.options();
        change(&mut options);
        let dst = fixture.path("place/dst");
        let report = clone_tree(&fixture.src(), &dst, &options).unwrap();
        fs::remove_dir_all(&dst).unwrap();
        assert_ne!(report.strategy, Strategy::Spare);
        report.refused.into_iter().find(|refusal| refusal.strategy == Strategy::Spare).map(|refusal| refusal.reason)
    };
    let other = Some("its spares were built with different options".to_owned());
    assert_eq!(refusal(&|options| options.exclude = vec!["*.md".into()]), other);
    assert_eq!(refusal(&|options| options.mounts = calve_core::Mounts::Stay), other);
    assert_eq!(refusal(&|options| options.strategy = Choice::Only(Strategy::Copy)), None);
    assert_eq!(refusal(&|options| options.spares = None), None);
    // One that fits is still there.
    fixture.claim("dst-2");
    // With several sets, the one that fits best gives the reason.
    for pattern in ["*.a", "*.b", "*.c", "*.d"] {
        let mut options = SpareOptions::default();
        options.like.exclude = vec![pattern.into()];
        fixture.spares.add(&SpareOrigin::Directory(fixture.src()), &options).unwrap();
    }
    assert_eq!(refusal(&|_| {}), Some("no spare is ready".to_owned()));
}

#[test]
fn what_is_left_out_is_left_out_of_the_spare_too() {
    let Some(fixture) = SpareFixture::new(FileSystem::Xfs) else { return };
    Tree::new(fixture.src()).file("a", "1").file("b.log", "1").file("d/c.log", "1").file("d/e", "1").file("out/f", "1");
    let mut options = SpareOptions::default();
    options.like.exclude = vec!["*.log".into(), "/out/".into()];
    fixture.spares.add(&SpareOrigin::Directory(fixture.src()), &options).unwrap();
    fixture.refill();
    // Excluded entries may change as they like; new ones may be excluded too.
    Tree::new(fixture.src()).file("b.log", "22").file("new.log", "1").file("out/g", "1").file("d/new", "1");
    let mut using = fixture.options();
    using.exclude.clone_from(&options.like.exclude);
    let report = clone_tree(&fixture.src(), &fixture.path("place/spare"), &using).unwrap();
    assert_eq!(report.strategy, Strategy::Spare, "{:?}", report.refused);
    using.spares = None;
    clone_tree(&fixture.src(), &fixture.path("place/plain"), &using).unwrap();
    assert_same(fixture.path("place/plain"), fixture.path("place/spare"));
    assert_holds(fixture.path("place/spare"), &["a", "d"]);
    // What a selection does not take is removed from a spare, old and new.
    fixture.refill();
    Tree::new(fixture.src()).file("d/newer", "1");
    let takes = |path: &Path, _| {
        if path.starts_with("d/e") || path.ends_with("newer") { Decision::Leave } else { Decision::Take }
    };
    let mut selecting = fixture.options();
    selecting.exclude.clone_from(&options.like.exclude);
    selecting.select = Some(Selection::new(takes));
    let report = clone_tree(&fixture.src(), &fixture.path("place/selected"), &selecting).unwrap();
    assert_eq!(report.strategy, Strategy::Spare, "{:?}", report.refused);
    selecting.spares = None;
    clone_tree(&fixture.src(), &fixture.path("place/cloned"), &selecting).unwrap();
    assert_same(fixture.path("place/cloned"), fixture.path("place/selected"));
    assert_holds(fixture.path("place/selected/d"), &["new"]);
}

#[test]
fn requirements_are_kept() {
    let Some(fixture) = SpareFixture::new(FileSystem::Xfs) else { return };
    node_modules_like(fixture.src(), 100);
    fixture.add(2);
    let require = |requirement, name: &str| {
        let mut options = fixture.options();
        options.require = vec![requirement];
        clone_tree(&fixture.src(), &fixture.path("place").join(name), &options)
    };
    // A check of every entry is not instant.
    let error = require(Requirement::Instant, "instant").unwrap_err();
    assert!(matches!(error, Error::RequirementRefused { .. }), "{error}");
    for (requirement, name) in [(Requirement::Cow, "cow"), (Requirement::Stable, "stable")] {
        let report = require(requirement, name).unwrap();
        assert_eq!(report.strategy, Strategy::Spare, "{:?}", report.refused);
    }
    fixture.refill();
    // A clone that is made of two moments is not stable.
    fs::write(fixture.src().join("new"), "1").unwrap();
    assert_eq!(require(Requirement::Stable, "stable-2").unwrap().strategy, Strategy::Reflink);
    // Where bytes have to be written.
    let Some(fixture) = with_spares(1) else { return };
    let mut options = fixture.options();
    options.require = vec![Requirement::Cow];
    assert!(matches!(
        clone_tree(&fixture.src(), &fixture.path("place/cow"), &options),
        Err(Error::RequirementRefused { .. })
    ));
    assert_holds(fixture.path("place"), &[]);
}

#[test]
fn a_requirement_that_is_refused_says_why_no_spare_meets_it() {
    let Some(fixture) = with_spares(1) else { return };
    Tree::new(fixture.path("elsewhere")).file("a", "1");
    let refused = |requirement, src: &Path| {
        let mut options = fixture.options();
        options.require = vec![requirement];
        let dst = fixture.path("place/dst");
        [clone_tree(src, &dst, &options).unwrap_err(), plan(src, &dst, &options).unwrap_err()].map(|error| {
            let Error::RequirementRefused { refused, .. } = error else { panic!("{error}") };
            assert!(refused.len() > 1, "{refused:?}");
            (refused[0].strategy, refused[0].reason.clone())
        })
    };
    let spare = |reason: &str| (Strategy::Spare, reason.to_owned());
    let read = |means| spare(&format!("checking it {means} looking at every entry"));
    assert_eq!(refused(Requirement::Instant, &fixture.src()), [read("means"), read("may mean")]);
    let written = || spare("data was written to make it");
    assert_eq!(refused(Requirement::Cow, &fixture.src()), [written(), written()]);
    let none = || spare("there is no spare of this source");
    assert_eq!(refused(Requirement::Instant, &fixture.path("elsewhere")), [none(), none()]);
    // A spare can be insisted on.
    let mut options = only(Strategy::Spare);
    options.spares = Some(SpareUse::kept_in(fixture.home()));
    let insisted = |src: &str, dst: &str| clone_tree(&fixture.path(src), &fixture.path(dst), &options);
    assert_eq!(insisted("src", "place/a").unwrap().strategy, Strategy::Spare);
    for (src, reason) in [("src", "no spare is ready"), ("elsewhere", "there is no spare of this source")] {
        let error = insisted(src, "place/b").unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
    assert_holds(fixture.path("place"), &["a"]);
}

#[test]
fn a_spare_replaces_what_is_there_in_one_step() {
    let Some(fixture) = with_spares(1) else { return };
    Tree::new(fixture.path("place")).file("dst/old", "1");
    let mut options = fixture.options();
    assert!(matches!(
        clone_tree(&fixture.src(), &fixture.path("place/dst"), &options),
        Err(Error::DestinationExists(_))
    ));
    options.existing = ExistingDestination::Replace;
    let report = clone_tree(&fixture.src(), &fixture.path("place/dst"), &options).unwrap();
    assert_eq!((report.strategy, report.trashed.is_some()), (Strategy::Spare, true));
    assert_same(fixture.src(), fixture.path("place/dst"));
}

#[test]
fn a_destination_on_another_file_system_gets_no_spare() {
    let (Some(fixture), Some(other)) = (with_spares(1), Volume::new(FileSystem::Ext4)) else { return };
    let report = clone_tree(&fixture.src(), &other.path().join("dst"), &fixture.options()).unwrap();
    assert!(report.refused[0].reason.contains("another file system than the destination"), "{:?}", report.refused);
    // Unless they are kept there.
    let mut options = SpareOptions::default();
    options.at = Some(other.path().to_path_buf());
    fixture.spares.add(&SpareOrigin::Directory(fixture.src()), &options).unwrap();
    fixture.refill();
    let report = clone_tree(&fixture.src(), &other.path().join("dst-2"), &fixture.options()).unwrap();
    assert_eq!(report.strategy, Strategy::Spare, "{:?}", report.refused);
    assert_same(fixture.src(), other.path().join("dst-2"));
    let source = SpareSource::Directory(fs::canonicalize(fixture.src()).unwrap());
    assert_eq!(fixture.spares.remove(&source, &calve_core::CancelToken::default()).unwrap(), 2);
    assert_holds(other.path(), &["dst", "dst-2"]);
}

#[test]
fn what_cannot_be_checked_gets_no_spares() {
    let refusal = |fixture: &SpareFixture| {
        let added = fixture.spares.add(&SpareOrigin::Directory(fixture.src()), &SpareOptions::default());
        let failed = added.and_then(|_| Ok(fixture.spares.refill(&foreground())?.failures.remove(0).1));
        let error = failed.unwrap_or_else(|error| error);
        assert!(matches!(error, Error::NoSpare { .. }), "{error}");
        assert!(fixture.spare_directories().is_empty());
        error.to_string()
    };
    let Some(fixture) = SpareFixture::new(FileSystem::Tmpfs) else { return };
    Tree::new(fixture.src()).file("a", "1");
    assert!(refusal(&fixture).contains("without a trace"));
    let Some(fixture) = SpareFixture::new(FileSystem::Btrfs) else { return };
    crate::cloning::subvolume(fixture.src());
    assert!(refusal(&fixture).contains("a btrfs subvolume"));
    let Some(fixture) = SpareFixture::new(FileSystem::Ext4) else { return };
    fs::write(fixture.src(), "1").unwrap();
    assert!(refusal(&fixture).contains("it is not a directory"));
    fs::remove_file(fixture.src()).unwrap();
    Tree::new(fixture.src()).socket("d/socket");
    assert!(refusal(&fixture).contains("socket"));
    fs::remove_dir_all(fixture.src()).unwrap();
    let Some(other) = Volume::new(FileSystem::Ext4) else { return };
    Tree::new(fixture.src()).dir("below");
    let _mount = BindMount::new(other.path(), fixture.path("src/below"));
    assert!(refusal(&fixture).contains("another file system is mounted, or another subvolume is, below it"));
}

/// A process that keeps a file mapped and stores to it all the time: what it stores after the spare was recorded is never missing from a
/// clone that is made after that.
#[test]
fn stores_through_a_mapping_at_random_moments_are_never_missed() {
    const WRITER: &str = "\
import mmap, os, random, sys, time
fd = os.open(sys.argv[1], os.O_RDWR)
m = mmap.mmap(fd, 0)
n = 0
print('mapped', flush=True)
for line in sys.stdin:
    # Some stores at once, so that pages are dirty when the next one comes, and some a while apart.
    for _ in range(random.randrange(1, 6)):
        n += 1
        at = random.randrange(0, len(m) - 8)
        m[at:at + 8] = n.to_bytes(8, 'little')
        if random.random() < 0.5: time.sleep(random.random() / 200)
    print('stored', flush=True)
";
    if !require_program("python3") {
        return;
    }
    for file_system in DISKS {
        let Some(fixture) = SpareFixture::new(file_system) else { return };
        node_modules_like(fixture.src(), 60);
        Tree::new(fixture.src()).file("mapped", vec![0; 40_000]);
        let mut random = SplitMix64::new(5);
        let mut writer = Script::start(python(WRITER).arg(fixture.path("src/mapped")));
        writer.wait_for("mapped");
        fixture.add(1);
        for round in 0..15 {
            writer.tell(b"go");
            let name = format!("clone-{round}");
            // The stores go on while a spare is built, and the next ones come after it.
            if random.below(2) == 0 {
                clone_tree(&fixture.src(), &fixture.path("place").join(&name), &fixture.options()).unwrap();
                fixture.refill();
                writer.wait_for("stored");
            } else {
                writer.wait_for("stored");
                fixture.clone(&name);
                fixture.refill();
            }
            fs::remove_dir_all(fixture.path("place").join(&name)).unwrap();
        }
        writer.end();
        fixture.claim("last");
    }
}

/// Moving a directory changes nothing of the files in it, which may have other names where nothing has changed.
#[test]
fn names_of_a_file_in_a_directory_that_was_moved_stay_names_of_one_file() {
    for file_system in DISKS {
        let Some(fixture) = SpareFixture::new(file_system) else { return };
        Tree::new(fixture.src()).file("still/a", "1").hard_link("moved/b", "still/a").file("moved/sub/c", "2");
        Tree::new(fixture.src()).hard_link("still/d", "moved/sub/c").dir("other");
        fixture.add(1);
        fs::rename(fixture.path("src/moved"), fixture.path("src/other/new")).unwrap();
        fixture.claim("dst");
    }
}

#[test]
fn nothing_is_built_while_the_file_system_of_the_source_is_not_mounted() {
    let Some(fixture) = SpareFixture::new(FileSystem::Ext4) else { return };
    Tree::new(fixture.path("disk/src")).file("a", "1");
    Tree::new(fixture.path("at"));
    let mount = BindMount::new(fixture.path("disk"), fixture.path("at"));
    let mut options = SpareOptions::default();
    options.at = Some(fixture.path("at"));
    fixture.spares.add(&SpareOrigin::Directory(fixture.path("at/src")), &options).unwrap();
    assert_eq!(fixture.refill(), (1, 0));
    drop(mount);
    let report = fixture.spares.refill(&foreground()).unwrap();
    assert!(matches!(&report.failures[..], [(_, Error::SparesNotMounted { .. })]), "{:?}", report.failures);
    assert_holds(fixture.path("at"), &[]);
}
