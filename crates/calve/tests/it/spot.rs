//! Where a test happens: a directory of its own, and assertions about it.

use std::ffi::OsStr;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use calve_testkit::{FileSystem, Tree, UnprivilegedUser, Volume};

/// A directory with room for a source, a destination, and whatever a run might leave beside them.
pub(crate) struct Spot {
    dir: PathBuf,
    _home: Home,
}

enum Home {
    Folder { _folder: tempfile::TempDir },
    Volume { _volume: Volume },
}

impl Spot {
    /// On whatever file system the machine has, for tests that do not care.
    pub(crate) fn anywhere() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let dir = fs_err::canonicalize(folder.path()).unwrap();
        Self { dir, _home: Home::Folder { _folder: folder } }
    }

    /// On a fresh file system; `None` is a skip.
    #[track_caller]
    pub(crate) fn on(file_system: FileSystem) -> Option<Self> {
        Volume::new(file_system).map(Self::at)
    }

    /// On a volume that was made for the test.
    pub(crate) fn at(volume: Volume) -> Self {
        // mkfs.ext4 puts `lost+found` into the root.
        let dir = volume.path().join("spot");
        fs_err::create_dir(&dir).unwrap();
        rustix::fs::chmod(&dir, 0o777.into()).unwrap();
        Self { dir, _home: Home::Volume { _volume: volume } }
    }

    /// A tree at `name` in it.
    pub(crate) fn tree(&self, name: &str) -> Tree {
        Tree::new(self.dir.join(name))
    }

    /// A subvolume at `name` in it, on btrfs.
    #[track_caller]
    pub(crate) fn subvolume(&self, name: &str) -> Tree {
        let output = Command::new("btrfs").args(["subvolume", "create"]).arg(self.dir.join(name)).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        self.tree(name)
    }

    /// Gives a tree in it, or with `""` all of it, to the user who owns nothing else.
    #[track_caller]
    pub(crate) fn give_away(&self, name: &str) {
        let owner = format!("{}:{}", UnprivilegedUser::UID, UnprivilegedUser::GID);
        let output = Command::new("chown").args(["-hR", &owner]).arg(self.dir.join(name)).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    /// Expects exactly these names in it, and so nothing left behind.
    #[track_caller]
    pub(crate) fn holds(&self, expected: &[&str]) {
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(names(&self.dir), expected);
    }
}

impl Deref for Spot {
    type Target = Path;
    fn deref(&self) -> &Path {
        &self.dir
    }
}

impl AsRef<Path> for Spot {
    fn as_ref(&self) -> &Path {
        &self.dir
    }
}

impl AsRef<OsStr> for Spot {
    fn as_ref(&self) -> &OsStr {
        self.dir.as_os_str()
    }
}

/// The names in a directory, sorted.
pub(crate) fn names(dir: impl AsRef<Path>) -> Vec<String> {
    let entries = fs_err::read_dir(dir.as_ref()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Every path below a directory, relative to it, sorted.
pub(crate) fn paths_below(dir: impl AsRef<Path>) -> Vec<String> {
    fn visit(dir: &Path, prefix: &str, all: &mut Vec<String>) {
        for name in names(dir) {
            let path = dir.join(&name);
            let shown = format!("{prefix}{name}");
            if path.is_dir() && !path.is_symlink() {
                visit(&path, &format!("{shown}/"), all);
            }
            all.push(shown);
        }
    }
    let mut all = Vec::new();
    visit(dir.as_ref(), "", &mut all);
    all.sort();
    all
}

/// The hidden names of calve's in a directory.
pub(crate) fn leftovers(dir: impl AsRef<Path>) -> Vec<String> {
    let mut hidden = names(dir);
    hidden.retain(|name| name.starts_with(".calve"));
    hidden
}

#[track_caller]
pub(crate) fn nothing_left(dir: impl AsRef<Path>) {
    let left = leftovers(dir.as_ref());
    assert!(left.is_empty(), "left behind in `{}`: {left:?}", dir.as_ref().display());
}

/// Waits for something that another process does in its own time.
#[track_caller]
pub(crate) fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let give_up = Instant::now() + Duration::from_secs(60);
    while !happened() {
        assert!(Instant::now() < give_up, "this did not happen within a minute: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the reaper has done its work. It has the lowest priority, so on a busy machine that takes long: as long as there is less
/// and less, it is waited for.
#[track_caller]
pub(crate) fn eventually_nothing_left(dir: impl AsRef<Path>) {
    let dir = dir.as_ref();
    let mut least = usize::MAX;
    while !leftovers(dir).is_empty() {
        let before = least;
        eventually("there is less in the trash", || {
            let now = leftovers(dir).iter().map(|name| entries_below(&dir.join(name)) + 1).sum();
            least = least.min(now);
            least < before
        });
    }
}

/// Returns how many entries there are below a directory, of which some may be gone already.
fn entries_below(dir: &Path) -> usize {
    let entries = std::iter::once(fs_err::read_dir(dir)).flatten().flatten().flatten();
    let is_dir = |entry: &fs_err::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.map(|entry| if is_dir(&entry) { 1 + entries_below(&entry.path()) } else { 1 }).sum()
}
