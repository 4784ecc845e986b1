//! Templates: data directories that servers are cloned from.

pub(crate) mod key;
pub(crate) mod manifest;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::engine::container::Image;
use crate::engine::{Engine, ServerProgram};
use crate::error::{AtPath as _, Error, Remedy, Result};
use crate::files::home::Home;
use crate::files::private;
use crate::files::random;
use crate::registry::name;
use crate::registry::slots;
use crate::sys;

pub(crate) const DOCUMENT: &str = "template.json";
/// The prefix of replaced or removed templates, which stay until no server needs them.
pub(crate) const OLD: &str = ".old-";

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DatabaseTemplate {
    pub name: String,
    #[serde(flatten)]
    pub program: ServerProgram,
    /// The hash of its ingredients: while they are unchanged, it need not be built again.
    pub key: String,
    /// The template that it was built on.
    pub base: Option<String>,
    pub files: u64,
    pub bytes: u64,
    pub made_unix_s: u64,
    /// Settings and files removed from an adopted data directory.
    pub neutralised: Vec<String>,
    /// Distinguishes templates of one name.
    pub(crate) id: String,
    pub(crate) image: Option<Image>,
    /// Its data was a service's.
    pub(crate) promoted: bool,
    pub origin: Option<ImageOrigin>,
    #[serde(skip)]
    pub(crate) slot: PathBuf,
}

/// An image in a registry that a template was pulled from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageOrigin {
    /// With registry and tag.
    pub reference: String,
    pub digest: String,
}

impl DatabaseTemplate {
    /// Describes a template in `slot` that was built on nothing.
    pub(crate) fn new(name: &str, program: ServerProgram, slot: &Path) -> Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            program,
            made_unix_s: slots::unix_now(),
            id: random::letters(12)?,
            slot: slot.to_path_buf(),
            ..Self::default()
        })
    }

    /// Returns a text that no earlier or later template of this name has.
    pub(crate) fn identity(&self) -> String {
        format!("{} {} {}", self.key, self.made_unix_s, self.id)
    }

    pub fn image(&self) -> Option<&str> {
        self.image.as_ref().map(|image| image.name.as_str())
    }

    pub fn data_directory(&self) -> PathBuf {
        self.slot.join(slots::DATA)
    }
}

/// Fails if the template is damaged, is still being built, or does not exist.
pub(crate) fn load(home: &Home, name: &str) -> Result<DatabaseTemplate> {
    name::check(name)?;
    let slot = home.templates.join(name);
    match read(&slot) {
        Ok(Some(template)) => Ok(template),
        _ if slot.is_dir() => Err(without_document(&slot, name)),
        _ if slots::is_locked(&building_lock(home, name)) => Err(Error::TemplateBeingBuilt(name.into())),
        _ => Err(Error::UnknownTemplate(name.into())),
    }
}

fn without_document(slot: &Path, name: &str) -> Error {
    let document = slot.join(DOCUMENT);
    match fs::read(&document) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Error::io("read", document, error),
        _ => {
            let what = match volumes(slot).join(" ") {
                none if none.is_empty() => format!("its `{DOCUMENT}` is missing or damaged"),
                names => format!(
                    "an earlier build kept its data in a container engine's volume; to delete that: docker volume rm {names}"
                ),
            };
            Error::TemplateDamaged { name: name.into(), what, origin: None }
        }
    }
}

/// Returns the volumes in which earlier builds kept the data of a template, from the notes on them.
fn volumes(slot: &Path) -> Vec<String> {
    let notes = slot.ancestors().nth(2).and_then(|home| fs::read_dir(home.join("volumes")).ok());
    let notes = notes.into_iter().flatten().flatten();
    let notes = notes.filter_map(|note| private::read_json::<serde_json::Value>(&note.path()).ok()?);
    let own = notes.filter(|note| note["place"].as_str().is_some_and(|place| Path::new(place) == slot));
    own.filter_map(|note| note["name"].as_str().map(str::to_owned)).collect()
}

/// Locks the template in `slot` for a reset. Fails unless it is undamaged, and of the server's engine and version.
pub(crate) fn hold(slot: &Path, engine: &dyn Engine, version: &str) -> Result<File> {
    let Ok(Some(template)) = read(slot) else {
        let name = name_of(slot);
        return Err(if slot.is_dir() { without_document(slot, &name) } else { Error::UnknownTemplate(name) });
    };
    let lock = lock(slot)?;
    check_files(slot)?;
    let of_this_engine = engine.version(version).filter(|_| template.program.engine == engine.name());
    let fits = of_this_engine.is_some_and(|version| engine.examine(&slot.join(slots::DATA), &version).is_ok());
    if fits {
        Ok(lock)
    } else {
        let text = format!(
            "the template `{}` was made again by {}, but the server runs {version}; it stays as it is",
            template.name, template.program.version
        );
        Err(Error::failed(text, Remedy::StartNewServer))
    }
}

/// Keeps a template's files while the returned lock is open.
pub(crate) fn lock(slot: &Path) -> Result<File> {
    let lock = slots::open_lock(slot)?;
    sys::retry(|| rustix::fs::flock(&lock, FlockOperation::LockShared)).at("lock", slot)?;
    Ok(lock)
}

/// Fails if a template's files have changed.
pub(crate) fn check_files(slot: &Path) -> Result<()> {
    let origin = || read(slot).ok()??.origin.map(|origin| origin.reference);
    let damaged = |what| Err(Error::TemplateDamaged { name: name_of(slot), what, origin: origin() });
    manifest::difference(slot)?.map_or(Ok(()), damaged)
}

fn name_of(slot: &Path) -> String {
    slot.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

pub(crate) fn read(slot: &Path) -> Result<Option<DatabaseTemplate>> {
    let template: Option<DatabaseTemplate> = private::read_json(&slot.join(DOCUMENT))?;
    Ok(template.map(|template| DatabaseTemplate { slot: slot.to_path_buf(), ..template }))
}

pub fn list(home: &Home) -> Result<Vec<DatabaseTemplate>> {
    read_all(&home.templates)
}

/// Reads the templates or marks in a directory. Leaves out unreadable ones.
pub(crate) fn read_all(directory: &Path) -> Result<Vec<DatabaseTemplate>> {
    Ok(read_each(directory)?.into_iter().filter_map(|read| read.ok().flatten()).collect())
}

pub(crate) fn faults(directory: &Path) -> Result<Vec<Error>> {
    Ok(read_each(directory)?.into_iter().filter_map(Result::err).collect())
}

/// Skips hidden ones, which are being made, or were removed.
fn read_each(directory: &Path) -> Result<Vec<Result<Option<DatabaseTemplate>>>> {
    let is_named = |path: &&PathBuf| !name_of(path).starts_with('.');
    Ok(slots::directories(directory)?.iter().filter(is_named).map(|slot| read(slot)).collect())
}

/// Returns a new path for a removed template. It goes when its lock is free.
pub(crate) fn aside(home: &Home, name: &str) -> Result<PathBuf> {
    Ok(home.templates.join(format!("{OLD}{name}-{}", random::letters(6)?)))
}

pub(crate) fn put_aside(home: &Home, slot: &Path, name: &str) -> Result<()> {
    private::rename(slot, &aside(home, name)?)
}

pub(crate) fn building_lock(home: &Home, name: &str) -> PathBuf {
    home.templates.join(format!(".lock-{name}"))
}
