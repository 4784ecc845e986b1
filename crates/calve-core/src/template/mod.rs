//! Templates: directories kept unmodified, to clone from. `store` says where they are, docs/templates.md what a manifest is.

mod arrivals;
mod create;
mod delta;
mod manifest;
mod name;
mod portable;
mod read;
mod receive;
mod record;
mod store;
mod verify;

use std::ops::Deref;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use self::record::Stamp;
use self::store::Store;
use crate::error::{Error, TemplateError};
use crate::held_lock::HeldLock;
use crate::operation::Operation;
use crate::options::{CloneOptions, FrozenSince};
use crate::tree::stable::Moment;

pub use create::{CreatedTemplate, TemplateOptions};
pub use delta::PortableDelta;
pub use name::{LONGEST_TEMPLATE_NAME, is_template_name, template_name};
pub use portable::{PortabilityObstacle, PortableEntry, PortableKind, PortableTemplate, split_name};
pub use receive::{CheckedFiles, ReceivedTemplate, sync_during};
pub use record::Template;
pub use verify::{Difference, DifferenceKind, Verification};

/// A template's name, and what is known about it.
pub type ListedTemplate = (String, Result<Template, Error>);

/// The result of a sweep.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct SweptTemplates {
    /// Directories in which there is trash for [`crate::reap`].
    pub trash: Vec<PathBuf>,
    /// Why something that nobody uses any more could not be removed.
    pub failure: Option<Error>,
}

/// The templates of one user.
#[derive(Debug, Clone)]
pub struct Templates {
    store: Store,
}

/// A template whose files stay while this value lives, even if it is refreshed or removed meanwhile.
#[derive(Debug)]
pub struct HeldTemplate {
    template: Template,
    _lock: HeldLock,
}

impl Deref for HeldTemplate {
    type Target = Template;

    fn deref(&self) -> &Template {
        &self.template
    }
}

impl HeldTemplate {
    /// Restricts clones of [`Template::tree`] to what a template permits: they fail if they come to an entry that was changed after the
    /// template was made, and `hardlink` is refused. What was changed is found by per-file strategies only; a snapshot looks at nothing.
    pub fn restrict(&self, options: &mut CloneOptions) {
        let changed = self.template.frozen.moment.parts();
        options.frozen = Some(FrozenSince { name: self.name.clone(), changed });
    }
}

/// Calls `clone` with the directory that `src` stands for, and with options that fit it: the tree of a template if `src` is `@NAME`, which
/// is kept as it is until `clone` returns; else `src` itself.
///
/// # Errors
/// Fails as `clone` does, and if there is no such template, or if it was changed.
pub fn with_source<T>(
    src: &Path,
    options: &CloneOptions,
    home: impl FnOnce() -> Result<PathBuf, &'static str>,
    clone: impl FnOnce(&Path, &CloneOptions) -> Result<T, Error>,
) -> Result<T, Error> {
    if let Some(name) = template_name(src) {
        let home = home().map_err(TemplateError::NoHome)?;
        let held = Templates::open(&home).hold(&name)?;
        let mut options = options.clone();
        held.restrict(&mut options);
        return clone(&held.tree, &options);
    }
    clone(src, options)
}

impl Templates {
    /// Names the directory that they are kept in, CALVE_HOME. Makes nothing.
    pub fn open(home: &Path) -> Self {
        Self { store: Store { path: home.join("templates") } }
    }

    /// Returns the template of that name, as it is written down.
    ///
    /// # Errors
    /// Fails with [`TemplateError::Unknown`] if there is none.
    pub fn find(&self, name: &str) -> Result<Template, Error> {
        name::check(name)?;
        let found = if self.store.exists()? { self.store.read(name)? } else { None };
        Ok(found.ok_or_else(|| TemplateError::Unknown(name.into()))?)
    }

    /// Returns the template of that name, after a cheap check: its tree is there, the tree's root and the manifest have not been changed.
    ///
    /// # Errors
    /// Fails with [`TemplateError::Unknown`], [`TemplateError::Gone`] or [`TemplateError::Changed`].
    pub fn hold(&self, name: &str) -> Result<HeldTemplate, Error> {
        let mut template = self.find(name)?;
        loop {
            let held = self.store.hold(&template.version)?;
            let now = self.find(name)?;
            if now.version != template.version {
                template = now;
                continue;
            }
            let gone = || TemplateError::Gone { name: name.into(), path: template.tree.clone() };
            let held = HeldTemplate { _lock: held.ok_or_else(gone)?, template: now };
            look(&held)?;
            return Ok(held);
        }
    }

    /// Finds at little cost whether a template can be cloned: its files are there, its root and its manifest are as they were.
    ///
    /// # Errors
    /// Fails with [`TemplateError::Gone`], [`TemplateError::Changed`] or [`TemplateError::NotOwn`].
    pub fn check(&self, template: &Template) -> Result<(), Error> {
        look(template)
    }

    /// Returns every template with its name, sorted. One whose record cannot be read is an error.
    pub fn list(&self) -> Result<Vec<ListedTemplate>, Error> {
        if !self.store.exists()? {
            return Ok(Vec::new());
        }
        let names = self.store.names()?;
        Ok(names.into_iter().map(|name| (name.clone(), self.find(&name))).collect())
    }

    /// Removes a template. Its name is free on return.
    ///
    /// # Errors
    /// Fails with [`TemplateError::Unknown`] if there is none.
    pub fn remove(&self, name: &str) -> Result<SweptTemplates, Error> {
        name::check(name)?;
        if !self.store.exists()? {
            return Err(TemplateError::Unknown(name.into()).into());
        }
        let lock = self.store.lock()?;
        self.store.forget(name)?;
        drop(lock);
        self.sweep()
    }

    /// Removes what killed processes left, and versions that were replaced and that nobody uses any more.
    pub fn sweep(&self) -> Result<SweptTemplates, Error> {
        if self.store.exists()? { self.store.sweep() } else { Ok(SweptTemplates::default()) }
    }
}

/// Finds at little cost that the files of a template are gone, or that its root or its manifest was changed.
fn look(template: &Template) -> Result<(), Error> {
    let gone = || TemplateError::Gone { name: template.name.clone(), path: template.tree.clone() };
    let changed = |path: &Path| TemplateError::Changed { name: template.name.clone(), path: path.to_path_buf() };
    store::open_own(&template.versions_directory())?.ok_or_else(gone)?;
    let directory = template.tree.parent().unwrap_or(&template.tree);
    store::open_own(directory)?.ok_or_else(gone)?;
    let root = store::stat_of(&template.tree)?.ok_or_else(gone)?;
    if Stamp::of(&root) != template.frozen.root {
        return Err(changed(&template.tree).into());
    }
    let manifest = template.manifest();
    match store::stat_of(&manifest)? {
        Some(stat) if Stamp::of(&stat) == template.frozen.manifest => Ok(()),
        _ => Err(changed(&manifest).into()),
    }
}

/// Returns the facts that tell that nothing in a version has changed since `moment`.
fn frozen(tree: &Path, manifest: &Path, moment: Moment) -> Result<record::FrozenState, Error> {
    let stamp = |path: &Path| -> Result<Stamp, Error> {
        let found = store::stat_of(path)?.ok_or_else(|| Error::Missing(path.to_path_buf()))?;
        Ok(Stamp::of(&found))
    };
    Ok(record::FrozenState { moment, root: stamp(tree)?, manifest: stamp(manifest)? })
}

/// Opens the root of a template's tree.
fn open_tree(tree: &Path) -> Result<OwnedFd, Error> {
    let opened =
        crate::sys::open_at(rustix::fs::CWD, tree, crate::tree::location::DIRECTORY, rustix::fs::Mode::empty());
    opened.map_err(|errno| Error::io(Operation::OpenDirectory, tree, errno))
}

/// Makes the change time of a subvolume's root durable. A rename sets it in memory only (`btrfs_rename2`): when the inode is read again, the
/// earlier time returns, and looks like a change.
fn persist_change_time(root: BorrowedFd<'_>, tree: &Path) -> Result<(), Error> {
    let stat = store::stat(root, tree)?;
    let failed = |operation| move |errno| Error::io(operation, tree, errno);
    if crate::sys::is_subvolume(root, &stat).map_err(failed(Operation::Stat))? {
        let mode = rustix::fs::Mode::from_raw_mode(stat.st_mode);
        rustix::fs::fchmod(root, mode).map_err(failed(Operation::SetMode))?;
        crate::sys::sync_file(root).map_err(failed(Operation::Sync))?;
    }
    Ok(())
}
