//! A template that comes from another machine.

use std::ffi::OsStr;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;

use super::create::{TreeOrigin, canonical, freeze};
use super::manifest::{Manifest, key};
use super::portable::PortableTemplate;
use super::record::Template;
use super::store::{self, ReservedVersion, TREE};
use super::{HeldTemplate, SweptTemplates, TemplateOptions, Templates, name};
use crate::choice::Strategy;
use crate::error::{Error, TemplateError};
use crate::operation::Operation;
use crate::strategy::make_snapshotable_directory;
use crate::sys;

/// A template that was received.
#[derive(Debug)]
#[non_exhaustive]
pub struct ReceivedTemplate {
    /// The template.
    pub template: Template,
    /// The fate of the version that it replaced.
    pub swept: SweptTemplates,
}

impl Templates {
    /// Returns what of a template travels.
    ///
    /// # Errors
    /// Fails with [`TemplateError::NotPortable`] if something in it would change who may do what on another machine.
    pub fn portable(&self, template: &HeldTemplate) -> Result<PortableTemplate, Error> {
        let (name, path) = (template.name.clone(), template.manifest());
        let text = store::read_file(&path)?.filter(|text| key(text) == template.key);
        let text = text.and_then(|text| String::from_utf8(text).ok());
        let what = "is not the manifest that was written";
        let text = text.ok_or_else(|| TemplateError::Damaged { name: name.clone(), path, what })?;
        portable(&name, &text)
    }

    /// Makes a template of what `fill` puts into the empty directory that it is given. It appears under its name when it is complete, equal
    /// to `sent` in everything that travels, and on the disk. It replaces `old`, if that is still the template of that name.
    ///
    /// # Errors
    /// Fails as `fill` does, with [`TemplateError::NotAsSent`] if the tree differs, and with [`TemplateError::Exists`] if there is no `old` but a
    /// template of that name. Leaves nothing behind.
    pub fn receive<E: From<Error>>(
        &self,
        name: &str,
        origin: &Path,
        (sent, old): (&PortableTemplate, Option<&Template>),
        options: &TemplateOptions,
        fill: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<ReceivedTemplate, E> {
        name::check(name).map_err(Error::from)?;
        self.store.prepare()?;
        let mut swept = self.store.sweep()?;
        let own = self.store.trees();
        let place = options.at.as_deref().map(|at| Ok::<_, Error>(canonical(at)?.join(store::place_name())));
        let place = place.transpose()?.unwrap_or(own);
        self.make_place(&place)?;
        let reserved = self.store.reserve(name, &place)?;
        let built = build(&reserved, name, origin, sent, options, fill)
            .and_then(|template| self.publish(&template, old).map(|()| template).map_err(E::from));
        match built {
            Ok(template) => {
                reserved.keep();
                let replaced = self.store.sweep()?;
                swept.trash.extend(replaced.trash);
                Ok(ReceivedTemplate { template, swept: SweptTemplates { failure: replaced.failure, ..swept } })
            }
            Err(error) => {
                reserved.discard();
                Err(error)
            }
        }
    }
}

fn build<E: From<Error>>(
    reserved: &ReservedVersion,
    name: &str,
    origin: &Path,
    sent: &PortableTemplate,
    options: &TemplateOptions,
    fill: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<Template, E> {
    let directory = &reserved.directory;
    rustix::fs::mkdir(directory, Mode::RWXU)
        .map_err(|errno| Error::io(Operation::CreateDirectory, directory, errno))?;
    let tree = directory.join(TREE);
    make_snapshotable_directory(&tree)?;
    fill(&tree)?;
    if options.cancel.is_cancelled() {
        return Err(Error::Interrupted.into());
    }
    let opened = super::open_tree(&tree)?;
    sys::sync_file_system(opened.as_fd()).map_err(|errno| Error::io(Operation::Sync, &tree, errno))?;
    let made = TreeOrigin { source: origin.to_path_buf(), exclude: Vec::new(), strategy: Strategy::Copy };
    let (template, manifest) = freeze(reserved, name, made, options)?;
    compare(name, &manifest, sent)?;
    Ok(template)
}

fn compare(name: &str, found: &Manifest, sent: &PortableTemplate) -> Result<(), Error> {
    let not_as_sent = |path: &[u8]| TemplateError::NotAsSent { name: name.into(), path: shown(path) };
    // The file system gave it an attribute.
    let found = PortableTemplate::of_manifest(&found.text).map_err(|refused| not_as_sent(&refused.path))?;
    if found.text == sent.text {
        return Ok(());
    }
    let lines = found.text.lines().zip(sent.text.lines());
    let first = lines.zip(0..).find(|((found, sent), _)| found != sent).map_or(0, |(_, number): (_, usize)| number);
    // Two lines of a head come before the entries.
    let path = sent.entries.get(first.saturating_sub(2)).map_or(&[][..], |entry| &entry.path);
    Err(not_as_sent(path).into())
}

fn portable(name: &str, text: &str) -> Result<PortableTemplate, Error> {
    let in_the_way = |refused: super::NotPortable| TemplateError::NotPortable {
        name: name.into(),
        path: shown(&refused.path),
        what: refused.what,
    };
    Ok(PortableTemplate::of_manifest(text).map_err(in_the_way)?)
}

fn shown(path: &[u8]) -> PathBuf {
    OsStr::from_bytes(if path.is_empty() { b"." } else { path }).into()
}
