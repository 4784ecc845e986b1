//! What `disk_usage` says is what the file system says when the trees are really deleted.

use std::path::{Path, PathBuf};

use calve_core::space::Usage;
use calve_core::{CloneOptions, clone_tree};
use calve_testkit::{FileSystem, SplitMix64, Tree, Volume, everything, node_modules_like};
use fs_err as fs;

use super::{share, usage, used};
use crate::cloning::{run, subvolume};

const ALL: [FileSystem; 4] = [FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs, FileSystem::Tmpfs];

/// Deletes a tree, and returns how many bytes that has freed.
fn freed(volume: &Volume, tree: &Path) -> u64 {
    let before = used(volume);
    run("rm", |command| command.arg("-rf").arg(tree));
    before - used(volume)
}

/// One in a hundred, and what a file system allocates at a time.
fn agrees(usage: &Usage, freed: u64, what: &str) {
    let slack = freed / 100 + (256 << 10);
    assert!(usage.frees_min <= freed + slack, "{what}: freed {freed}, said to free at least {usage:?}");
    assert!(usage.frees_max + slack >= freed, "{what}: freed {freed}, said to free at most {usage:?}");
}

#[test]
fn what_deleting_frees_is_what_it_was_said_to_free() {
    for file_system in ALL {
        let Some(volume) = Volume::new(file_system) else { continue };
        let name = file_system.name();
        let [a, b, c] = ["a", "b", "c"].map(|name| volume.path().join(name));
        node_modules_like(&a, 3000);
        everything(a.join("everything"));
        volume.settle();
        clone_tree(&a, &b, &CloneOptions::default()).unwrap();
        clone_tree(&a, &c, &CloneOptions::default()).unwrap();
        volume.settle();
        let one = usage(&[&b]).total;
        let two = usage(&[&b, &c]);
        let first = freed(&volume, &b);
        agrees(&one, first, name);
        agrees(&two.total, first + freed(&volume, &c), name);
        assert_eq!(two.paths.len(), 2);
        agrees(&usage(&[&a]).total, freed(&volume, &a), name);
    }
}

#[test]
fn thousands_of_inodes_are_within_the_bounds_to_the_byte() {
    for options in ["noikeep", "ikeep"] {
        let Some(volume) = Volume::builder(FileSystem::Xfs).mount_option(options).mount() else { return };
        let root = volume.path().join("tree");
        // Their index has several blocks.
        for folder in 0..80 {
            fs::create_dir_all(root.join(folder.to_string())).unwrap();
            for file in 0..500 {
                fs::write(root.join(format!("{folder}/{file}")), "").unwrap();
            }
        }
        volume.settle();
        let found = usage(&[&root]).total;
        let freed = freed(&volume, &root);
        assert!(found.frees_min <= freed && freed <= found.frees_max, "{options}: freed {freed} {found:?}");
        assert!(found.frees_max - found.frees_min < 64 << 20, "{found:?}");
    }
}

#[test]
fn without_sharing_the_figure_is_exact() {
    for file_system in [FileSystem::Ext4, FileSystem::Tmpfs] {
        let Some(volume) = Volume::new(file_system) else { continue };
        let root = volume.path().join("tree");
        Tree::new(&root).file("a", SplitMix64::new(1).bytes(1 << 20)).file("b/c", SplitMix64::new(2).bytes(5000));
        volume.settle();
        let found = usage(&[&root]).total;
        assert_eq!(found.frees_min, found.frees_max);
        assert_eq!(found.frees_min, freed(&volume, &root), "{}", file_system.name());
    }
}

#[test]
fn sharing_inside_the_set_is_told_from_sharing_outside() {
    for file_system in [FileSystem::Xfs, FileSystem::Btrfs] {
        let Some(volume) = Volume::new(file_system) else { continue };
        let [a, b] = ["a", "b"].map(|name| volume.path().join(name));
        Tree::new(&a).file("x", SplitMix64::new(1).bytes(8 << 20)).file("mine", SplitMix64::new(2).bytes(1 << 20));
        volume.settle();
        clone_tree(&a, &b, &CloneOptions::default()).unwrap();
        fs::remove_file(b.join("mine")).unwrap();
        volume.settle();
        let found = usage(&[&a, &b]);
        let first = found.paths[0].usage;
        assert_eq!((first.exclusive >> 20, first.shared_within), (1, 0), "{found:?}");
        assert_eq!((first.shared_outside_min, first.shared_outside_max), (8 << 20, 8 << 20), "{found:?}");
        assert_eq!(found.total.shared_within, 8 << 20, "{found:?}");
        if file_system == FileSystem::Btrfs {
            assert_eq!(found.total.frees_data, Some(9 << 20), "root on btrfs knows it exactly: {found:?}");
            assert_eq!(found.total.shared_outside_max, 0);
        } else {
            assert!(found.total.frees_min < 2 << 20 && found.total.frees_max > 9 << 20, "{found:?}");
        }
    }
}

#[test]
fn on_btrfs_the_exclusive_bytes_are_those_of_its_own_program() {
    let Some(volume) = Volume::new(FileSystem::Btrfs) else { return };
    let [a, b] = ["a", "b"].map(|name| volume.path().join(name));
    for root in [&a, &b] {
        node_modules_like(root, 500);
    }
    Tree::new(&a).file("more", SplitMix64::new(5).bytes(1 << 20));
    volume.settle();
    share(&[&a, &b]);
    volume.settle();
    let output = run("btrfs", |command| command.args(["filesystem", "du", "-s", "--raw"]).arg(&a));
    let mut fields = output.lines().last().unwrap().split_whitespace().map(|field| field.parse::<u64>().ok());
    let exclusive = fields.nth(1).unwrap().unwrap();
    assert_eq!(usage(&[&a]).total.exclusive, exclusive, "{output}");
}

#[test]
fn fresh_files_are_exclusive_and_small_ones_count_as_long_as_they_are() {
    for file_system in [FileSystem::Xfs, FileSystem::Btrfs] {
        let Some(volume) = Volume::new(file_system) else { continue };
        let root = volume.path().join("tree");
        Tree::new(&root).file("small", "five!");
        volume.settle();
        let inline = usage(&[&root]).total.inline;
        assert_eq!(inline, if file_system == FileSystem::Btrfs { 5 } else { 0 });
        Tree::new(&root).file("fresh", SplitMix64::new(3).bytes(1 << 20));
        let found = usage(&[&root]).total;
        assert_eq!(found.exclusive >> 20, 1, "{}: {found:?}", file_system.name());
    }
}

#[test]
fn hard_links_are_counted_once_and_free_nothing_while_another_name_is_elsewhere() {
    for file_system in ALL {
        let Some(volume) = Volume::new(file_system) else { continue };
        let root = volume.path().join("tree");
        Tree::new(&root).file("a", SplitMix64::new(1).bytes(1 << 20)).hard_link("b", "a").file("c", "x");
        fs::hard_link(root.join("c"), volume.path().join("outside")).unwrap();
        Tree::new(&root).file("held", SplitMix64::new(2).bytes(2 << 20));
        fs::hard_link(root.join("held"), volume.path().join("keeps it")).unwrap();
        volume.settle();
        let found = usage(&[&root]).total;
        assert_eq!((found.entries.files, found.entries.hard_links), (3, 1), "{found:?}");
        assert!(found.frees_max < (1 << 20) + (256 << 10), "{}: {found:?}", file_system.name());
        assert!(found.shared_outside_min >= 2 << 20, "{found:?}");
        let twice = usage(&[&root, &root.join("a"), &root]);
        assert_eq!(twice.paths.iter().map(|one| one.inside_another).collect::<Vec<_>>(), [false, true, true]);
        assert_eq!(twice.total.apparent, found.apparent);
    }
}

#[test]
fn two_names_of_a_file_are_two_paths() {
    for file_system in ALL {
        let Some(volume) = Volume::new(file_system) else { continue };
        let root = volume.path();
        Tree::new(root).file("a", SplitMix64::new(1).bytes(1 << 20)).hard_link("b", "a").hard_link("d/c", "a");
        Tree::new(root).hard_link("e/a", "a");
        volume.settle();
        let paths = ["a", "b", "d", "e/a", "./a", "d/c"].map(|name| root.join(name));
        let found = usage(&paths.each_ref().map(PathBuf::as_path));
        let inside: Vec<_> = found.paths.iter().map(|one| one.inside_another).collect();
        assert_eq!(inside, [false, false, false, false, true, true], "{}", file_system.name());
        assert!(found.total.frees_min >= 1 << 20, "{}: {found:?}", file_system.name());
        assert!(found.paths.iter().all(|one| one.usage.frees_max < 1 << 20), "{}: {found:?}", file_system.name());
    }
}

#[test]
fn on_btrfs_no_more_is_freed_than_was_said() {
    type Make = fn(&Path);
    let cases: [(&str, Make); 6] = [
        ("long attributes", |root| {
            (0..20_u8).fold(Tree::new(root), |tree, number| {
                let name = number.to_string();
                tree.file(&name, "").xattr(name, "user.x", [number; 15_000])
            });
        }),
        ("one long attribute of a directory", |root| drop(Tree::new(root).dir("d").xattr("d", "user.x", [1; 15_000]))),
        ("hard links", |root| {
            let tree = Tree::new(root).file("name", SplitMix64::new(1).bytes(1 << 20));
            (0..500).fold(tree, |tree, number| tree.hard_link(format!("another name {number}"), "name"));
        }),
        ("an empty subvolume", |root| subvolume(root)),
        ("a subvolume with a file", |root| {
            subvolume(root);
            Tree::new(root).file("file", SplitMix64::new(1).bytes(4 << 20));
        }),
        ("a small file", |root| drop(Tree::new(root).file("file", "contents"))),
    ];
    for (what, make) in cases {
        let Some(volume) = Volume::new(FileSystem::Btrfs) else { return };
        let root = volume.path().join("tree");
        make(&root);
        volume.settle();
        let found = usage(&[&root]).total;
        let freed = freed(&volume, &root);
        assert!(found.frees_min <= freed && freed <= found.frees_max, "{what}: freed {freed}, {found:?}");
    }
}

#[test]
fn on_ext4_equal_attributes_are_freed_with_the_last_file_that_has_them() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    let [a, b] = ["a", "b"].map(|name| volume.path().join(name));
    for root in [&a, &b] {
        let tree = Tree::new(root).file("file", "contents").xattr("file", "user.x", [1; 2000]).dir("d");
        tree.xattr("d", "user.x", [2; 2000]);
    }
    volume.settle();
    for root in [a, b] {
        let found = usage(&[&root]).total;
        let freed = freed(&volume, &root);
        assert!(found.frees_min < found.frees_max, "{found:?}");
        assert!(found.frees_min <= freed && freed <= found.frees_max, "freed {freed}, {found:?}");
    }
}

#[test]
fn compressed_and_partly_used_extents_are_told_as_they_lie_on_the_disk() {
    let Some(volume) = Volume::builder(FileSystem::Btrfs).mount_option("compress-force=zstd").mount() else { return };
    let [a, b] = ["a", "b"].map(|name| volume.path().join(name));
    // To a sixteenth or less.
    Tree::new(&a).file("text", "all the same again and again\n".repeat(1 << 18));
    Tree::new(&a).file("plain", SplitMix64::new(1).bytes(4 << 20));
    volume.settle();
    clone_tree(&a, &b, &CloneOptions::default()).unwrap();
    // Of the one extent half is the clone's alone to keep.
    let file = fs::OpenOptions::new().write(true).open(b.join("plain")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(file.file(), &SplitMix64::new(2).bytes(2 << 20), 0).unwrap();
    drop(file);
    volume.settle();
    let (one, both) = (usage(&[&a]).total, usage(&[&a, &b]).total);
    assert!(both.apparent > 20 << 20 && both.frees_data.unwrap() < 8 << 20, "{both:?}");
    let first = freed(&volume, &a);
    agrees(&one, first, "compressed, one");
    let rest = usage(&[&b]).total;
    let second = freed(&volume, &b);
    agrees(&rest, second, "compressed, the other");
    agrees(&both, first + second, "compressed, both");
}

#[test]
fn a_snapshot_keeps_what_its_source_has() {
    let Some(volume) = Volume::new(FileSystem::Btrfs) else { return };
    let source = volume.path().join("subvolume");
    subvolume(&source);
    Tree::new(&source).file("a", SplitMix64::new(1).bytes(4 << 20));
    volume.settle();
    clone_tree(&source, &volume.path().join("snapshot"), &CloneOptions::default()).unwrap();
    volume.settle();
    let found = usage(&[&source]).total;
    assert!(found.frees_max < 1 << 20 && found.shared_outside_min == 4 << 20, "{found:?}");
}
