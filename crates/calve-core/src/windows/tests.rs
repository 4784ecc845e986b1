//! The engine on a real tree. What these need runs under wine too; links and block cloning do not exist there.

use std::fs::{File, OpenOptions};
use std::os::windows::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use tempfile::TempDir;
use windows_sys::Win32::Storage::FileSystem::{FILE_ATTRIBUTE_HIDDEN, FILE_ATTRIBUTE_READONLY, FILE_ATTRIBUTE_SYSTEM};

use super::lock::Lock;
use crate::hidden::Purpose;
use crate::reason::WarningCode;
use crate::{
    Background, CancelToken, Choice, CloneOptions, CloneVerification, Error, RemovalWait, RemoveOptions, Strategy,
    clone_tree, reap, remove_tree, sys,
};

fn source() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(path("src/sub/deep")).unwrap();
    for name in ["src/a", "src/sub/b", "src/sub/deep/c"] {
        std::fs::write(path(name), name).unwrap();
    }
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn clone(folder: &TempDir, options: &CloneOptions) -> Result<crate::CloneReport, Error> {
    clone_tree(&folder.path().join("src"), &folder.path().join("dst"), options)
}

#[test]
fn attributes_and_times_are_kept_of_files_and_directories() {
    let folder = source();
    let path = |name: &str| folder.path().join(name);
    let attributes = FILE_ATTRIBUTE_READONLY | FILE_ATTRIBUTE_HIDDEN | FILE_ATTRIBUTE_SYSTEM;
    let old = SystemTime::UNIX_EPOCH + Duration::from_nanos(1_234_567_890_123_456_700);
    for name in ["src/sub", "src/sub/b"] {
        let file = sys::open(&path(name), 0x0100 | 0x0080).unwrap();
        file.set_times(std::fs::FileTimes::new().set_modified(old).set_accessed(old)).unwrap();
        sys::set_attributes(&path(name), attributes).unwrap();
    }
    clone(&folder, &CloneOptions { verify: CloneVerification::Contents, ..Default::default() }).unwrap();
    for name in ["sub", "sub/b", "a", "."] {
        let [src, dst] = ["src", "dst"].map(|root| std::fs::metadata(path(root).join(name)).unwrap());
        assert_eq!(src.last_write_time(), dst.last_write_time(), "{name}");
        assert_eq!(src.creation_time(), dst.creation_time(), "{name}");
        assert_eq!(src.file_attributes(), dst.file_attributes(), "{name}");
    }
    let attributes_kept = std::fs::metadata(path("dst/sub/b")).unwrap().file_attributes();
    assert_ne!(attributes_kept & FILE_ATTRIBUTE_READONLY, 0);
    // Read-only and all, it can be removed.
    remove_tree(&path("dst"), &RemoveOptions { wait: RemovalWait::Yes, ..Default::default() }).unwrap();
    assert_eq!(names(folder.path()), ["src"]);
}

#[test]
fn a_file_in_use_is_waited_for_and_then_named() {
    let folder = source();
    let busy = folder.path().join("src/sub/b");
    let alone = || OpenOptions::new().read(true).write(true).share_mode(0).open(&busy).unwrap();
    let handle = alone();
    let started = Instant::now();
    let error = clone(&folder, &CloneOptions::default()).unwrap_err();
    assert!(started.elapsed() >= sys::PATIENCE / 2, "it gave up after {:?}", started.elapsed());
    assert_eq!(error.errno(), Some(32), "{error}");
    assert!(error.to_string().contains(r"src\sub\b"), "{error}");
    assert_eq!(names(folder.path()), ["src"]);
    // Let go in time, it is no error.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            drop(handle);
        });
        clone(&folder, &CloneOptions::default()).unwrap();
    });
    assert_eq!(std::fs::read_to_string(folder.path().join("dst/sub/b")).unwrap(), "src/sub/b");
}

#[test]
fn names_of_one_file_stay_names_of_one_file() {
    let folder = source();
    let path = |name: &str| folder.path().join(name);
    std::fs::hard_link(path("src/a"), path("src/sub/again")).unwrap();
    std::fs::hard_link(path("src/a"), path("src/sub/deep/and again")).unwrap();
    let report = clone(&folder, &CloneOptions::default()).unwrap();
    let entries = report.entries.unwrap();
    assert_eq!((entries.files, entries.hard_links, entries.directories), (3, 2, 3));
    let identity = |name: &str| sys::look(&path(name)).unwrap().identity;
    assert_eq!(identity("dst/a"), identity("dst/sub/again"));
    assert_eq!(identity("dst/a"), identity("dst/sub/deep/and again"));
    assert_ne!(identity("dst/a"), identity("src/a"));
}

#[test]
fn only_what_nobody_holds_is_swept_and_only_what_its_lock_names() {
    let folder = source();
    let leftover = |purpose| {
        let lock = Lock::reserve(folder.path(), purpose).unwrap();
        std::fs::create_dir(lock.path()).unwrap();
        std::fs::write(lock.path().join("file"), "x").unwrap();
        lock
    };
    let alive = leftover(Purpose::Staging);
    alive.record(sys::look(&alive.path()).unwrap().identity).unwrap();
    let dead = leftover(Purpose::Staging);
    dead.record(sys::look(&dead.path()).unwrap().identity).unwrap();
    // Somebody has put something else under the name.
    let foreign = leftover(Purpose::Staging);
    foreign.record(sys::Identity { volume: 1, file: 2 }).unwrap();
    let (dead_path, foreign_path) = (dead.path(), foreign.path());
    drop((dead, foreign));
    let report = clone(&folder, &CloneOptions::default()).unwrap();
    assert!(alive.path().join("file").exists() && foreign_path.join("file").exists());
    assert!(!dead_path.exists());
    let codes: Vec<_> = report.warnings.iter().map(|warning| warning.code).collect();
    assert_eq!(codes, [WarningCode::Swept, WarningCode::NotSwept]);
    assert!(!folder.path().join("dst").join(".calve-staging").exists());
}

#[test]
fn trash_is_left_for_the_reaper_and_hidden_from_git() {
    let folder = source();
    std::fs::create_dir(folder.path().join("src/.git")).unwrap();
    let report = remove_tree(&folder.path().join("src"), &RemoveOptions::default()).unwrap();
    let trash = folder.path().join(report.trashed.unwrap().name);
    assert_eq!(std::fs::read_to_string(trash.join(".gitignore")).unwrap(), "*\n");
    assert!(!trash.join(".git").exists());
    assert_eq!(names(folder.path()).len(), 2);
    let reaped = reap(folder.path(), Background::No, &CancelToken::default()).unwrap();
    assert!(reaped.failure.is_none() && reaped.deleted >= 7, "{reaped:?}");
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_directory_in_use_is_not_removed_in_part() {
    let folder = source();
    let pinned = sys::pin(&folder.path().join("src")).unwrap().unwrap();
    let error = remove_tree(&folder.path().join("src"), &RemoveOptions::default()).unwrap_err();
    assert_eq!(error.remedy(), Some(crate::Remedy::CloseProgram));
    drop(pinned);
    assert_eq!(names(folder.path()), ["src"]);
    assert_eq!(names(&folder.path().join("src")), ["a", "sub"]);
}

#[test]
fn a_cancelled_clone_leaves_nothing() {
    let folder = source();
    let options = CloneOptions::default();
    options.cancel.cancel();
    assert!(matches!(clone(&folder, &options), Err(Error::Interrupted)));
    assert_eq!(names(folder.path()), ["src"]);
}

#[test]
fn the_named_strategy_or_none() {
    let folder = source();
    for (strategy, works) in [
        (Strategy::Hardlink, true),
        (Strategy::Snapshot, false),
        (Strategy::Clonefile, false),
        (Strategy::Overlay, false),
    ] {
        let done = clone(&folder, &CloneOptions { strategy: Choice::Only(strategy), ..Default::default() });
        assert_eq!(done.is_ok(), works, "{strategy}: {done:?}");
    }
    let identity = |name: &str| sys::look(&folder.path().join(name)).unwrap().identity;
    assert_eq!(identity("src/a"), identity("dst/a"));
}

#[test]
fn verification_finds_what_differs() {
    use super::compare::{Comparison, compare};
    use crate::tree::exclude::Exclusions;
    let folder = source();
    clone(&folder, &CloneOptions::default()).unwrap();
    let (src, dst) = (folder.path().join("src"), folder.path().join("dst"));
    let exclude = Exclusions::new(&[]).unwrap();
    let cancel = CancelToken::default();
    let differs = || {
        let comparison = Comparison { src: &src, dst: &dst, shown_src: &src, exclude: &exclude, cancel: &cancel };
        compare(&comparison, None).err().map(|error| error.to_string())
    };
    assert_eq!(differs(), None);
    let write_time = File::open(dst.join("a")).unwrap().metadata().unwrap().modified().unwrap();
    std::fs::write(dst.join("a"), "SRC/a").unwrap();
    let changed = OpenOptions::new().write(true).open(dst.join("a")).unwrap();
    changed.set_modified(write_time).unwrap();
    drop(changed);
    assert!(differs().unwrap().contains("other contents"), "{:?}", differs());
    std::fs::remove_file(dst.join("a")).unwrap();
    assert!(differs().is_some());
}

// Neither tmpfs nor NTFS has block cloning: whatever a file system says to it has to be known.
#[test]
fn a_refusal_to_share_blocks_is_understood() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a"), "1").unwrap();
    let (a, b) = (std::fs::File::open(directory.path().join("a")), sys::create_file(&directory.path().join("b")));
    let error = sys::reflink(&a.unwrap(), &b.unwrap()).unwrap_err();
    assert!(super::file::may_be_copied(&error), "{error:?}");
}
