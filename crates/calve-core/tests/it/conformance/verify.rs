//! `CloneVerification::Contents` catches differences. The matrix has the trees that it passes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use calve_core::{Error, Strategy, clone_tree};
use calve_testkit::{FileSystem, Tree, Volume};
use fs_err as fs;

use crate::cloning::{assert_holds, clone_with, verified};

/// A file of the source that is written to between the clone and the comparison.
#[test]
fn a_difference_is_caught_and_nothing_is_published() {
    let Some(volume) = Volume::new(FileSystem::Tmpfs) else { return };
    let tree = Tree::new(volume.path()).file("src/a", "1").file("src/z/last", vec![b'x'; 8 << 20]).dir("place");
    let [src, dst] = ["src", "place/dst"].map(|name| tree.path().join(name));
    let done = AtomicBool::new(false);
    let caught = thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !done.load(Ordering::Relaxed) {
                number += 1;
                fs::write(src.join("a"), format!("{number}")).unwrap();
            }
        });
        let caught = (0..500).find_map(|_| match clone_tree(&src, &dst, &verified(Strategy::Copy)) {
            Err(error @ Error::VerifyFailed { .. }) => Some(error),
            Err(Error::Io { .. }) => None,
            Err(error) => panic!("{error}"),
            Ok(_) => {
                fs::remove_dir_all(&dst).unwrap();
                None
            }
        });
        done.store(true, Ordering::Relaxed);
        caught
    });
    let error = caught.expect("no difference was caught");
    assert!(error.to_string().contains("`a`"), "{error}");
    assert_eq!(error.remedy(), Some(calve_core::error::Remedy::RetryWhileIdle));
    assert_holds(volume.path().join("place"), &[]);
}

/// The receipt's list of skipped entries is cut at 10,000; verification does not depend on it.
#[test]
fn any_number_of_entries_may_be_left_out() {
    let Some(volume) = Volume::new(FileSystem::Tmpfs) else { return };
    let src = volume.path().join("src");
    calve_testkit::wide(src.join("many"), 10_050);
    Tree::new(&src).file("many/kept", "1").socket("many/socket").file(".calve-trash-0-a/b", "1");
    let mut options = verified(Strategy::Copy);
    options.exclude = vec!["many/entry-*".into()];
    let report = clone_with(&options, &src, volume.path().join("dst"));
    assert_eq!(crate::cloning::names_in(volume.path().join("dst/many")), ["kept"]);
    assert_eq!(report.skipped.len(), 10_000);
}
