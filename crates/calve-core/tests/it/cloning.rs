//! The words that the tests are written in.

use std::path::{Path, PathBuf};
use std::process::Command;

use calve_core::bulk::{WriteEntry, WriteOptions, WriteReport, Writer};
use calve_core::options::Background;
use calve_core::report::ReapReport;
use calve_core::{
    CancelToken, Choice, CloneOptions, CloneReport, CloneVerification, Error, ExistingDestination, RemovalWait,
    RemoveOptions, Requirement, Strategy, clone_tree, reap,
};
use calve_testkit::{FileSystem, Volume};
use fs_err as fs;

/// How the system shares a file of a tree with its clone.
pub const SHARING: Strategy =
    if cfg!(any(target_os = "macos", like_macos)) { Strategy::Clonefile } else { Strategy::Reflink };

/// Options that are the default but for what `change` changes.
pub fn options(change: impl FnOnce(&mut CloneOptions)) -> CloneOptions {
    let mut options = CloneOptions::default();
    change(&mut options);
    options
}

/// Options that permit one strategy only.
pub fn only(strategy: Strategy) -> CloneOptions {
    options(|options| options.strategy = Choice::Only(strategy))
}

/// [`only`], and the copy is compared.
pub fn verified(strategy: Strategy) -> CloneOptions {
    let mut options = only(strategy);
    options.verify = CloneVerification::Contents;
    options
}

/// Options for a clone of one moment.
pub fn stable() -> CloneOptions {
    options(|options| options.require = vec![Requirement::Stable])
}

/// Options for a clone that replaces its destination.
pub fn replacing() -> CloneOptions {
    options(|options| options.existing = ExistingDestination::Replace)
}

/// Options for a removal that is over when the call returns.
pub fn waiting() -> RemoveOptions {
    let mut options = RemoveOptions::default();
    options.wait = RemovalWait::Yes;
    options
}

/// Deletes the trash in a directory.
#[track_caller]
pub fn reap_in(directory: &Path) -> ReapReport {
    let parent = fs::File::open(directory).unwrap();
    reap(parent.into_parts().0.into(), directory, Background::No, &CancelToken::default()).unwrap()
}

/// Writes all files in one batch.
pub fn write_files(root: &Path, entries: &[WriteEntry<'_>], options: WriteOptions) -> Result<WriteReport, Error> {
    let mut writer = Writer::open(root, options)?;
    writer.write(entries)?;
    writer.finish()
}

/// Used bytes, after the deletions in the background.
#[cfg(target_os = "linux")]
pub fn used(volume: &Volume) -> u64 {
    volume.settle();
    let status = rustix::fs::statvfs(volume.path()).unwrap();
    (status.f_blocks - status.f_bfree) * status.f_frsize
}

/// A clone by whatever is fastest, which has to work.
#[track_caller]
pub fn clone(src: impl AsRef<Path>, dst: impl AsRef<Path>) -> CloneReport {
    clone_with(&CloneOptions::default(), src, dst)
}

/// A clone that has to work.
#[track_caller]
pub fn clone_with(options: &CloneOptions, src: impl AsRef<Path>, dst: impl AsRef<Path>) -> CloneReport {
    let (src, dst) = (src.as_ref(), dst.as_ref());
    match clone_tree(src, dst, options) {
        Ok(report) => report,
        Err(error) => panic!("cannot clone `{}` to `{}`: {error}", src.display(), dst.display()),
    }
}

/// A clone that has to fail.
#[track_caller]
pub fn refused(options: &CloneOptions, src: impl AsRef<Path>, dst: impl AsRef<Path>) -> Error {
    let (src, dst) = (src.as_ref(), dst.as_ref());
    match clone_tree(src, dst, options) {
        Err(error) => error,
        Ok(report) => panic!("`{}` was cloned by {} to `{}`", src.display(), report.strategy, dst.display()),
    }
}

/// Every name in a directory, hidden ones too, in order.
pub fn names_in(directory: impl AsRef<Path>) -> Vec<String> {
    let entries = fs::read_dir(directory.as_ref()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Fails if a directory holds anything but `expected`, for example what a failed clone has left.
#[track_caller]
pub fn assert_holds(directory: impl AsRef<Path>, expected: &[&str]) {
    let mut expected: Vec<&str> = expected.to_vec();
    expected.sort_unstable();
    let mut found = names_in(directory.as_ref());
    // mkfs.ext4 makes it.
    found.retain(|name| name != "lost+found");
    assert_eq!(found, expected, "in `{}`", directory.as_ref().display());
}

/// A directory to build a source in: on btrfs a subvolume when it is to be snapshotted.
pub fn source_for(strategy: Strategy, volume: &Volume, name: &str) -> PathBuf {
    let src = volume.path().join(name);
    if strategy == Strategy::Snapshot && volume.file_system() == FileSystem::Btrfs {
        subvolume(&src);
    } else {
        fs::create_dir(&src).unwrap();
    }
    src
}

/// Makes a btrfs subvolume.
pub fn subvolume(path: impl AsRef<Path>) {
    run("btrfs", |command| command.args(["-q", "subvolume", "create"]).arg(path.as_ref()));
}

#[cfg(target_os = "linux")]
/// Returns whether something is the root of a btrfs subvolume.
pub fn is_subvolume(path: impl AsRef<Path>) -> bool {
    const SUBVOLUME_INODE: u64 = 256;
    rustix::fs::lstat(path.as_ref()).unwrap().st_ino == SUBVOLUME_INODE
}

/// Runs a program that has to succeed, and returns its output.
#[track_caller]
pub fn run(program: &str, arguments: impl FnOnce(&mut Command) -> &mut Command) -> String {
    let mut command = Command::new(program);
    arguments(&mut command);
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => panic!("cannot run {command:?}: {error}"),
    };
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The system's error number behind an error, as a name that reads well in an assertion.
#[track_caller]
pub fn assert_errno(error: &Error, errno: rustix::io::Errno) {
    assert_eq!(error.errno(), Some(errno.raw_os_error()), "{error}");
}

/// Returns whether a directory holds trash that waits for the reaper.
pub fn has_trash(directory: impl AsRef<Path>) -> bool {
    names_in(directory).iter().any(|name| name.starts_with(".calve-trash-"))
}
