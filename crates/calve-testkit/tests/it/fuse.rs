//! The FUSE volume lacks what it promises to lack, and nothing else.

use calve_testkit::{Aspect, FuseVolume, Tree, assert_same, assert_same_except, everything, random, rsync_differences};
use rustix::fs::{CWD, FlockOperation, RenameFlags, SeekFrom, XattrFlags};
use rustix::io::Errno;

use crate::{cp_a, scratch};

#[test]
fn a_tree_is_copied_into_it_and_out_again() {
    let Some(volume) = FuseVolume::new() else {
        return;
    };
    let outside = scratch();
    let (src, inside, back) = (volume.path().join("src"), volume.path().join("dst"), outside.path().join("back"));
    let left_out = everything(&src);
    assert!(
        left_out.len() == 2 && left_out[0].starts_with("xattrs") && left_out[1].starts_with("ACLs"),
        "{left_out:?}"
    );
    // It has no holes, and a terabyte of zeros does not fit the memory.
    cp_a(&src, &inside);
    assert_same(&src, &inside);
    cp_a(&inside, &back);
    assert_same_except(&inside, &back, &[Aspect::Holes]);
    assert_eq!(rsync_differences(&src, &inside), "");
    random(outside.path().join("a"), 7, 300);
    cp_a(&outside.path().join("a"), &volume.path().join("b"));
    assert_same_except(outside.path().join("a"), volume.path().join("b"), &[Aspect::Xattrs, Aspect::Holes]);
    calve_testkit::node_modules_like(volume.path().join("tree"), 500);
    ["src", "dst", "b", "tree"].iter().for_each(|name| calve_testkit::remove_deep(volume.path().join(name)));
    assert_eq!(fs_err::read_dir(volume.path()).unwrap().count(), 0);
}

#[test]
fn reading_the_chosen_name_fails_and_writing_does_not() {
    let Some(volume) = FuseVolume::with_unreadable("broken") else {
        return;
    };
    Tree::new(volume.path()).file("dir/broken", b"1").file("dir/whole", b"2");
    let broken = fs_err::File::open(volume.path().join("dir/broken")).unwrap();
    assert_eq!(rustix::io::read(&broken, &mut [0; 10]), Err(Errno::IO));
    assert_eq!(fs_err::read(volume.path().join("dir/whole")).unwrap(), b"2");
}

#[test]
fn rename_flags_are_refused_and_rename_works() {
    let Some(volume) = FuseVolume::new() else {
        return;
    };
    let root = volume.path();
    Tree::new(root).file("a", b"1").dir("d/e");
    let refused = rustix::fs::renameat_with(CWD, root.join("a"), CWD, root.join("b"), RenameFlags::NOREPLACE);
    assert_eq!(refused, Err(Errno::INVAL));
    fs_err::rename(root.join("a"), root.join("d/b")).unwrap();
    assert_eq!(fs_err::read(root.join("d/b")).unwrap(), b"1");
    assert_eq!(rustix::fs::rename(root.join("d/e"), root.join("d/b")), Err(Errno::NOTDIR));
}

#[test]
fn there_are_no_xattrs_but_locks() {
    let Some(volume) = FuseVolume::new() else {
        return;
    };
    let path = volume.path().join("a");
    fs_err::write(&path, b"1").unwrap();
    let set = rustix::fs::lsetxattr(&path, "user.a", b"1", XattrFlags::empty());
    assert_eq!(set, Err(Errno::OPNOTSUPP));
    let (first, second) = (fs_err::File::open(&path).unwrap(), fs_err::File::open(&path).unwrap());
    rustix::fs::flock(&first, FlockOperation::NonBlockingLockExclusive).unwrap();
    assert_eq!(rustix::fs::flock(&second, FlockOperation::NonBlockingLockExclusive), Err(Errno::AGAIN));
    assert_eq!(rustix::fs::seek(&first, SeekFrom::Data(0)), Ok(0));
}
