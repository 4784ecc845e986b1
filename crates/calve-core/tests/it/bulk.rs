//! Many small files at once: the files have their contents, and none is outside of the root.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use calve_core::bulk::{
    Directory, ExistingFile, Flush, OnError, Placement, ReadOptions, WriteEntry, WriteOptions, Writer, read_files,
};
use calve_core::{CancelToken, Error};
use calve_testkit::{FileSystem, Tree, Volume, few_rounds};
use fs_err as fs;

use crate::cloning::{names_in, write_files};

fn entry<'a>(path: &'a str, contents: &'a str) -> WriteEntry<'a> {
    WriteEntry { path: Path::new(path), contents: contents.as_bytes() }
}

fn making() -> WriteOptions {
    let mut options = WriteOptions::default();
    options.directory = Directory::Make;
    options
}

#[test]
fn everything_is_written_on_every_file_system() {
    let count = if few_rounds() { 600 } else { 3000 };
    for file_system in FileSystem::ALL {
        let Some(volume) = Volume::new(file_system) else { return };
        let names: Vec<(String, String)> = (0..count)
            .map(|n| (format!("{}/d{}/f{n}", n % 7, n % 40), format!("contents of {n}").repeat(n % 50)))
            .collect();
        let entries: Vec<_> = names.iter().map(|(path, contents)| entry(path, contents)).collect();
        for placement in [Placement::InPlace, Placement::Rename] {
            for threads in [None, std::num::NonZeroUsize::new(5)] {
                let root = volume.path().join("root");
                let mut options = making();
                (options.placement, options.threads, options.flush) = (placement, threads, Flush::AtEnd);
                let report = write_files(&root, &entries, options).unwrap();
                let bytes = names.iter().map(|(_, contents)| contents.len() as u64).sum::<u64>();
                assert_eq!((report.files, report.bytes, report.failures.len()), (count as u64, bytes, 0));
                for (path, contents) in &names {
                    assert_eq!(fs::read_to_string(root.join(path)).unwrap(), *contents);
                }
                let files = Command::new("find").arg(&root).args(["-type", "f"]).output().unwrap().stdout;
                assert_eq!(String::from_utf8(files).unwrap().lines().count(), count, "nothing else is there");
                let paths: Vec<_> = names.iter().map(|(path, _)| root.join(path)).collect();
                let read = read_files(&paths, &ReadOptions::default()).unwrap();
                assert_eq!(read.len(), count);
                for (read, (_, contents)) in read.into_iter().zip(&names) {
                    assert_eq!(read.unwrap(), contents.as_bytes());
                }
                fs::remove_dir_all(&root).unwrap();
            }
        }
    }
}

#[test]
fn nothing_is_written_outside_of_the_root() {
    let folder = tempfile::tempdir().unwrap();
    let (root, outside) = (folder.path().join("root"), folder.path().join("outside"));
    fs::create_dir(&root).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "old").unwrap();
    symlink(&outside, root.join("link")).unwrap();
    symlink(outside.join("file"), root.join("file")).unwrap();
    symlink(outside.join("new"), root.join("dangling")).unwrap();
    let absolute = outside.join("absolute");
    let paths =
        ["../outside/x", "link/x", "link/new/x", "file", "dangling", "a/../../outside/x", absolute.to_str().unwrap()];
    for path in paths {
        let error = write_files(&root, &[entry(path, "bad")], making()).unwrap_err();
        assert!(matches!(error, Error::OutsideRoot { .. } | Error::NotAFile { .. }), "{path}: {error}");
        let remedy = match error {
            Error::OutsideRoot { .. } => calve_core::error::Remedy::GiveRelativePaths,
            _ => calve_core::error::Remedy::NameRegularFile,
        };
        assert_eq!(error.remedy(), Some(remedy), "{path}: {error}");
    }
    assert_eq!(
        (names_in(&outside), names_in(&root)),
        (vec!["file".into()], vec!["dangling".into(), "file".into(), "link".into()])
    );
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "old");
    // By rename the link itself is replaced.
    let mut options = making();
    options.placement = Placement::Rename;
    write_files(&root, &[entry("file", "new")], options).unwrap();
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "old");
    assert_eq!(fs::read_to_string(root.join("file")).unwrap(), "new");
}

#[test]
fn files_that_are_there_are_overwritten_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("old"), "something long").unwrap();
    let inode = fs::metadata(folder.path().join("old")).unwrap().ino();
    let entries = [entry("new", "n"), entry("old", "o"), entry("new2", "m")];
    write_files(folder.path(), &entries, WriteOptions::default()).unwrap();
    assert_eq!(fs::read_to_string(folder.path().join("old")).unwrap(), "o");
    assert_eq!(fs::metadata(folder.path().join("old")).unwrap().ino(), inode);
    for placement in [Placement::InPlace, Placement::Rename] {
        let mut options = WriteOptions::default();
        (options.existing, options.on_error, options.placement) = (ExistingFile::Refuse, OnError::Collect, placement);
        fs::remove_file(folder.path().join("new2")).unwrap();
        let report = write_files(folder.path(), &entries, options).unwrap();
        let failed: Vec<_> = report.failures.iter().map(|failure| (failure.index, failure.error.errno())).collect();
        let overwrite = Some(calve_core::error::Remedy::OverwriteOrChooseAnotherPath);
        assert!(report.failures.iter().all(|failure| failure.error.remedy() == overwrite));
        let exists = Some(rustix::io::Errno::EXIST.raw_os_error());
        assert_eq!((failed, report.files), (vec![(0, exists), (1, exists)], 1));
        assert_eq!(names_in(folder.path()), ["new", "new2", "old"]);
    }
}

#[test]
fn an_error_names_the_file_and_not_a_hidden_one() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    volume.remount_read_only();
    for placement in [Placement::InPlace, Placement::Rename] {
        let mut options = WriteOptions::default();
        options.placement = placement;
        let error = write_files(volume.path(), &[entry("new", "n")], options).unwrap_err();
        assert!(error.to_string().contains(&format!("`{}/new`", volume.path().display())), "{error}");
    }
}

#[test]
fn of_two_entries_with_one_path_the_first_is_written_where_files_must_be_new() {
    for (entries, written) in [
        (vec![entry("a", "1"), entry("b", "2"), entry("a", "3"), entry("c", "4")], vec!["a", "b"]),
        (vec![entry("a", "1"), entry("../b", "2")], vec![]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut options = WriteOptions::default();
        options.existing = ExistingFile::Refuse;
        write_files(folder.path(), &entries, options).unwrap_err();
        assert_eq!(names_in(folder.path()), written);
        assert!(written.is_empty() || fs::read_to_string(folder.path().join("a")).unwrap() == "1");
    }
}

#[test]
fn a_file_that_is_replaced_by_rename_keeps_its_permissions() {
    let folder = tempfile::tempdir().unwrap();
    let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().mode() & 0o7777;
    for (name, permissions) in [("script", 0o755), ("secret", 0o600), ("read-only", 0o444), ("set-user-id", 0o4755)] {
        fs::write(folder.path().join(name), "old").unwrap();
        fs::set_permissions(folder.path().join(name), Permissions::from_mode(permissions)).unwrap();
    }
    symlink("script", folder.path().join("link")).unwrap();
    let entries = ["script", "secret", "read-only", "set-user-id", "link", "new"].map(|name| entry(name, "new"));
    let mut options = WriteOptions::default();
    (options.placement, options.mode) = (Placement::Rename, 0o640);
    write_files(folder.path(), &entries, options).unwrap();
    let modes = ["script", "secret", "read-only", "set-user-id", "link"].map(mode);
    // The new contents were never meant to run as another user.
    assert_eq!(modes, [0o755, 0o600, 0o444, 0o755, mode("new")]);
    assert_eq!(mode("new") & !0o640, 0);
    for name in ["script", "secret", "read-only", "link", "new"] {
        assert_eq!(fs::read_to_string(folder.path().join(name)).unwrap(), "new");
    }
}

#[test]
fn what_is_no_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    Tree::new(folder.path()).dir("directory").file("file", "").fifo("fifo");
    let fifo = write_files(folder.path(), &[entry("fifo", "x")], making()).unwrap_err();
    assert_eq!(fifo.remedy(), Some(calve_core::error::Remedy::NameRegularFile));
    let write = |path| write_files(folder.path(), &[entry(path, "x")], making()).unwrap_err().to_string();
    assert!(write("directory").contains("directory`: Is a directory"), "{}", write("directory"));
    assert!(write("fifo").contains("it is a FIFO"), "{}", write("fifo"));
    assert!(write("file/below").contains("file`: Not a directory"), "{}", write("file/below"));
    let missing = write_files(folder.path(), &[entry("no/file", "x")], WriteOptions::default()).unwrap_err();
    assert_eq!(missing.errno(), Some(rustix::io::Errno::NOENT.raw_os_error()));
    assert_eq!(missing.remedy(), Some(calve_core::error::Remedy::MakeMissingDirectory));
    // Of the root only the last directory is made.
    let root = folder.path().join("no/root");
    let Err(Error::ParentMissing(above)) = write_files(&root, &[entry("file", "x")], making()) else { panic!() };
    assert_eq!(above, folder.path().join("no"));
    assert!(matches!(write_files(&root, &[], WriteOptions::default()), Err(Error::Missing(path)) if path == root));
    let read: Vec<String> =
        read_files(&["directory", "fifo", "none"].map(|name| folder.path().join(name)), &ReadOptions::default())
            .unwrap()
            .into_iter()
            .map(|read| read.unwrap_err().to_string())
            .collect();
    assert!(
        read[0].contains("Is a directory") && read[1].contains("FIFO") && read[2].contains("does not exist"),
        "{read:?}"
    );
}

#[test]
fn a_cancelled_batch_stops_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = WriteOptions::default();
    let cancel = CancelToken::default();
    options.cancel = cancel.clone();
    let mut writer = Writer::open(folder.path(), options).unwrap();
    writer.write(&[entry("before", "x")]).unwrap();
    cancel.cancel();
    assert!(matches!(writer.write(&[entry("after", "x")]).unwrap_err(), Error::Interrupted));
    assert_eq!(names_in(folder.path()), ["before"]);
}

#[test]
fn reading_stops_when_it_is_enough() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..200).map(|n| folder.path().join(format!("{n}"))).collect();
    for path in &paths {
        fs::write(path, "0123456789").unwrap();
    }
    let mut options = ReadOptions::default();
    options.enough_bytes = 1;
    let mut read = 0;
    while read < paths.len() {
        let some = read_files(&paths[read..], &options).unwrap();
        assert!(!some.is_empty() && some.iter().all(|contents| contents.as_ref().unwrap() == b"0123456789"));
        // One file for each thread, at the most.
        assert!(some.len() <= 8, "{}", some.len());
        read += some.len();
    }
    assert_eq!(read, 200);
}

/// Files of one directory, which two threads share.
fn flat() -> Vec<(String, String)> {
    (0..1000).map(|n| (format!("d/f{n}"), format!("contents of {n}").repeat(n % 50))).collect()
}

fn two_threads() -> WriteOptions {
    let mut options = making();
    options.threads = std::num::NonZeroUsize::new(2);
    options
}

#[test]
fn two_threads_write_one_directory_completely_new_or_not() {
    for file_system in FileSystem::ALL {
        let Some(volume) = Volume::new(file_system) else { return };
        let (root, names) = (volume.path().join("root"), flat());
        let entries: Vec<_> = names.iter().map(|(path, contents)| entry(path, contents)).collect();
        let longer = "x".repeat(2000);
        let before: Vec<_> = names.iter().map(|(path, _)| entry(path, &longer)).collect();
        for first in [&before, &entries] {
            assert_eq!(write_files(&root, first, two_threads()).unwrap().files, 1000);
        }
        for (path, contents) in &names {
            assert_eq!(fs::read_to_string(root.join(path)).unwrap(), *contents);
        }
        assert_eq!(names_in(root.join("d")).len(), 1000);
    }
}

#[test]
fn two_threads_in_one_directory_go_on_or_stop_at_what_is_in_the_way() {
    for file_system in [FileSystem::Tmpfs, FileSystem::Xfs] {
        let Some(volume) = Volume::new(file_system) else { return };
        let (root, names) = (volume.path().join("root"), flat());
        let entries: Vec<_> = names.iter().map(|(path, contents)| entry(path, contents)).collect();
        fs::create_dir_all(root.join("d/f500")).unwrap();
        symlink("elsewhere", root.join("d/f700")).unwrap();
        let mut options = two_threads();
        options.on_error = OnError::Collect;
        let report = write_files(&root, &entries, options).unwrap();
        assert_eq!(report.files, 998);
        assert_eq!(report.failures.iter().map(|failure| failure.index).collect::<Vec<_>>(), [500, 700]);
        fs::remove_dir_all(&root).unwrap();
        fs::create_dir_all(root.join("d/f500")).unwrap();
        let error = write_files(&root, &entries, two_threads()).unwrap_err();
        assert_eq!(error.errno(), Some(rustix::io::Errno::ISDIR.raw_os_error()), "{error}");
        assert_eq!(error.remedy(), Some(calve_core::error::Remedy::CheckPathForDirectory));
        // Each file that is there is complete.
        for name in names_in(root.join("d")).into_iter().filter(|name| name != "f500") {
            let contents = &names.iter().find(|(path, _)| *path == format!("d/{name}")).unwrap().1;
            assert_eq!(fs::read_to_string(root.join("d").join(&name)).unwrap(), *contents, "{name}");
        }
    }
}

#[test]
fn two_threads_fill_a_disk_and_leave_no_half_file() {
    type PathOf = fn(usize) -> String;
    let (apart, together): (PathOf, PathOf) = (|n| format!("d{n}/file"), |n| format!("d/f{n}"));
    for (file_system, disk, size, path) in [
        (FileSystem::Tmpfs, 2 << 20, 300_000, apart),
        (FileSystem::Tmpfs, 2 << 20, 50_000, together),
        (FileSystem::Xfs, 320 << 20, 4_000_000, together),
    ] {
        let Some(volume) = Volume::with_size(file_system, disk) else { return };
        let contents = "x".repeat(size);
        let names: Vec<String> = (0..100).map(path).collect();
        let entries: Vec<_> = names.iter().map(|name| entry(name, &contents)).collect();
        let error = write_files(volume.path(), &entries, two_threads()).unwrap_err();
        assert_eq!(error.errno(), Some(rustix::io::Errno::NOSPC.raw_os_error()), "{error}");
        assert_eq!(error.remedy(), Some(calve_core::error::Remedy::FreeSpaceForRest));
        for data in names.iter().flat_map(|name| fs::metadata(volume.path().join(name))) {
            assert_eq!(data.len(), size as u64);
        }
    }
}
