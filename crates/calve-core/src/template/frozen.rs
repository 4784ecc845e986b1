//! The facts that show whether a version was changed since it was made.

use std::os::fd::BorrowedFd;
use std::path::Path;

use super::record::{FrozenState, Stamp, Template};
use super::store;
use super::templates::Templates;
use crate::error::{Error, IoContext, TemplateError};
use crate::tree::stable::Moment;
use crate::vocabulary::operation::Operation;

impl Templates {
    /// Finds at little cost whether a template can be cloned: its files are there, its root and its manifest are as they were.
    ///
    /// # Errors
    /// Fails with [`TemplateError::Gone`], [`TemplateError::NotMounted`], [`TemplateError::Changed`] or [`TemplateError::NotOwn`].
    pub fn check(&self, template: &Template) -> Result<(), Error> {
        let gone = || self.store.missing(template);
        let changed = |path: &Path| TemplateError::Changed { name: template.name.clone(), path: path.to_path_buf() };
        store::open_own(&template.versions_directory())?.ok_or_else(gone)?;
        let directory = template.tree.parent().unwrap_or(&template.tree);
        store::open_own(directory)?.ok_or_else(gone)?;
        let root = store::stat_of(&template.tree)?.ok_or_else(gone)?;
        if Stamp::new(&root) != template.frozen.root {
            return Err(changed(&template.tree).into());
        }
        match store::stat_of(&template.manifest)? {
            Some(stat) if Stamp::new(&stat) == template.frozen.manifest => Ok(()),
            _ => Err(changed(&template.manifest).into()),
        }
    }
}

/// Returns the facts that tell that nothing in a version has changed since `moment`.
pub(super) fn frozen_state(tree: &Path, manifest: &Path, moment: Moment) -> Result<FrozenState, Error> {
    let stamp = |path: &Path| -> Result<Stamp, Error> {
        let found = store::stat_of(path)?.ok_or_else(|| Error::Missing(path.to_path_buf()))?;
        Ok(Stamp::new(&found))
    };
    Ok(FrozenState { moment, root: stamp(tree)?, manifest: stamp(manifest)? })
}

/// Makes the change time of a subvolume's root durable: a rename sets it in memory only (`btrfs_rename2`). Read again, the inode has the earlier time,
/// which looks like a change.
pub(super) fn persist_change_time(root: BorrowedFd<'_>, tree: &Path) -> Result<(), Error> {
    let stat = store::stat(root, tree)?;
    if crate::sys::is_subvolume(root, &stat).io(Operation::Stat, tree)? {
        let mode = rustix::fs::Mode::from_raw_mode(stat.st_mode);
        rustix::fs::fchmod(root, mode).io(Operation::SetMode, tree)?;
        crate::sys::sync_file(root).io(Operation::Sync, tree)?;
    }
    Ok(())
}
