//! Changes that `git status` does not show: git was told not to look, or takes a directory for a submodule's.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use calve_core::internal::is_trash;

use crate::error::Result;
use crate::git::Git;
use crate::paths::{is_missing, path_of};
use crate::remedy::HidingMark;
use crate::unsaved_item::UnsavedItem;
use crate::worktree::status::in_place_of;
use crate::worktree::unsaved::ignored::is_repository;

/// Lists changed files that git was told not to look at (`git update-index --assume-unchanged`, `--skip-worktree`, a sparse checkout), and
/// the files in directories of submodules without a repository. `is_kept`: a file with these contents exists elsewhere.
pub(super) fn find(git: &Git, path: &Path, is_kept: &dyn Fn(&Path, &[u8]) -> bool) -> Result<Vec<UnsavedItem>> {
    let listed = git.run(&["ls-files", "-v", "-s", "-z"])?;
    // `h 100644 OID 0\tPATH`: a small letter means `--assume-unchanged`, `S` means `--skip-worktree`.
    let unseen = listed.split(|&byte| byte == 0).filter_map(|record| {
        let (&tag, rest) = record.split_first()?;
        let tab = rest.iter().position(|&byte| byte == b'\t')?;
        let mut words = rest[..tab].split(|&byte| byte == b' ').skip(1);
        let (is_submodule, oid) = (words.next()? == b"160000", words.next()?);
        let is_hidden = tag == b'S' || tag.is_ascii_lowercase();
        (is_hidden || is_submodule).then_some((is_hidden.then_some(tag), is_submodule, oid, &rest[tab + 1..]))
    });
    let is_kept = |name: &Path| {
        let file = path.join(name);
        fs_err::symlink_metadata(&file).is_ok_and(|found| found.is_file())
            && fs_err::read(&file).is_ok_and(|contents| is_kept(name, &contents))
    };
    let (mut changed, mut inside) = (Vec::new(), Vec::new());
    for (tag, is_submodule, oid, listed) in unseen {
        let name = path_of(listed);
        let file = path.join(&name);
        if is_missing(&file) {
            continue;
        }
        let found = fs_err::symlink_metadata(&file)?;
        if is_submodule && found.is_dir() {
            add_files(path, name, &mut inside)?;
            continue;
        }
        let Some(tag) = tag else { continue };
        let is_lost = if found.is_dir() {
            in_place_of(git, std::iter::once(listed))?.iter().any(|entry| !is_kept(&entry.path))
        } else if !found.is_file() && !found.is_symlink() {
            // git would wait for a FIFO, and fails for a socket.
            true
        } else {
            let now = match found.is_symlink() {
                true => git.fed(&["hash-object", "--stdin"], fs_err::read_link(&file)?.as_os_str().as_bytes())?,
                false => git.run(&["hash-object".as_ref(), "--".as_ref(), name.as_os_str()])?,
            };
            now.trim_ascii_end() != oid && !is_kept(&name)
        };
        if is_lost {
            let mark =
                if tag.eq_ignore_ascii_case(&b's') { HidingMark::SkipWorktree } else { HidingMark::AssumeUnchanged };
            changed.push(UnsavedItem::Hidden { path: name, mark });
        }
    }
    inside.retain(|name| !is_kept(name));
    if !inside.is_empty() {
        inside.sort();
        changed.push(UnsavedItem::InSubmodule(inside));
    }
    Ok(changed)
}

/// Adds the files in a directory of `root`, except those of repositories.
fn add_files(root: &Path, directory: PathBuf, found: &mut Vec<PathBuf>) -> Result<()> {
    let there = root.join(&directory);
    if is_repository(&there) {
        return Ok(());
    }
    for entry in fs_err::read_dir(there)? {
        let entry = entry?;
        let (name, path) = (entry.file_name(), directory.join(entry.file_name()));
        match entry.file_type()?.is_dir() {
            true if is_trash(name.as_encoded_bytes()) => {}
            true => add_files(root, path, found)?,
            false => found.push(path),
        }
    }
    Ok(())
}
