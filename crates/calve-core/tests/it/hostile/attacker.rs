//! An attacker who swaps entries of a tree, as fast as possible, for links that lead out of it.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use calve_testkit::{SplitMix64, Tree};
use fs_err as fs;
use rustix::fs::{CWD, Mode, OFlags, RenameFlags, renameat_with};

use crate::rival::while_another;

/// What must never appear in a clone.
pub const SECRET: &str = "the secret that only root can read";

/// A place outside of the tree that the tree's owner may not read: a file, and a directory with files.
pub fn outside(at: &Path) -> PathBuf {
    let outside = at.join("outside");
    Tree::new(&outside)
        .file("secret", SECRET)
        .file("directory/file", SECRET)
        .file("directory/sub/file", SECRET)
        .file("directory/sub/deeper/file", SECRET)
        .mode("secret", 0o600)
        .mode("directory", 0o700);
    outside
}

/// A small tree, and beside each thing in it something to exchange it for: `arsenal/<number>` for the path of that number.
pub struct Attack {
    /// Open, so that the attack goes on when the tree is moved.
    tree: OwnedFd,
    pairs: Vec<(PathBuf, PathBuf)>,
}

impl Attack {
    /// Builds the tree at `tree`, and the arsenal beside it.
    pub fn prepare(tree: &Path, arsenal: &Path, outside: &Path) -> Self {
        Tree::new(tree)
            .file("file", "harmless")
            .file("other file", "harmless too")
            .symlink("link", "file")
            .file("directory/file", "harmless")
            .file("directory/sub/file", "harmless")
            .file("directory/sub/deeper/file", "harmless")
            .fifo("pipe");
        let weapons = Tree::new(arsenal)
            .symlink("0", outside.join("secret"))
            .symlink("1", outside.join("directory"))
            .symlink("2", outside.join("directory/sub"))
            .fifo("3")
            .dir("4/file")
            .symlink("5", outside.join("directory/file"))
            .symlink("6", outside.join("directory/sub/deeper"))
            .symlink("7", outside);
        let targets = [
            "file",
            "directory",
            "directory/sub",
            "other file",
            "link",
            "directory/file",
            "directory/sub/deeper",
            "pipe",
        ];
        let pairs = targets.iter().enumerate();
        Self {
            tree: rustix::fs::open(tree, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap(),
            pairs: pairs.map(|(number, path)| (path.into(), weapons.path().join(number.to_string()))).collect(),
        }
    }

    /// Attacks while `work` runs, and says how many exchanges there were.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> (T, u64) {
        let mut exchanges = 0;
        let mut random = SplitMix64::new(1);
        let result = while_another(
            || {
                let (path, weapon) = random.pick(&self.pairs);
                // An entry below a path that is exchanged at the moment is missing, or, by way of the link, outside.
                if !self.leads_outside(path)
                    && renameat_with(&self.tree, path, CWD, weapon, RenameFlags::EXCHANGE).is_ok()
                {
                    exchanges += 1;
                }
            },
            work,
        );
        (result, exchanges)
    }

    /// The attacker's own access to the outside would spoil the evidence.
    fn leads_outside(&self, path: &Path) -> bool {
        let above = path.parent().unwrap_or(path);
        let real = fs::canonicalize(Path::new("/proc/self/fd").join(self.tree.as_raw_fd().to_string()).join(above));
        // An error: the tree is being moved at this moment.
        real.map_or(true, |real| real.components().any(|name| name.as_os_str() == "outside"))
    }
}
