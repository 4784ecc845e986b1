//! The rules of macOS that Linux does not have, over the stand-in for its kernel: XFS is APFS, and ext4 is HFS+ there.

use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use calve_core::report::WarningCode;
use calve_core::{CloneVerification, Requirement, Strategy};
use calve_testkit::{FileSystem, Tree, Volume, assert_same, everything, skip};
use fs_err as fs;
use rustix::fs::XattrFlags;

use crate::cloning::{assert_holds, clone, clone_with, options, replacing, waiting};

const ACL: &str = "user.like.acl";

fn xattr(path: impl AsRef<std::path::Path>, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 1 << 16];
    let length = rustix::fs::getxattr(path.as_ref(), name, &mut value[..]).ok()?;
    value.truncate(length);
    Some(value)
}

fn has(path: impl AsRef<std::path::Path>, flag: rustix::fs::IFlags) -> bool {
    let file = fs::File::open(path.as_ref()).unwrap();
    rustix::fs::ioctl_getflags(&file).unwrap().contains(flag)
}

fn locked(path: impl AsRef<std::path::Path>, is_locked: bool) {
    let file = fs::File::open(path.as_ref()).unwrap();
    let mut flags = rustix::fs::ioctl_getflags(&file).unwrap();
    flags.set(rustix::fs::IFlags::IMMUTABLE, is_locked);
    rustix::fs::ioctl_setflags(&file, flags).unwrap();
}

#[test]
fn a_tree_is_cloned_by_one_call_and_verified() {
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    let [src, dst] = ["src", "dst"].map(|name| volume.path().join(name));
    everything(&src);
    let report = clone_with(&options(|options| options.verify = CloneVerification::Contents), &src, &dst);
    assert_eq!((report.strategy, report.entries), (Strategy::Clonefile, None));
    assert!(report.warnings.iter().any(|warning| warning.code == WarningCode::ClonefileDrops));
}

#[test]
fn another_volume_and_one_without_clones_get_a_copy_and_the_receipt_says_why() {
    let (Some(apfs), Some(hfs)) = (Volume::new(FileSystem::Xfs), Volume::new(FileSystem::Ext4)) else { return };
    for (volume, dst, why) in [
        (&apfs, hfs.path().join("dst"), "source and destination are on different volumes"),
        (&hfs, hfs.path().join("dst2"), "hfs has no clonefile"),
    ] {
        let src = volume.path().join("src");
        everything(&src);
        let report = clone(&src, &dst);
        assert_eq!(report.strategy, Strategy::Copy);
        let refused = report.refused.iter().find(|refusal| refusal.strategy == Strategy::Clonefile).unwrap();
        assert_eq!(refused.reason, why);
        assert_same(&src, &dst);
    }
}

#[test]
fn a_plan_and_a_probe_say_what_is_done() {
    let volumes = [FileSystem::Xfs, FileSystem::Xfs, FileSystem::Ext4].map(Volume::new);
    let [Some(apfs), Some(other), Some(hfs)] = &volumes else { return };
    for (from, to, strategy) in [
        (apfs, apfs, Strategy::Clonefile),
        (apfs, other, Strategy::Copy),
        (apfs, hfs, Strategy::Copy),
        (hfs, apfs, Strategy::Copy),
        (hfs, hfs, Strategy::Copy),
    ] {
        let (src, dst) = (from.path().join("src"), to.path().join("dst"));
        Tree::new(&src).file("a/file", "1").file("b", "2");
        for exclude in [vec![], vec!["b".to_owned()]] {
            let options = options(|options| options.exclude = exclude);
            let planned = calve_core::plan(&src, &dst, &options).unwrap();
            let probed = calve_core::probe(&src, to.path()).unwrap().chosen;
            let report = clone_with(&options, &src, &dst);
            assert_eq!((planned.strategy, probed, report.strategy), (strategy, Some(strategy), strategy));
            fs::remove_dir_all(&dst).unwrap();
        }
    }
}

#[test]
fn the_root_of_a_volume_is_cloned_in_parts() {
    let (Some(volume), Some(other)) = (Volume::new(FileSystem::Xfs), Volume::new(FileSystem::Xfs)) else { return };
    Tree::new(volume.path()).file("a/b/file", "1").file("c", "2");
    let inside = volume.path().join("a");
    let report = clone(&inside, volume.path().join("d"));
    assert_eq!(report.strategy, Strategy::Clonefile);
    // All of a volume goes to another one only.
    let report = clone(volume.path(), other.path().join("all"));
    assert_eq!(report.strategy, Strategy::Copy);
    assert_same(volume.path().join("a"), other.path().join("all/a"));
}

#[test]
fn a_file_is_cloned_with_what_the_call_drops() {
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    let tree = Tree::new(volume.path()).file("file", vec![b'x'; 100_000]).mode("file", 0o4755);
    let report = clone_with(
        &options(|options| options.require = vec![Requirement::Cow]),
        tree.path().join("file"),
        tree.path().join("copy"),
    );
    assert_eq!((report.strategy, report.bytes.unwrap().shared), (Strategy::Clonefile, 100_000));
    let [file, copy] = ["file", "copy"].map(|name| fs::metadata(tree.path().join(name)).unwrap());
    assert_eq!((file.mode(), file.mtime_nsec(), file.len()), (copy.mode(), copy.mtime_nsec(), copy.len()));
}

#[test]
fn a_root_that_denies_its_own_rename_is_published() {
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    let [src, dst] = ["src", "dst"].map(|name| volume.path().join(name));
    Tree::new(&src).file("file", "1").mode("", 0o555);
    rustix::fs::setxattr(&src, ACL, b"deny delete", XattrFlags::empty()).unwrap();
    clone(&src, &dst);
    assert_same(&src, &dst);
    assert_eq!(xattr(&dst, ACL).as_deref(), Some(&b"deny delete"[..]));
}

#[test]
fn a_locked_root_is_published_locked_and_not_removed() {
    if !calve_testkit::is_root() {
        return skip("locks files");
    }
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    let [src, dst] = ["src", "dst"].map(|name| volume.path().join(name));
    Tree::new(&src).file("file", "1");
    locked(&src, true);
    clone(&src, &dst);
    let error = calve_core::remove_tree(&dst, &calve_core::RemoveOptions::default()).unwrap_err();
    assert!(error.to_string().contains("Operation not permitted"), "{error}");
    Tree::new(volume.path()).file("other/file", "2");
    assert!(calve_core::clone_tree(&volume.path().join("other"), &dst, &replacing()).is_err());
    for path in [&src, &dst] {
        locked(path, false);
    }
    assert_same(&src, &dst);
    assert_holds(volume.path(), &["src", "dst", "other"]);
}

#[test]
fn long_attributes_arrive_whole() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    let [src, dst] = ["src", "dst"].map(|name| volume.path().join(name));
    Tree::new(&src).file("file", "1");
    let values = [("user.long", vec![7; 1500]), ("user.like.fork", (0..1500u16).map(|at| at as u8).collect())];
    for (name, value) in &values {
        rustix::fs::setxattr(src.join("file"), *name, value, XattrFlags::empty()).unwrap();
    }
    clone_with(&options(|options| options.verify = CloneVerification::Contents), &src, &dst);
    for (name, value) in values {
        assert_eq!(xattr(dst.join("file"), name), Some(value));
    }
}

#[test]
fn a_directory_whose_listing_passes_over_names_is_emptied() {
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    let file = |tree: Tree, number| tree.file(format!("a/{}/{number}", number % 7), "1");
    (0..2000).fold(Tree::new(volume.path()), file);
    calve_core::remove_tree(&volume.path().join("a"), &waiting()).unwrap();
    assert_holds(volume.path(), &[] as &[&str]);
}

#[test]
fn locked_files_do_not_keep_a_clone_that_failed_and_stay_where_they_are_the_users() {
    if !calve_testkit::is_root() {
        return skip("locks files");
    }
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    let [src, dst] = ["src", "dst"].map(|name| volume.path().join(name));
    Tree::new(&src).file("a/file", "1").file("a/other", "2");
    let paths = ["a/file", "a", ""].map(|path| src.join(path));
    paths.iter().for_each(|path| locked(path, true));
    let options = calve_core::CloneOptions::default();
    let failed = calve_core::internal::stage_in(None, &dst, &options, |staged| -> Result<(), calve_core::Error> {
        staged.clone_root(&src, &options)?;
        Err(calve_core::Error::Interrupted)
    });
    assert!(failed.is_err());
    assert_holds(volume.path(), &["src"]);
    paths.iter().for_each(|path| locked(path, false));
    assert_eq!(fs::read(src.join("a/file")).unwrap(), b"1");
}

#[test]
fn lists_below_the_root_are_kept_and_the_clone_has_none_of_its_parents() {
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    let [src, dst] = ["src", "dst"].map(|name| volume.path().join(name));
    Tree::new(&src).file("plain/a/file", "1").file("a/b/file", "2").file("a/b/other", "3").file("c/d/file", "4");
    for (path, list) in [("a/b", "deny write"), ("c/d/file", "deny delete")] {
        rustix::fs::setxattr(src.join(path), ACL, list.as_bytes(), XattrFlags::empty()).unwrap();
    }
    rustix::fs::setxattr(volume.path(), ACL, b"deny read inherit", XattrFlags::empty()).unwrap();
    for (name, wanted) in [("src", Strategy::Clonefile), ("src/plain", Strategy::Clonefile)] {
        let _ = fs::remove_dir_all(&dst);
        let verified = options(|options| options.verify = CloneVerification::Contents);
        assert_eq!(clone_with(&verified, volume.path().join(name), &dst).strategy, wanted);
        assert_same(volume.path().join(name), &dst);
        assert_eq!(xattr(&dst, ACL), None);
    }
    fs::remove_dir_all(&dst).unwrap();
    let report = clone(&src, &dst);
    assert!(report.warnings.iter().any(|warning| warning.code == WarningCode::ClonefileDrops), "parts are whole");
    for (path, list) in [("a/b", "deny write"), ("c/d/file", "deny delete")] {
        assert_eq!(xattr(dst.join(path), ACL).as_deref(), Some(list.as_bytes()));
    }
}

#[test]
fn a_copy_keeps_flags_and_says_which_it_could_not() {
    use rustix::fs::IFlags;
    if !calve_testkit::is_root() {
        return skip("locks files");
    }
    // One without clones.
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    let [src, dst] = ["src", "dst"].map(|name| volume.path().join(name));
    let tree = Tree::new(&src).file("a/b/file", "1").file("a/nodump", "2").file("a/linked", "3").file("appended", "4");
    fs::hard_link(src.join("a/linked"), src.join("a/link")).unwrap();
    let set = |path: &str, flag| {
        let file = fs::File::open(src.join(path)).unwrap();
        rustix::fs::ioctl_setflags(&file, rustix::fs::ioctl_getflags(&file).unwrap() | flag).unwrap();
    };
    set("a/nodump", IFlags::NODUMP);
    set("appended", IFlags::APPEND);
    let all = ["a/b/file", "a/b", "a/linked", "a", ""];
    all.iter().for_each(|path| locked(src.join(path), true));
    let report = clone_with(&options(|options| options.verify = CloneVerification::Contents), &src, &dst);
    assert_eq!(report.strategy, Strategy::Copy);
    let told = report.warnings.iter().filter(|warning| warning.code == WarningCode::AttributeNotKept);
    let mut told: Vec<_> = told.map(|warning| warning.path.clone().unwrap()).collect();
    told.sort();
    // Whichever of the two names was met first.
    assert!(told.len() == 2 && told[0].starts_with("a") && told[1].ends_with("appended"), "{:?}", report.warnings);
    for (path, flag, kept) in [
        ("a/b/file", IFlags::IMMUTABLE, true),
        ("a/b", IFlags::IMMUTABLE, true),
        ("a", IFlags::IMMUTABLE, true),
        ("", IFlags::IMMUTABLE, true),
        ("a/nodump", IFlags::NODUMP, true),
        ("a/linked", IFlags::IMMUTABLE, false),
        ("appended", IFlags::APPEND, false),
    ] {
        assert_eq!(has(dst.join(path), flag), kept, "{path}");
    }
    all.iter().rev().for_each(|path| [&src, &dst].iter().for_each(|root| locked(root.join(path), false)));
    let file = fs::File::open(src.join("appended")).unwrap();
    rustix::fs::ioctl_setflags(&file, rustix::fs::ioctl_getflags(&file).unwrap() - IFlags::APPEND).unwrap();
    drop(tree);
}

/// A copy of a locked file is locked. It is removed nevertheless when a file that belongs to it has changed meanwhile.
#[test]
fn a_locked_database_is_made_again_when_its_log_has_changed() {
    let Some(volume) = Volume::with_size(FileSystem::Ext4, 1 << 30) else { return };
    let [src, dst] = ["src", "dst"].map(|name| volume.path().join(name));
    fs::create_dir(&src).unwrap();
    fs::write(src.join("a.db"), vec![7; 96 << 20]).unwrap();
    fs::write(src.join("a.db-wal"), "0").unwrap();
    locked(src.join("a.db"), true);
    let ended = AtomicBool::new(false);
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                fs::write(src.join("a.db-wal"), number.to_string()).unwrap();
                std::thread::sleep(Duration::from_millis(15));
            }
        });
        let report = clone_with(&options(|_| {}), &src, &dst);
        ended.store(true, Ordering::Relaxed);
        report
    });
    assert_eq!(report.strategy, Strategy::Copy);
    assert!(report.changed.contains(&"a.db-wal".into()), "{:?}", report.changed);
    assert!(has(dst.join("a.db"), rustix::fs::IFlags::IMMUTABLE));
    [src, dst].iter().for_each(|tree| locked(tree.join("a.db"), false));
}
