//! Changes that `git status` does not show, because git was told not to look.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::error::Result;
use crate::git::Git;
use crate::paths::path_of;
use crate::remedy::HidingMark;
use crate::unsaved_item::UnsavedItem;

/// Returns the changed files that git was told not to look at (`git update-index --assume-unchanged`, `--skip-worktree`; a sparse
/// checkout). `is_kept` returns whether a file with these contents exists elsewhere.
pub(super) fn find(git: &Git, path: &Path, is_kept: &dyn Fn(&Path, &[u8]) -> bool) -> Result<Vec<UnsavedItem>> {
    let listed = git.run(&["ls-files", "-v", "-s", "-z"])?;
    // `h 100644 OID 0\tPATH`: a small letter for the one, `S` for the other.
    let hidden = listed.split(|&byte| byte == 0).filter_map(|record| {
        let (&tag, rest) = record.split_first()?;
        let tab = rest.iter().position(|&byte| byte == b'\t')?;
        let oid = rest[..tab].split(|&byte| byte == b' ').nth(2)?;
        (tag == b'S' || tag.is_ascii_lowercase()).then_some((tag, oid, path_of(&rest[tab + 1..])))
    });
    let mut changed = Vec::new();
    for (tag, oid, name) in hidden {
        let file = path.join(&name);
        let Ok(found) = fs_err::symlink_metadata(&file) else { continue };
        let now = match found.is_symlink() {
            true => git.fed(&["hash-object", "--stdin"], fs_err::read_link(&file)?.as_os_str().as_bytes())?,
            false if found.is_file() => git.run(&["hash-object".as_ref(), "--".as_ref(), name.as_os_str()])?,
            // A submodule.
            false => continue,
        };
        if now.trim_ascii_end() != oid && !(found.is_file() && is_kept(&name, &fs_err::read(&file)?)) {
            let mark =
                if tag.eq_ignore_ascii_case(&b's') { HidingMark::SkipWorktree } else { HidingMark::AssumeUnchanged };
            changed.push(UnsavedItem::Hidden { path: name, mark });
        }
    }
    Ok(changed)
}
