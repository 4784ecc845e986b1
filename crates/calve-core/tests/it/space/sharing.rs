//! Files that hold the same share their extents, and nothing else changes.

use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use calve_core::report::LeftReason;
use calve_core::space::DedupeReport;
use calve_core::{CloneOptions, clone_tree};
use calve_testkit::{FileSystem, SplitMix64, Tree, Volume, everything, fingerprint, rounds, spawn_written};
use fs_err as fs;

use super::{dry, plain, share, share_with, usage, used, volumes};
use crate::cloning::run;
use crate::extents::extents;

/// Files of many sizes, the same in every tree made with the same seed.
fn files(root: &Path, seed: u64) {
    let mut random = SplitMix64::new(seed);
    for size in [1, 100, 4095, 4096, 4097, 8192, 40_000, 65_536, 65_537, 1 << 20, 3_000_001] {
        Tree::new(root).file(format!("folder/{size} bytes"), random.bytes(size));
    }
}

fn is_shared(file: &Path) -> bool {
    let found = extents(file);
    found.count > 0 && found.shared == found.count
}

#[test]
fn two_copies_of_a_tree_share_everything_and_nothing_else_changes() {
    for volume in volumes() {
        let (a, b) = (volume.path().join("a"), volume.path().join("b"));
        for root in [&a, &b] {
            files(root, 1);
            everything(root.join("everything"));
        }
        volume.settle();
        let before = fingerprint(volume.path());
        let (report, free) = (share(&[&a, &b]), used(&volume));
        before.assert_unchanged(volume.path());
        for size in [4096, 65_537, 3_000_001] {
            let name = format!("folder/{size} bytes");
            assert!(is_shared(&a.join(&name)) && is_shared(&b.join(&name)), "{name} {report:?}");
        }
        assert!(report.shared.bytes > 4_000_000 && report.gained_bytes.unwrap() > 4_000_000, "{report:?}");
        // A second time there is nothing to do, and nothing is read.
        let again = share(&[&a, &b]);
        assert_eq!((again.shared.files, again.shared.bytes), (0, 0), "{again:?}");
        assert!(again.already_files >= report.shared.files, "{report:?} {again:?}");
        assert!(used(&volume) <= free + (64 << 10));
        before.assert_unchanged(volume.path());
    }
}

#[test]
fn files_that_only_look_alike_are_no_set() {
    for volume in volumes() {
        let [a, b] = ["a", "b"].map(|name| volume.path().join(name));
        let contents = |seed| SplitMix64::new(seed).bytes(9000);
        Tree::new(&a).file("version", contents(1)).file("same", contents(2));
        Tree::new(&b).file("version", contents(3)).file("same", contents(2));
        volume.settle();
        let report = share(&[&a, &b]);
        assert_eq!((report.groups, report.shared.files, report.shared.bytes), (1, 1, 9000), "{report:?}");
    }
}

#[test]
fn a_file_counts_once_however_often_its_path_is_named() {
    let Some(volume) = Volume::new(FileSystem::Btrfs) else { return };
    let (a, inner) = (volume.path().join("a"), volume.path().join("a/folder"));
    files(&a, 1);
    files(&a.join("folder"), 1);
    let file = inner.join("4096 bytes");
    let told = |report: &DedupeReport| (report.files, report.groups, report.already_files, report.unreadable);
    let [a, inner, file] = [&a, &inner, &file].map(|path| path.as_path());
    let once = told(&share(&[a]));
    for more in [&[a, a][..], &[inner, a], &[a, inner, file], &[file, file, a]] {
        let again = told(&share(more));
        assert_eq!((again.0, again.1, again.3), (once.0, once.1, once.3), "{more:?}");
    }
}

#[test]
fn files_of_other_names_are_found_by_what_they_hold() {
    for volume in volumes() {
        let root = volume.path().join("tree");
        let content = SplitMix64::new(3).bytes(200_000);
        let mut other = content.clone();
        other[150_000] ^= 1;
        Tree::new(&root).file("a", &content).file("b/c", &content).file("same size", &other).file("d", &content);
        let report = share(&[&root]);
        assert_eq!((report.groups, report.shared.files), (1, 2), "{report:?}");
        assert!(["a", "b/c", "d"].iter().all(|name| is_shared(&root.join(name))));
        assert!(!is_shared(&root.join("same size")));
    }
}

#[test]
fn a_file_of_the_same_path_that_holds_something_else_is_compared_with_the_others() {
    for volume in volumes() {
        let (one, two) = (SplitMix64::new(1).bytes(50_000), SplitMix64::new(2).bytes(50_000));
        Tree::new(volume.path()).file("a/x", &one).file("b/x", &two).file("b/y", &one).file("c/z", &two);
        let roots = ["a", "b", "c"].map(|name| volume.path().join(name));
        let report = share(&[&roots[0], &roots[1], &roots[2]]);
        assert_eq!(report.shared.files, 2, "{report:?}");
        assert!(["a/x", "b/x", "b/y", "c/z"].iter().all(|name| is_shared(&volume.path().join(name))), "{report:?}");
    }
}

#[test]
fn a_dry_run_changes_nothing_and_says_what_would_be_shared() {
    for volume in volumes() {
        let (a, b) = (volume.path().join("a"), volume.path().join("b"));
        files(&a, 1);
        files(&b, 1);
        volume.settle();
        let would = calve_core::space::dedupe(&[&a, &b], &dry()).unwrap();
        assert!(!is_shared(&a.join("folder/4096 bytes")));
        let did = share(&[&a, &b]);
        assert_eq!((would.shared.files, would.shared.bytes), (did.shared.files, did.shared.bytes));
    }
}

#[test]
fn only_what_is_in_the_other_tree_is_shared_with_it() {
    for volume in volumes() {
        let content = SplitMix64::new(1).bytes(100_000);
        let only_here = SplitMix64::new(2).bytes(90_000);
        Tree::new(volume.path().join("base")).file("x", &content);
        let root = volume.path().join("mine");
        Tree::new(&root).file("y", &content).file("p", &only_here).file("q", &only_here);
        let report = share_with(&volume.path().join("base"), &root);
        assert_eq!(report.shared.files, 1, "{report:?}");
        assert!(is_shared(&root.join("y")) && !is_shared(&root.join("p")));
    }
}

#[test]
fn a_clone_that_was_rebuilt_shares_again() {
    for volume in volumes() {
        let (a, b) = (volume.path().join("a"), volume.path().join("b"));
        files(&a, 1);
        files(&b, 1);
        Tree::new(&b).file("folder/4096 bytes", SplitMix64::new(77).bytes(4096)).file("only here", "x");
        volume.settle();
        let before = fingerprint(volume.path());
        let report = share_with(&a, &b);
        assert!(report.shared.files >= 8, "{report:?}");
        assert!(is_shared(&b.join("folder/3000001 bytes")) && !is_shared(&b.join("folder/4096 bytes")));
        before.assert_unchanged(volume.path());
    }
}

#[test]
fn what_is_shared_already_is_not_read() {
    for volume in volumes() {
        let (a, b) = (volume.path().join("a"), volume.path().join("b"));
        Tree::new(&a).file("large", SplitMix64::new(1).bytes(5 << 20));
        volume.settle();
        clone_tree(&a, &b, &CloneOptions::default()).unwrap();
        Tree::new(&b).file("other", SplitMix64::new(2).bytes(5 << 20));
        let report = share(&[&a, &b]);
        assert!(report.hashed.bytes <= 10 << 20 && report.already_files == 1 && report.shared.files == 0, "{report:?}");
    }
}

#[test]
fn what_was_found_out_is_kept_and_damage_to_it_does_no_harm() {
    for volume in volumes() {
        let (root, cache) = (volume.path().join("tree"), tempfile::tempdir().unwrap());
        let content = SplitMix64::new(1).bytes(100_000);
        Tree::new(&root).file("a", &content).file("b", &content).file("c", SplitMix64::new(4).bytes(100_000));
        let mut options = plain();
        options.cache = Some(cache.path().to_path_buf());
        let run = || calve_core::space::dedupe(&[&root], &options).unwrap();
        assert_eq!(run().hashed.files, 2, "the third has another beginning");
        assert_eq!(run().hashed.files, 1, "now that the others' hashes are known");
        assert_eq!(run().hashed.files, 0);
        let file = fs::read_dir(cache.path()).unwrap().next().unwrap().unwrap().path();
        let mut bytes = fs::read(&file).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        fs::write(&file, bytes).unwrap();
        let report = run();
        assert_eq!(report.warnings.len(), 1, "{report:?}");
        assert_eq!((report.shared.files, report.already_files), (0, 1), "{report:?}");
        assert!(run().warnings.is_empty());
        // A file that was written since is not taken for what it was.
        fs::write(root.join("b"), SplitMix64::new(5).bytes(100_000)).unwrap();
        assert_eq!(run().shared.files, 0);
        assert_eq!(fs::read(root.join("a")).unwrap(), content);
    }
}

#[test]
fn hard_links_sparse_files_and_strange_names_are_dealt_with() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    for volume in volumes() {
        let root = volume.path().join("tree");
        let name = OsStr::from_bytes(b"\xff\xfe\n name");
        let content = SplitMix64::new(1).bytes(70_000);
        Tree::new(&root)
            .file("a", &content)
            .hard_link("a again", "a")
            .file(name, &content)
            .sparse("s1", 100 << 30, &[(0, b"begin"), (50 << 30, &content)])
            .sparse("s2", 100 << 30, &[(0, b"begin"), (50 << 30, &content)])
            .file("1", "x")
            .file("2", "x");
        volume.settle();
        let before = fingerprint_of_small(&root);
        let report = share(&[&root]);
        assert!(is_shared(&root.join(name)) && is_shared(&root.join("s2")), "{report:?}");
        assert_eq!(fs::metadata(root.join("s1")).unwrap().len(), 100 << 30);
        for sparse in ["s1", "s2"] {
            assert!(fs::metadata(root.join(sparse)).unwrap().blocks() < 1000, "the holes are still holes");
            let (mut begin, mut middle) = ([0; 8], vec![0; content.len() + 3]);
            let file = fs::File::open(root.join(sparse)).unwrap();
            file.file().read_exact_at(&mut begin, 0).unwrap();
            file.file().read_exact_at(&mut middle, 50 << 30).unwrap();
            assert!(begin == *b"begin\0\0\0" && middle == [content.as_slice(), &[0; 3]].concat(), "{sparse}");
        }
        assert_eq!(before, fingerprint_of_small(&root));
        if volume.file_system() == FileSystem::Btrfs {
            assert!(report.left_alone.iter().any(|left| left.reason == LeftReason::Inline), "{report:?}");
        } else {
            assert!(is_shared(&root.join("1")), "{report:?}");
        }
    }
}

/// Without the contents of the large sparse files.
fn fingerprint_of_small(root: &Path) -> Vec<(std::ffi::OsString, i64, i64, u32, u64)> {
    let entry = |entry: fs::DirEntry| {
        let stat = entry.metadata().unwrap();
        (entry.file_name(), stat.mtime_nsec(), stat.ctime_nsec(), stat.mode(), stat.size())
    };
    let mut all: Vec<_> = fs::read_dir(root).unwrap().map(|found| entry(found.unwrap())).collect();
    all.sort();
    all
}

#[test]
fn a_tree_against_itself_counts_once() {
    let Some(volume) = volumes().next() else { return };
    let content = SplitMix64::new(1).bytes(50_000);
    let tree = volume.path().join("tree");
    Tree::new(&tree).file("x", &content).file("y", &content);
    let report = share_with(&tree, &tree);
    assert_eq!((report.files, report.shared.files), (2, 0));
}

#[test]
fn append_only_files_are_shared_and_immutable_ones_left_alone_as_a_dry_run_says() {
    for volume in volumes() {
        for (flag, shared) in [("a", 1), ("i", 0)] {
            let [a, b] = ["a", "b"].map(|name| volume.path().join(flag).join(name));
            let content = SplitMix64::new(1).bytes(50_000);
            Tree::new(&a).file("x", &content);
            Tree::new(&b).file("x", &content);
            run("chattr", |command| command.arg(format!("+{flag}")).arg(b.join("x")));
            let mut dry = dry();
            dry.against = vec![a.clone()];
            let reports = [calve_core::space::dedupe(&[&b], &dry).unwrap(), share_with(&a, &b)];
            run("chattr", |command| command.arg(format!("-{flag}")).arg(b.join("x")));
            for report in reports {
                let left: Vec<_> = report.left_alone.iter().map(|left| &left.reason).collect();
                assert_eq!(report.shared.files, shared, "{report:?}");
                assert_eq!(left.contains(&&LeftReason::Immutable), shared == 0, "{report:?}");
                assert!(shared == 0 || left.is_empty(), "{report:?}");
            }
        }
    }
}

#[test]
fn a_running_program_is_shared_like_any_file() {
    for volume in volumes() {
        let root = volume.path().join("tree");
        let program = fs::read("/bin/sleep").unwrap();
        Tree::new(&root).file("a", &program).mode("a", 0o755).file("b", &program).mode("b", 0o755);
        let mut running = spawn_written(std::process::Command::new(root.join("b")).arg("60"));
        let report = share(&[&root]);
        running.kill().unwrap();
        running.wait().unwrap();
        assert_eq!(report.shared.files, 1, "{report:?}");
    }
}

#[test]
fn files_on_two_file_systems_are_shared_on_each_alone() {
    let all: Vec<Volume> = volumes().collect();
    let [xfs, btrfs] = all.as_slice() else { return };
    let content = SplitMix64::new(1).bytes(50_000);
    for volume in [xfs, btrfs] {
        Tree::new(volume.path().join("t")).file("a", &content).file("b", &content);
    }
    let report = share(&[xfs.path(), btrfs.path()]);
    assert_eq!((report.shared.files, report.left_alone.len()), (2, 0), "{report:?}");
    let figures = usage(&[&xfs.path().join("t"), &btrfs.path().join("t")]);
    assert!(figures.total.shared_within >= 2 * 49_152, "{figures:?}");
}

#[test]
fn a_full_disk_is_no_danger() {
    for volume in volumes() {
        let (a, b) = (volume.path().join("a"), volume.path().join("b"));
        files(&a, 1);
        files(&b, 1);
        volume.settle();
        let before = [fingerprint(&a), fingerprint(&b)];
        let mut filler = fs::File::create(volume.path().join("filler")).unwrap();
        let block = SplitMix64::new(1).bytes(1 << 20);
        while std::io::Write::write_all(&mut filler, &block).is_ok() {}
        let report = share(&[&a, &b]);
        assert!(report.shared.files > 0 || !report.left_alone.is_empty(), "{report:?}");
        before[0].assert_unchanged(&a);
        before[1].assert_unchanged(&b);
    }
}

/// Writes a file of 4 MiB whose bytes are compressible: in one go, in every other block first, or compressed where the file system does that.
fn write_in_a_way(volume: &Volume, file: &Path, content: &[u8], way: u64) {
    fs::write(file, "").unwrap();
    if way == 2 && volume.file_system() == FileSystem::Btrfs {
        run("btrfs", |command| command.args(["property", "set"]).arg(file).args(["compression", "zstd"]));
    }
    let open = fs::OpenOptions::new().write(true).open(file).unwrap();
    let blocks = || content.chunks(4096).zip(0..);
    let halves: &[&dyn Fn(u64) -> bool] = if way == 1 { &[&|at| at % 2 == 0, &|at| at % 2 == 1] } else { &[&|_| true] };
    for half in halves {
        for (block, at) in blocks().filter(|(_, at)| half(*at)) {
            open.file().write_all_at(block, at * 4096).unwrap();
        }
        open.sync_all().unwrap();
    }
}

#[test]
fn of_equal_files_the_one_that_lies_best_is_kept_whatever_its_name() {
    for volume in volumes() {
        let mut random = SplitMix64::new(11);
        for round in 0..rounds(20) {
            let root = volume.path().join(round.to_string());
            fs::create_dir(&root).unwrap();
            let content = random.bytes(1024).repeat(4096);
            let ways: Vec<_> = (0..2 + random.below(3)).map(|_| random.below(3)).collect();
            for (at, &way) in ways.iter().enumerate() {
                write_in_a_way(&volume, &root.join(at.to_string()), &content, way);
            }
            volume.settle();
            let of_each = || (0..ways.len()).map(|at| extents(&root.join(at.to_string())));
            let fewest = of_each().map(|found| found.count).min();
            let compressed = volume.file_system() == FileSystem::Btrfs && ways.contains(&2);
            let report = share(&[&root]);
            assert_eq!(report.groups, 1, "{ways:?} {report:?}");
            let all: Vec<_> = of_each().collect();
            if compressed {
                assert!(all.iter().all(|found| found.encoded > 0), "{ways:?} {all:?}");
            } else {
                assert!(all.iter().all(|found| Some(found.count) == fewest), "{ways:?} {fewest:?} {all:?}");
            }
        }
    }
}
