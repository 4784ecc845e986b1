//! Subvolumes in subvolumes: a snapshot has them all, and never an empty directory in place of one.

use calve_core::{CloneOptions, Error, Requirement, Strategy};
use calve_testkit::{FileSystem, Tree, Unprivileged, Volume, assert_same, everything, fingerprint, rsync_differences};
use fs_err as fs;

use crate::child;
use crate::cloning::{assert_holds, clone, clone_with, is_subvolume, only, options, refused, run, subvolume};

const NESTED: [&str; 4] =
    ["sub/first", "sub/first/deep/er/second one", "sub/first/deep/er/second one/third", "read-only/fourth"];

fn nest(volume: &Volume) -> std::path::PathBuf {
    let src = volume.path().join("src");
    subvolume(&src);
    Tree::new(&src).file("file", "1").dir("sub").dir("read-only");
    for nested in NESTED {
        fs::create_dir_all(src.join(nested).parent().unwrap()).unwrap();
        subvolume(src.join(nested));
        Tree::new(src.join(nested)).file("inside", nested);
    }
    everything(src.join("sub/first/everything"));
    Tree::new(&src)
        .mode("read-only", 0o555)
        .mtime("sub", 1_000_000_000, 1)
        .mtime("read-only", 1_000_000_001, 2)
        .mtime("", 5, 5);
    src
}

#[test]
fn nested_subvolumes_are_snapshotted_too() {
    let Some(volume) = Volume::new(FileSystem::Btrfs) else { return };
    let src = nest(&volume);
    let before = fingerprint(&src);
    let dst = volume.path().join("dst");
    let report = clone_with(&only(Strategy::Snapshot), &src, &dst);
    assert_same(&src, &dst);
    assert_eq!(rsync_differences(&src, &dst), "");
    for nested in NESTED {
        assert!(is_subvolume(dst.join(nested)), "{nested}");
    }
    assert!(report.warnings.iter().any(|warning| warning.code == "nested_subvolumes"), "{:?}", report.warnings);
    Tree::new(&dst).file("sub/first/new", "1").file("sub/first/deep/er/second one/inside", "changed");
    before.assert_unchanged(&src);
    assert_holds(volume.path(), &["src", "dst"]);
}

#[test]
fn a_read_only_snapshot_is_cloned_writable() {
    let Some(volume) = Volume::new(FileSystem::Btrfs) else { return };
    subvolume(volume.path().join("work"));
    Tree::new(volume.path()).file("work/a/file", "1");
    let [src, dst] = ["src", "dst"].map(|name| volume.path().join(name));
    run("btrfs", |btrfs| btrfs.args(["-q", "subvolume", "snapshot", "-r"]).arg(volume.path().join("work")).arg(&src));
    clone_with(&only(Strategy::Snapshot), &src, &dst);
    assert_same(&src, &dst);
    fs::write(dst.join("a/new"), "1").unwrap();
}

#[test]
fn per_file_strategies_make_directories_of_subvolumes() {
    let Some(volume) = Volume::new(FileSystem::Btrfs) else { return };
    let src = nest(&volume);
    for strategy in [Strategy::Reflink, Strategy::Copy] {
        let dst = volume.path().join(strategy.name());
        clone_with(&only(strategy), &src, &dst);
        assert_same(&src, &dst);
        assert!(!is_subvolume(dst.join(NESTED[0])));
    }
}

#[test]
fn nested_ones_cannot_be_taken_at_one_moment() {
    let Some(volume) = Volume::new(FileSystem::Btrfs) else { return };
    let src = nest(&volume);
    let mut stable = only(Strategy::Snapshot);
    stable.require = vec![Requirement::Stable];
    let error = refused(&stable, &src, volume.path().join("dst"));
    assert!(matches!(error, Error::RequirementRefused { .. }), "{error}");
    assert_holds(volume.path(), &["src"]);
    let stay = options(|options| options.mounts = calve_core::Mounts::Stay);
    assert_ne!(clone_with(&stay, &src, volume.path().join("dst")).strategy, Strategy::Snapshot);
    assert!(!volume.path().join("dst/sub/first/inside").exists());
}

#[test]
fn an_owner_may_snapshot_and_others_may_not() {
    if let Some(place) = child::place() {
        let own = place.join("own");
        subvolume(&own);
        Tree::new(&own).file("file", "1");
        assert_eq!(clone(&own, place.join("dst")).strategy, Strategy::Snapshot);
        // Somebody else's: the next best, and why.
        let report =
            calve_core::clone_tree(&place.join("../theirs"), &place.join("dst-2"), &CloneOptions::default()).unwrap();
        assert_eq!(report.strategy, Strategy::Reflink);
        assert!(report.refused[0].reason.contains("owner"), "{:?}", report.refused);
        let error = refused(&only(Strategy::Snapshot), place.join("../theirs"), place.join("dst-3"));
        assert!(matches!(error, Error::RequirementRefused { .. }), "{error}");
        assert_holds(&place, &["own", "dst", "dst-2"]);
        return;
    }
    let Some(volume) = Volume::new(FileSystem::Btrfs) else { return };
    subvolume(volume.path().join("theirs"));
    Tree::new(volume.path()).file("theirs/file", vec![b'x'; 10_000]).mode("theirs/file", 0o644).dir("place").owner(
        "place",
        Unprivileged::UID,
        Unprivileged::GID,
    );
    let name = "conformance::subvolumes::an_owner_may_snapshot_and_others_may_not";
    child::run_copied(name, &volume, volume.path().join("place"), |program| Unprivileged::command(program));
}
