//! Subvolumes in subvolumes: a snapshot has them all, and never an empty directory in place of one.

use calve_core::options::SpareUse;
use calve_core::spares::{SpareOptions, SpareOrigin, Spares};
use calve_core::template::{TemplateOptions, Templates};
use calve_core::{CloneOptions, Error, Requirement, Strategy};
use calve_testkit::{
    FileSystem, Tree, UnprivilegedUser, Volume, assert_same, everything, fingerprint, rsync_differences,
};
use fs_err as fs;

use crate::child;
use crate::cloning::{assert_holds, clone, clone_with, is_subvolume, only, options, refused, run, subvolume, verified};
use calve_core::report::WarningCode;

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
#[cfg_attr(like_macos, ignore = "macOS has no subvolumes")]
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
    assert!(
        report.warnings.iter().any(|warning| warning.code == WarningCode::NestedSubvolumes),
        "{:?}",
        report.warnings
    );
    Tree::new(&dst).file("sub/first/new", "1").file("sub/first/deep/er/second one/inside", "changed");
    before.assert_unchanged(&src);
    assert_holds(volume.path(), &["src", "dst"]);
}

#[test]
#[cfg_attr(like_macos, ignore = "macOS has no subvolumes")]
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
#[cfg_attr(like_macos, ignore = "macOS has no subvolumes")]
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
#[cfg_attr(like_macos, ignore = "macOS has no subvolumes")]
fn a_snapshot_has_nothing_of_calves_own() {
    let Some(volume) = Volume::new(FileSystem::Btrfs) else { return };
    let (src, home) = (volume.path().join("src"), volume.path().join("home"));
    subvolume(&src);
    Tree::new(&home);
    Tree::new(&src).file("source/file", "1").file("a/deep/source/file", "1").file(".calve-trash-0-x/file", "1");
    subvolume(src.join("a/.calve-staging-x"));
    let (spares, templates) = (Spares::at(home.join("spares")), Templates::open(&home));
    for (name, at) in [("one", ""), ("two", "a/deep")] {
        let source = src.join(at).join("source");
        spares.add(&SpareOrigin::Directory(source.clone()), &SpareOptions::default()).unwrap();
        let mut options = TemplateOptions::default();
        options.at = Some(src.join(at));
        templates.create(name, &source, &options).unwrap();
    }
    assert_eq!(spares.refill(&crate::spare::foreground()).unwrap().built, 2);
    Tree::new(&src).mtime("a/deep", 7, 7).mtime("a", 6, 6).mtime("", 5, 5);
    for (name, exclude) in [("dst", vec![]), ("without", vec!["*.log".to_owned()])] {
        let mut options = options(|options| options.spares = Some(SpareUse::in_home(&home)));
        options.require = vec![Requirement::Stable];
        options.exclude = exclude;
        let dst = volume.path().join(name);
        let report = clone_with(&options, &src, &dst);
        assert_eq!(report.strategy == Strategy::Snapshot, options.exclude.is_empty(), "{:?}", report.refused);
        assert!(
            report.skipped.iter().any(|skipped| skipped.path.ends_with(".calve-trash-0-x")),
            "{:?}",
            report.skipped
        );
        for directory in ["", "a", "a/deep"] {
            let times = |root: &std::path::Path| fs::metadata(root.join(directory)).unwrap().modified().unwrap();
            assert_eq!(times(&dst), times(&src), "{directory}");
        }
        assert_holds(&dst, &["source", "a"]);
        assert_holds(dst.join("a"), &["deep"]);
        assert_holds(dst.join("a/deep"), &["source"]);
    }
}

/// Other users cannot look into the clone of a private tree before it is published, and it gets the source's own mode last.
#[test]
#[cfg_attr(like_macos, ignore = "macOS has no subvolumes")]
fn a_staged_snapshot_is_private() {
    let Some(volume) = Volume::new(FileSystem::Btrfs) else { return };
    let src = volume.path().join("src");
    subvolume(&src);
    calve_testkit::wide(src.join("many"), 2_000);
    Tree::new(&src).acl("", "u::rwx,u:7:r-x,g::r-x,m::rwx,o::r-x,d:u::rwx,d:g::r-x,d:o::---").mtime("", 77, 7);
    // Which takes a while.
    let options = verified(Strategy::Snapshot);
    let directory = volume.path().join("place");
    fs::create_dir(&directory).unwrap();
    let mut seen = std::collections::BTreeMap::<u32, usize>::new();
    std::thread::scope(|scope| {
        let work = scope.spawn(|| clone_with(&options, &src, directory.join("dst")));
        while !work.is_finished() {
            for entry in fs::read_dir(&directory).unwrap() {
                let name = entry.unwrap().file_name();
                let lock = name.as_encoded_bytes().ends_with(b".lock");
                if !lock && let (true, Ok(stat)) = (name != "dst", rustix::fs::lstat(directory.join(&name))) {
                    *seen.entry(stat.st_mode & 0o7777).or_default() += 1;
                }
            }
        }
    });
    let private = seen.get(&0o700).copied().unwrap_or_default();
    assert!(private > 0 && private * 2 > seen.values().sum(), "{seen:?}");
    assert_same(&src, directory.join("dst"));
}

/// A clone of one's own subvolume failed when another user's was nested in it: only its owner may snapshot that.
#[test]
#[cfg_attr(like_macos, ignore = "macOS has no subvolumes")]
fn somebody_elses_nested_subvolume_is_no_failure() {
    const CASES: [(&str, &str); 3] = [
        ("direct", "only the owner of the nested subvolume"),
        ("deep", "only the owner of the nested subvolume"),
        ("locked", "you may not change"),
    ];
    if let Some(directory) = child::directory() {
        for (case, reason) in CASES {
            let report = clone(directory.join(case), directory.join(format!("{case}-dst")));
            assert_eq!(report.strategy, Strategy::Reflink);
            assert!(report.refused[0].reason.contains(reason), "{:?}", report.refused);
            assert!(directory.join(format!("{case}-dst/one/two/file")).exists());
        }
        assert_eq!(clone(directory.join("own"), directory.join("own-dst")).strategy, Strategy::Snapshot);
        assert_same(directory.join("own"), directory.join("own-dst"));
        return;
    }
    let Some(volume) = Volume::new(FileSystem::Btrfs) else { return };
    let directory = volume.path().join("place");
    fs::create_dir(&directory).unwrap();
    for case in ["direct", "deep", "locked", "own"] {
        for path in ["", "one", "one/two"] {
            subvolume(directory.join(case).join(path));
        }
        let tree = Tree::new(directory.join(case)).file("one/two/file", vec![b'x'; 10_000]).mode("one/two/file", 0o644);
        let (uid, gid) = (UnprivilegedUser::UID, UnprivilegedUser::GID);
        let mut tree = tree.owner("", uid, gid).owner("one/two/file", uid, gid);
        if case != "direct" {
            tree = tree.owner("one", uid, gid);
        }
        if case != "deep" {
            tree = tree.owner("one/two", uid, gid);
        }
        if case == "locked" {
            tree = tree.dir("one/two/between");
            subvolume(tree.path().join("one/two/between/three"));
            let _ = tree.owner("one/two/between/three", uid, gid);
        }
    }
    Tree::new(volume.path()).owner("place", UnprivilegedUser::UID, UnprivilegedUser::GID);
    let name = "conformance::subvolumes::somebody_elses_nested_subvolume_is_no_failure";
    child::run_copied(name, &volume, &directory, |program| UnprivilegedUser::command(program));
}

#[test]
#[cfg_attr(like_macos, ignore = "macOS has no subvolumes")]
fn an_owner_may_snapshot_and_others_may_not() {
    if let Some(directory) = child::directory() {
        let own = directory.join("own");
        subvolume(&own);
        Tree::new(&own).file("file", "1");
        assert_eq!(clone(&own, directory.join("dst")).strategy, Strategy::Snapshot);
        // Another user's: the next best, and why.
        let report =
            calve_core::clone_tree(&directory.join("../theirs"), &directory.join("dst-2"), &CloneOptions::default())
                .unwrap();
        assert_eq!(report.strategy, Strategy::Reflink);
        assert!(report.refused[0].reason.contains("owner"), "{:?}", report.refused);
        let error = refused(&only(Strategy::Snapshot), directory.join("../theirs"), directory.join("dst-3"));
        assert!(matches!(error, Error::RequirementRefused { .. }), "{error}");
        assert_holds(&directory, &["own", "dst", "dst-2"]);
        return;
    }
    let Some(volume) = Volume::new(FileSystem::Btrfs) else { return };
    subvolume(volume.path().join("theirs"));
    Tree::new(volume.path()).file("theirs/file", vec![b'x'; 10_000]).mode("theirs/file", 0o644).dir("place").owner(
        "place",
        UnprivilegedUser::UID,
        UnprivilegedUser::GID,
    );
    let name = "conformance::subvolumes::an_owner_may_snapshot_and_others_may_not";
    child::run_copied(name, &volume, volume.path().join("place"), |program| UnprivilegedUser::command(program));
}
