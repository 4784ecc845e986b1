//! Creates and refreshes templates.

use std::num::NonZeroUsize;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::{CWD, Mode};
use rustix::io::Errno;

use super::manifest::{Manifest, key};
use super::read::KnownContents;
use super::record::{MANIFEST, TREE, Template};
use super::store::{self, ReservedVersion, SweptTemplates, frozen_state, open_tree, persist_change_time};
use super::templates::Templates;
use super::{name, read};
use crate::clone::stage::stage_in;
use crate::error::{Error, IoContext, TemplateError};
use crate::options::{CloneOptions, Durability};
use crate::progress::{CancelToken, Progress};
use crate::remove::place::fill_place;
use crate::report::CloneReport;
use crate::strategy::make_snapshotable_directory;
use crate::sys;
use crate::tree::location::{canonical, identity, is_inside};
use crate::tree::own::OwnDirectory;
use crate::tree::stable::Moment;
use crate::vocabulary::hidden_name::templates_directory;
use crate::vocabulary::operation::Operation;
use crate::vocabulary::strategy::Strategy;

/// The options of making a template.
#[derive(Debug, Clone, Default)]
pub struct TemplateOptions {
    /// Patterns of entries to leave out, as for a clone. If empty, a refresh keeps the template's own.
    pub exclude: Vec<String>,
    /// The directory to keep it in; by default CALVE_HOME if on the source's file system, else a hidden one beside it.
    pub at: Option<PathBuf>,
    /// Worker threads; by default one for each processor, at most eight.
    pub threads: Option<NonZeroUsize>,
    /// Counters that another thread may read meanwhile.
    pub progress: Arc<Progress>,
    /// Ends it early; nothing is left behind.
    pub cancel: CancelToken,
}

/// A template that was made.
#[derive(Debug)]
pub struct CreatedTemplate {
    /// The template.
    pub template: Template,
    /// How the frozen clone was made.
    pub clone: CloneReport,
    /// The fate of the version that it replaced.
    pub swept: SweptTemplates,
}

impl Templates {
    /// Makes a template of `directory`. It appears under its name when it is complete and on the disk.
    ///
    /// # Errors
    /// Fails with [`TemplateError::Exists`], and as [`crate::clone_tree`] does. Leaves nothing behind.
    pub fn create(&self, name: &str, directory: &Path, options: &TemplateOptions) -> Result<CreatedTemplate, Error> {
        name::check(name)?;
        if self.store.records()?.is_some() && store::stat_of(&self.store.record_path(name))?.is_some() {
            return Err(TemplateError::Exists(name.into()).into());
        }
        self.build(name, directory, options, None)
    }

    /// Makes the template again, from its own directory or another one, and swaps it in one step. Fails as
    /// [`Self::create`] does, and leaves the old template as it was.
    pub fn refresh(
        &self,
        name: &str,
        directory: Option<&Path>,
        options: &TemplateOptions,
    ) -> Result<CreatedTemplate, Error> {
        let old = self.find(name)?;
        let mut options = options.clone();
        if options.exclude.is_empty() {
            options.exclude.clone_from(&old.exclude);
        }
        if options.at.is_none() {
            self.check_mounted(&old)?;
            options.at.clone_from(&old.at);
        }
        let directory = directory.map_or_else(|| old.source.clone(), Path::to_path_buf);
        self.build(name, &directory, &options, Some(&old))
    }

    fn build(
        &self,
        name: &str,
        directory: &Path,
        options: &TemplateOptions,
        old: Option<&Template>,
    ) -> Result<CreatedTemplate, Error> {
        let source = source(directory)?;
        let (template, clone, swept) = self.make_version(
            name,
            old,
            || self.directory_for(&source, options),
            |reserved| fill(reserved, &source, options),
        )?;
        Ok(CreatedTemplate { template, clone, swept })
    }

    /// Makes a version, and publishes it if `old` is still the template of that name. Leaves nothing behind on failure.
    pub(super) fn make_version<T, E: From<Error>>(
        &self,
        name: &str,
        old: Option<&Template>,
        directory: impl FnOnce() -> Result<PathBuf, Error>,
        make: impl FnOnce(&ReservedVersion) -> Result<(Template, T), E>,
    ) -> Result<(Template, T, SweptTemplates), E> {
        self.store.prepare()?;
        // Leftovers of killed processes may hold the space that is needed now.
        let mut swept = self.store.sweep()?;
        let directory = directory()?;
        let reserve = |place: BorrowedFd<'_>| self.store.reserve(name, &directory, place);
        let reserved = if directory == self.store.trees() {
            reserve(open_tree(&directory)?.as_fd())?
        } else {
            fill_place(&directory, || make_place(&directory), reserve)?
        };
        let made = make(&reserved).and_then(|made| {
            self.publish(&made.0, old)?;
            Ok(made)
        });
        match made {
            Ok((template, more)) => {
                drop(reserved);
                let replaced = self.store.sweep()?;
                swept.trash.extend(replaced.trash);
                Ok((template, more, SweptTemplates { failure: replaced.failure, ..swept }))
            }
            Err(error) => {
                reserved.discard();
                Err(error)
            }
        }
    }

    fn publish(&self, template: &Template, old: Option<&Template>) -> Result<(), Error> {
        let records = self.store.lock()?;
        let path = self.store.record_path(&template.name);
        match old {
            None if store::stat_of(&path)?.is_some() => Err(TemplateError::Exists(template.name.clone()))?,
            Some(old) if !self.find(&old.name).is_ok_and(|now| now.version == old.version) => {
                Err(TemplateError::Superseded(old.name.clone()))?
            }
            _ => records.write(template),
        }
    }

    /// Returns the directory for versions, which need not exist.
    fn directory_for(&self, source: &Path, options: &TemplateOptions) -> Result<PathBuf, Error> {
        let opened = open_tree(source)?;
        let own = self.store.trees();
        let directory = match &options.at {
            Some(at) => canonical(at)?.join(templates_directory()),
            None if is_same_file_system(source, &own)? => own,
            None => source.parent().unwrap_or(source).join(templates_directory()),
        };
        let above = directory.parent().unwrap_or(&directory);
        let inside = is_inside(open_tree(above)?.as_fd(), identity(&store::stat(opened.as_fd(), source)?));
        if inside.io(Operation::Find, above)? {
            return Err(TemplateError::DirectoryInsideSource { directory, source_path: source.to_path_buf() }.into());
        }
        Ok(directory)
    }
}

fn make_place(directory: &Path) -> Result<Option<OwnDirectory>, Error> {
    // A subvolume, so that snapshots of its surroundings leave it out.
    match make_snapshotable_directory(directory) {
        // It exists already, or is gone again.
        Err(error) if !error.is_errno(Errno::EXIST) && !error.is_errno(Errno::NOENT) => Err(error),
        _ => store::make_own(directory),
    }
}

fn source(directory: &Path) -> Result<PathBuf, Error> {
    let source = canonical(directory)?;
    if source.is_dir() { Ok(source) } else { Err(TemplateError::NotADirectory(directory.into()).into()) }
}

fn is_same_file_system(a: &Path, b: &Path) -> Result<bool, Error> {
    let (one, other) = (open_tree(a)?, open_tree(b)?);
    let same_device = store::stat(one.as_fd(), a)?.st_dev == store::stat(other.as_fd(), b)?.st_dev;
    Ok(same_device || sys::same_btrfs(one.as_fd(), other.as_fd()))
}

fn fill(
    reserved: &ReservedVersion,
    source: &Path,
    options: &TemplateOptions,
) -> Result<(Template, CloneReport), Error> {
    let tree = reserved.directory.join(TREE);
    let clone_options = CloneOptions {
        exclude: options.exclude.clone(),
        durability: Durability::Synced,
        threads: options.threads,
        progress: Arc::clone(&options.progress),
        cancel: options.cancel.clone(),
        ..CloneOptions::default()
    };
    // Staged as its own tree: on btrfs a subvolume, which can be snapshotted.
    let (clone, _) = stage_in(None, &tree, &clone_options, |staged| staged.clone_root(source, &clone_options))?;
    persist_change_time(open_tree(&tree)?.as_fd(), &tree)?;
    let (template, _) = freeze(reserved, (source, &options.exclude, clone.strategy), None, options)?;
    Ok((template, clone))
}

/// Reads the tree of a version, except for known contents, and writes its manifest.
pub(super) fn freeze(
    reserved: &ReservedVersion,
    (source, exclude, strategy): (&Path, &[String], Strategy),
    known: Option<KnownContents<'_>>,
    options: &TemplateOptions,
) -> Result<(Template, Manifest), Error> {
    let directory = &reserved.directory;
    let tree = directory.join(TREE);
    let opened = open_tree(&tree)?;
    let [moment, _] = Moment::tick(&store::stat(opened.as_fd(), &tree)?);
    let found = read::read(opened.as_fd(), known, options.threads, &options.cancel)?;
    if let Some((path, errno)) = found.unreadable.first() {
        return Err(Error::io(Operation::Read, tree.join(path), *errno));
    }
    let latest = found.latest.map_or(moment, |latest| latest.max(moment));
    let manifest = Manifest::new(found.entries);
    let manifest_path = directory.join(MANIFEST);
    let version =
        store::open_own(directory)?.ok_or_else(|| Error::io(Operation::OpenDirectory, directory, Errno::NOENT))?;
    version.write(MANIFEST, manifest.text.as_bytes())?;
    let read_only = rustix::fs::chmodat(CWD, &manifest_path, Mode::RUSR, rustix::fs::AtFlags::empty());
    read_only.io(Operation::SetMode, &manifest_path)?;
    version.sync()?;
    store::open_own(directory.parent().unwrap_or(directory))?.map_or(Ok(()), |versions| versions.sync())?;
    let template = Template {
        name: reserved.name.clone(),
        key: key(manifest.text.as_bytes()),
        source: source.to_path_buf(),
        exclude: exclude.to_vec(),
        at: options.at.as_deref().map(canonical).transpose()?,
        frozen: frozen_state(&tree, &manifest_path, latest)?,
        tree,
        manifest: manifest_path,
        entries: manifest.entries,
        bytes: manifest.bytes,
        created: SystemTime::now(),
        strategy,
        version: reserved.version.clone(),
    };
    Ok((template, manifest))
}
