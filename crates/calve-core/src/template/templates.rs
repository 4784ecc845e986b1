use std::num::NonZeroUsize;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use super::name::{self, template_name};
use super::record::{Stamp, Template};
use super::store::{Store, SweptTemplates, open_own, stat_of};
use crate::error::{Error, TemplateError};
use crate::options::CloneOptions;
use crate::options::internal::FrozenSince;
use crate::progress::CancelToken;
use crate::tree::exclude::Exclusions;
use crate::tree::held_lock::HeldLock;
use crate::tree::source::Source;
use crate::tree::stable::check_all_frozen;

/// A template: its name and its record.
pub type ListedTemplate = (String, Result<Template, Error>);

/// The templates of one user.
#[derive(Debug, Clone)]
pub struct Templates {
    pub(super) store: Store,
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
    /// Makes clones of [`Template::tree`] refuse `hardlink`, and fail at an entry that changed after the template was
    /// made. Only per-file strategies find such entries: a snapshot checks none.
    pub fn restrict(&self, options: &mut CloneOptions) {
        let changed = self.template.frozen.moment.parts();
        options.internal.frozen = Some(FrozenSince { name: self.name.clone(), changed });
    }

    /// Fails if an entry changed after the template was made. Reads no contents.
    pub fn check_entries(&self, threads: Option<NonZeroUsize>, cancel: &CancelToken) -> Result<(), Error> {
        let mut check = CloneOptions::default();
        (check.threads, check.cancel) = (threads, cancel.clone());
        self.restrict(&mut check);
        check_all_frozen(&Source::open(&self.tree)?, &Exclusions::default(), &check)
    }
}

/// Calls `clone` with the tree and the restrictions of the template `@NAME`, held meanwhile, or with `src` itself.
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
    /// Returns the templates in `home`, CALVE_HOME. Creates nothing.
    pub fn open(home: &Path) -> Self {
        Self { store: Store { path: home.join("templates") } }
    }

    /// Reads the record of a template. Fails with [`TemplateError::Unknown`] if it is missing.
    pub fn find(&self, name: &str) -> Result<Template, Error> {
        name::check(name)?;
        Ok(self.store.read(name)?.ok_or_else(|| TemplateError::Unknown(name.into()))?)
    }

    /// Returns a template after the cheap [`Self::check`], and keeps its files. Fails as [`Self::find`] and that do.
    pub fn hold(&self, name: &str) -> Result<HeldTemplate, Error> {
        let mut template = self.find(name)?;
        loop {
            let held = self.store.hold(&template.version)?;
            let now = self.find(name)?;
            if now.version != template.version {
                template = now;
                continue;
            }
            let held = HeldTemplate { _lock: held.ok_or_else(|| self.store.missing(&template))?, template: now };
            self.check(&held)?;
            return Ok(held);
        }
    }

    /// Returns every template, sorted by name. An unreadable record is an error.
    pub fn list(&self) -> Result<Vec<ListedTemplate>, Error> {
        Ok(self.store.names()?.into_iter().map(|name| (name.clone(), self.find(&name))).collect())
    }

    /// Checks cheaply that a template can be cloned: its files exist, and its root and manifest are unchanged. Fails
    /// with [`TemplateError`]: `Gone`, `NotMounted`, `Changed` or `NotOwn`.
    pub fn check(&self, template: &Template) -> Result<(), Error> {
        let gone = || self.store.missing(template);
        let changed = |path: &Path| TemplateError::Changed { name: template.name.clone(), path: path.to_path_buf() };
        open_own(&template.versions_directory())?.ok_or_else(gone)?;
        let directory = template.tree.parent().unwrap_or(&template.tree);
        open_own(directory)?.ok_or_else(gone)?;
        let root = stat_of(&template.tree)?.ok_or_else(gone)?;
        if Stamp::new(&root) != template.frozen.root {
            return Err(changed(&template.tree).into());
        }
        match stat_of(&template.manifest)? {
            Some(stat) if Stamp::new(&stat) == template.frozen.manifest => Ok(()),
            _ => Err(changed(&template.manifest).into()),
        }
    }

    /// Removes a template. Its name is free on return.
    ///
    /// # Errors
    /// Fails with [`TemplateError::Unknown`], and with [`TemplateError::NotMounted`] if its files cannot be reached.
    pub fn remove(&self, name: &str) -> Result<SweptTemplates, Error> {
        self.check_removable(name)?;
        let records = self.store.lock()?;
        self.check_removable(name)?;
        records.remove(name)?;
        drop(records);
        self.sweep()
    }

    /// Fails where [`Self::remove`] would fail, if that shows without removing anything.
    pub fn check_removable(&self, name: &str) -> Result<(), Error> {
        match self.find(name) {
            Ok(template) => self.check_mounted(&template),
            // An unreadable record may be removed.
            Err(Error::Template(TemplateError::Damaged { .. }) | Error::Io { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Fails if the template's files are missing because their file system is not mounted.
    pub(super) fn check_mounted(&self, template: &Template) -> Result<(), Error> {
        let is_missing = stat_of(&template.tree)?.is_none();
        if is_missing && self.store.away(&template.version)?.is_some() {
            Err(self.store.missing(template))
        } else {
            Ok(())
        }
    }

    /// Removes leftovers of killed processes, and replaced versions that are not in use.
    pub fn sweep(&self) -> Result<SweptTemplates, Error> {
        if self.store.records()?.is_some() { self.store.sweep() } else { Ok(SweptTemplates::default()) }
    }
}
