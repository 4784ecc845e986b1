//! A directory in particular: whatever else has come to its place stays.

use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use calve_core::internal::remove_opened;
use calve_core::{Error, RemoveOptions};
use calve_testkit::rounds;
use fs_err as fs;
use rustix::fs::{CWD, RenameFlags, renameat_with};

fn make(at: &Path, text: &str) {
    fs::create_dir(at).unwrap();
    fs::write(at.join("file"), text).unwrap();
}

#[test]
fn what_has_taken_the_place_of_an_open_directory_is_not_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (at, away) = (folder.path().join("at"), folder.path().join("away"));
    make(&at, "expected");
    let open = fs::File::open(&at).unwrap();
    fs::rename(&at, &away).unwrap();
    let refused = || remove_opened(&at, open.file().as_fd(), &RemoveOptions::default()).unwrap_err();
    assert!(matches!(refused(), Error::Missing(_)));
    make(&at, "other");
    assert!(matches!(refused(), Error::Protected { .. }));
    assert_eq!(fs::read_to_string(at.join("file")).unwrap(), "other");
    fs::remove_dir_all(&at).unwrap();
    fs::rename(&away, &at).unwrap();
    remove_opened(&at, open.file().as_fd(), &RemoveOptions::default()).unwrap();
    assert!(!at.exists());
}

/// Two directories change places all the time. Only one of them may go.
#[test]
fn what_takes_its_place_at_any_moment_is_not_removed() {
    for _ in 0..rounds(200) {
        let folder = tempfile::tempdir().unwrap();
        let (at, beside) = (folder.path().join("at"), folder.path().join("beside"));
        make(&at, "expected");
        make(&beside, "other");
        let open = fs::File::open(&at).unwrap();
        let is_over = AtomicBool::new(false);
        let removed = thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    // It fails where one of them is on its way.
                    let _ = renameat_with(CWD, &at, CWD, &beside, RenameFlags::EXCHANGE);
                }
            });
            let removed = remove_opened(&at, open.file().as_fd(), &RemoveOptions::default());
            is_over.store(true, Ordering::Relaxed);
            removed
        });
        let texts = [&at, &beside].map(|path| fs::read_to_string(path.join("file")).unwrap_or_default());
        assert!(texts.contains(&"other".to_owned()), "{removed:?}: {texts:?}");
        assert_eq!(removed.is_ok(), !texts.contains(&"expected".to_owned()), "{removed:?}: {texts:?}");
    }
}
