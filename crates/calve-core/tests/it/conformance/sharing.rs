//! What the receipt says of bytes is what the kernel says of extents.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use calve_core::internal::InlinedBytes;
use calve_core::report::Bytes;
use calve_core::{Choice, Requirement, Strategy};
use calve_testkit::{FileSystem, SplitMix64, Tree, Volume, everything};
use fs_err as fs;

use crate::cloning::{SHARING, clone_with, only, options, run, used};
use crate::extents::extents;

/// The bytes of the clone's files, by what FIEMAP says of them.
fn bytes_by_extents(root: &Path) -> Bytes {
    let mut bytes = Bytes { inlined: Some(0), ..Bytes::default() };
    let mut inodes = std::collections::HashSet::new();
    let mut waiting = vec![root.to_path_buf()];
    while let Some(path) = waiting.pop() {
        let stat = fs::symlink_metadata(&path).unwrap();
        if stat.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if stat.is_file() && inodes.insert(stat.ino()) {
            let found = extents(&path);
            bytes.apparent += stat.len();
            match () {
                () if found.inline > 0 => *bytes.inlined.as_mut().unwrap() += stat.len(),
                () if found.shared == found.count => bytes.shared += stat.len().min(512 * stat.blocks()),
                () => {
                    assert_eq!(found.shared, 0, "`{}` is shared in part: {found:?}", path.display());
                    bytes.written += stat.len();
                }
            }
        }
    }
    bytes
}

fn files_of_all_sizes(src: &Path) {
    let mut random = SplitMix64::new(7);
    for size in [0, 1, 100, 1000, 2000, 2048, 2049, 3000, 4095, 4096, 4097, 8192, 16_384, 16_385, 50_000, 1 << 20] {
        Tree::new(src).file(format!("{size} bytes"), random.bytes(size));
    }
}

#[test]
#[cfg_attr(like_macos, ignore = "macOS shares files by clonefile alone")]
fn the_receipt_is_true_also_of_files_just_written() {
    let places = FileSystem::REFLINKING.into_iter().flat_map(|file_system| [(file_system, true), (file_system, false)]);
    for (file_system, settled) in places {
        let Some(volume) = Volume::new(file_system) else { return };
        let src = volume.path().join("src");
        files_of_all_sizes(&src);
        everything(src.join("everything"));
        if settled {
            volume.settle();
        }
        for strict in [false, true] {
            let dst = volume.path().join(format!("dst-{strict}"));
            let options = options(|options| {
                options.strategy = Choice::Only(Strategy::Reflink);
                options.require = strict.then_some(Requirement::Cow).into_iter().collect();
            });
            let report = clone_with(&options, &src, &dst);
            let counted = report.bytes.unwrap();
            assert_eq!(counted, bytes_by_extents(&dst), "counted, and found; strict: {strict}");
            assert!(counted.shared > 1 << 20, "{counted:?}");
            assert_eq!(counted.written, 0);
            assert!(report.fell_back.is_empty());
        }
    }
}

#[test]
fn a_copy_shares_nothing() {
    for file_system in FileSystem::REFLINKING {
        let Some(volume) = Volume::new(file_system) else { return };
        let [src, dst] = ["src", "dst"].map(|name| volume.path().join(name));
        files_of_all_sizes(&src);
        let counted = clone_with(&only(Strategy::Copy), &src, &dst).bytes.unwrap();
        let found = bytes_by_extents(&dst);
        // Empty files have no extents at all, and those in the metadata were written too.
        assert_eq!((found.shared, counted.shared, counted.inlined), (0, 0, Some(0)));
        assert_eq!(counted.written, counted.apparent);
    }
}

#[test]
#[cfg_attr(like_macos, ignore = "macOS shares files by clonefile alone")]
fn what_is_inlined_can_be_left_among_the_shared() {
    for file_system in FileSystem::REFLINKING {
        let Some(volume) = Volume::new(file_system) else { return };
        let [src, counted, shared] = ["src", "counted", "shared"].map(|name| volume.path().join(name));
        files_of_all_sizes(&src);
        let bytes = |inlined, dst: &Path| {
            let strict = options(|options| {
                options.require = vec![Requirement::Cow];
                options.internal.inlined = inlined;
            });
            clone_with(&strict, &src, dst).bytes.unwrap()
        };
        let (counted, shared) = (bytes(InlinedBytes::Counted, &counted), bytes(InlinedBytes::WithShared, &shared));
        assert_eq!(shared.shared, counted.shared + counted.inlined.unwrap());
        let may_inline = file_system == FileSystem::Btrfs;
        assert_eq!(shared.inlined, (!may_inline).then_some(0), "{file_system:?}");
        assert_eq!(counted.inlined.unwrap() > 0, may_inline);
    }
}

#[test]
fn what_is_shared_takes_no_room() {
    for file_system in FileSystem::REFLINKING {
        let Some(volume) = Volume::new(file_system) else { return };
        let src = volume.path().join("src");
        Tree::new(&src).file("large", SplitMix64::new(3).bytes(48 << 20));
        let before = used(&volume);
        clone_with(&only(SHARING), &src, volume.path().join("dst"));
        assert!(used(&volume) < before + (4 << 20), "{}", file_system.name());
        clone_with(&only(Strategy::Copy), &src, volume.path().join("copy"));
        assert!(used(&volume) >= before + (48 << 20), "{}", file_system.name());
    }
}

/// Small files whose contents are in memory are no exception.
#[test]
#[cfg_attr(like_macos, ignore = "macOS shares files by clonefile alone")]
fn small_files_take_as_much_room_as_with_cp_that_shares() {
    const FILES: usize = 2000;
    for file_system in FileSystem::REFLINKING {
        let Some(volume) = Volume::new(file_system) else { return };
        let [src, warm_up, by_cp, by_calve] =
            ["src", "warm-up", "by-cp", "by-calve"].map(|name| volume.path().join(name));
        let mut random = SplitMix64::new(11);
        for index in 0..FILES {
            let size = [2500, 4096, 9000, 16_384][index % 4];
            Tree::new(&src).file(format!("{}/{index}", index % 40), random.bytes(size));
        }
        let cp = |dst: &Path| run("cp", |cp| cp.args(["-a", "--reflink=always"]).arg(&src).arg(dst));
        // The first clone also makes what the file system needs once.
        cp(&warm_up);
        let start = used(&volume);
        cp(&by_cp);
        let after_cp = used(&volume);
        let report = clone_with(&options(|_| {}), &src, &by_calve);
        let (taken_by_cp, taken) = (after_cp - start, used(&volume).saturating_sub(after_cp));
        assert_eq!((report.strategy, report.bytes.unwrap().written), (Strategy::Reflink, 0));
        // Of the sixteen megabytes of contents none is stored again. Metadata is allotted in pieces.
        assert!(taken.abs_diff(taken_by_cp) <= 1 << 20, "{}: {taken}, by cp {taken_by_cp}", file_system.name());
    }
}

#[test]
#[cfg_attr(like_macos, ignore = "macOS shares files by clonefile alone")]
fn files_without_copy_on_write_are_shared_and_stay_so() {
    let Some(volume) = Volume::new(FileSystem::Btrfs) else { return };
    let tree = Tree::new(volume.path().join("src")).dir("database").file("cow", vec![b'c'; 100_000]);
    run("chattr", |chattr| chattr.arg("+C").arg(tree.path().join("database")));
    let tree = tree.file("database/table", vec![b'd'; 100_000]).file("database/empty", "");
    let dst = volume.path().join("dst");
    for strategy in [Strategy::Reflink, Strategy::Copy] {
        let report = clone_with(&only(strategy), tree.path(), &dst);
        assert!(report.fell_back.is_empty(), "{:?}", report.fell_back);
        assert_eq!((has_nocow(&dst.join("database")), has_nocow(&dst.join("cow"))), (true, false));
        if strategy == Strategy::Reflink {
            assert!(has_nocow(&dst.join("database/table")));
            assert_eq!(report.bytes.unwrap().shared, 200_000);
            assert_eq!(extents(&dst.join("database/table")).shared, extents(&dst.join("database/table")).count);
        }
        calve_testkit::assert_same(tree.path(), &dst);
        fs::remove_dir_all(&dst).unwrap();
    }
    // A parent without it is no reason to copy, and does not hand it down.
    let tree = Tree::new(volume.path().join("plain")).file("a/file", vec![b'c'; 100_000]);
    let parent = volume.path().join("parent");
    fs::create_dir(&parent).unwrap();
    run("chattr", |chattr| chattr.arg("+C").arg(&parent));
    let report = clone_with(&only(Strategy::Reflink), tree.path(), parent.join("dst"));
    assert!(report.fell_back.is_empty(), "{:?}", report.fell_back);
    assert_eq!(report.bytes.unwrap().shared, 100_000);
    for path in ["dst", "dst/a", "dst/a/file"] {
        assert!(!has_nocow(&parent.join(path)), "{path}");
    }
    let single = clone_with(&only(Strategy::Reflink), tree.path().join("a/file"), parent.join("single"));
    assert_eq!(single.bytes.unwrap().shared, 100_000);
    assert!(!has_nocow(&parent.join("single")));
}

fn has_nocow(path: &Path) -> bool {
    let flags = rustix::fs::ioctl_getflags(fs::File::open(path).unwrap()).unwrap();
    flags.contains(rustix::fs::IFlags::NOCOW)
}

#[test]
#[cfg_attr(like_macos, ignore = "macOS shares files by clonefile alone")]
fn holes_do_not_count_as_shared() {
    for file_system in [FileSystem::Xfs, FileSystem::Btrfs] {
        let Some(volume) = Volume::new(file_system) else { return };
        let src = Tree::new(volume.path().join("src")).sparse("sparse", 10 << 30, &[(1 << 30, &[7; 8192])]);
        for strategy in [Strategy::Reflink, Strategy::Hardlink] {
            let dst = volume.path().join(strategy.to_string());
            let bytes = clone_with(&only(strategy), src.path(), &dst).bytes.unwrap();
            assert_eq!((bytes.apparent, bytes.written), (10 << 30, 0), "{file_system:?} {strategy}");
            assert!((8192..1 << 20).contains(&bytes.shared), "{file_system:?} {strategy}: {bytes:?}");
        }
    }
}
