//! Sends templates to other machines, and receives them. The transport is the caller's.

use std::fmt::Display;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use calve_core::{CancelToken, RemovalWait};

use super::create::wait_for_others;
use super::{BuildEvent, BuiltTemplate, publish};
use crate::engine::programs::{self, Program};
use crate::engine::{self, Engine, ServerProgram};
use crate::error::{AtPath as _, Error, Remedy, Result, UnusableData, unless_cancelled};
use crate::files::account::Account;
use crate::files::directory::Directory;
use crate::files::private;
use crate::registry::template::{self, DatabaseTemplate, ImageOrigin, load, manifest};
use crate::registry::{self, DATA, Home, name};
use crate::server::launch::make_data;
use crate::server::standby;
use crate::server::sweep;
use crate::sys;

/// The caller's file beside the data, for a later pull.
const INDEX: &str = "index";

/// A template whose files stay while this lives.
#[derive(Debug)]
pub struct TemplateToSend {
    pub template: DatabaseTemplate,
    lock: File,
}

impl TemplateToSend {
    /// Returns a directory on the template's file system that only this user can enter.
    pub fn beside(&self) -> &Path {
        self.template.slot.parent().unwrap_or(&self.template.slot)
    }

    /// Returns whether its name still leads to this template. A template that replaces it keeps the name.
    pub fn is_current(&self) -> bool {
        registry::is_lock_at(&self.lock, &self.template.slot.join(registry::LOCK))
    }
}

/// Keeps the unchanged files of a template for sending. Fails for containers: another machine may lack the image.
pub fn hold_to_send(home: &Home, name: &str) -> Result<TemplateToSend> {
    let (template, lock) = loop {
        let template = load(home, name)?;
        let lock = template::lock(&template.slot)?;
        // Another template may have taken the name before the lock.
        let has_lock = registry::is_lock_at(&lock, &template.slot.join(registry::LOCK));
        if has_lock && load(home, name)?.id == template.id {
            break (template, lock);
        }
    };
    if template.image.is_some() {
        let text = format!("the template `{}` runs from an image, and cannot be pushed", template.name);
        return Err(Error::failed(text, Remedy::ChooseProgramTemplate));
    }
    template::check_files(&template.slot)?;
    Ok(TemplateToSend { template, lock })
}

/// The right to build the template of a name. No other process has it while this lives.
#[derive(Debug)]
pub struct NameLock {
    name: String,
    _lock: File,
}

impl NameLock {
    /// Waits for other builders of this name. Fails if the name is invalid, or with [`Error::Interrupted`].
    pub fn wait(home: &Home, name: &str, say: &mut dyn FnMut(BuildEvent), cancel: &CancelToken) -> Result<Self> {
        name::check(name)?;
        home.prepare()?;
        Ok(Self { name: name.to_owned(), _lock: wait_for_others(home, name, say, cancel)? })
    }
}

#[derive(Debug, Clone)]
pub struct ReceiveOptions {
    pub engine: String,
    /// The version of the server that made it, as that server prints it.
    pub version: String,
    pub architecture: String,
    pub key: String,
    pub origin: ImageOrigin,
    /// The directory with the server's program. `None`: `search` (PATH), and the usual places.
    pub server_bin: Option<PathBuf>,
    pub search: Vec<PathBuf>,
}

#[derive(Debug)]
pub struct ReceivePaths<'a> {
    /// The empty data directory.
    pub data: &'a Path,
    pub index: &'a Path,
    /// The data directory and the file of the template that this one replaces.
    pub old: Option<(PathBuf, PathBuf)>,
}

/// Makes a template of the data that `fill` puts into its paths. It appears under its name once a local server can use
/// it and it is on the disk. `may_replace` fails if the present template must stay. One from the same image is reused.
/// The files get the account of local servers.
///
/// # Errors
/// Fails before `fill` runs if the engine or its version does not fit, and afterwards if the data was not shut down
/// cleanly. Leaves nothing behind.
pub fn receive<E: From<Error>>(
    home: &Home,
    lock: &NameLock,
    options: &ReceiveOptions,
    (say, cancel): (&mut dyn FnMut(BuildEvent), &CancelToken),
    may_replace: impl FnOnce(&DatabaseTemplate) -> std::result::Result<(), E>,
    fill: impl FnOnce(&ReceivePaths<'_>) -> std::result::Result<(), E>,
) -> std::result::Result<BuiltTemplate, E> {
    let name = &lock.name;
    let old = match load(home, name) {
        Ok(old) => Some(old),
        // This process is its builder.
        Err(Error::UnknownTemplate(_) | Error::TemplateBeingBuilt(_)) => None,
        Err(error) => return Err(error.into()),
    };
    old.as_ref().map_or(Ok(()), may_replace)?;
    let held = old.as_ref().map(|old| template::lock(&old.slot)).transpose()?;
    let of_image = |old: &&DatabaseTemplate| old.origin.as_ref().is_some_and(|it| it.digest == options.origin.digest);
    let same = match old.as_ref().filter(of_image) {
        Some(old) => manifest::difference(&old.slot)?.is_none().then_some(old),
        None => None,
    };
    let reused = |same: &DatabaseTemplate| Ok(BuiltTemplate { template: same.clone(), reused: true });
    if let Some(same) = same.filter(|same| options.server_bin.is_none() && same.program.path.is_file()) {
        return reused(same);
    }
    let (engine, program) = fitting(name, options)?;
    // A template belongs to one server program.
    let is_of = |made_by: &ServerProgram| made_by.path == program.path && made_by.version == program.version.text;
    if let Some(same) = same.filter(|same| is_of(&same.program)) {
        return reused(same);
    }
    let slot = registry::reserve_build(home, name)?;
    let path = slot.path.clone();
    let data = path.join(DATA);
    let made = make_data(&data).map_err(E::from).and_then(|()| {
        // A damaged template may lack its data.
        let old = old.as_ref().filter(|old| old.data_directory().is_dir());
        let old = old.map(|old| (old.data_directory(), old.slot.join(INDEX)));
        let opened = fs_err::File::open(&data).at("open", &data)?;
        let room = ReceivePaths { data: &data, index: &path.join(INDEX), old };
        let (filled, synced) = calve_core::internal::sync_during(opened.as_fd(), || fill(&room));
        filled?;
        synced.at("sync", &data)?;
        unless_cancelled(cancel)?;
        let made = make(home, lock, options, (engine, &program), &path);
        made.map_err(|error| of_pull(error, name).into())
    });
    if made.is_err() {
        let _ = sweep::take_away(home, &path, RemovalWait::Yes);
    }
    drop((slot, held));
    let template = made?;
    template.neutralised.iter().for_each(|what| say(BuildEvent::Neutralised(what.clone())));
    standby::empty(home, &template.name, Some(&template))?;
    Ok(BuiltTemplate { template, reused: false })
}

fn fitting(name: &str, options: &ReceiveOptions) -> Result<(&'static dyn Engine, Program)> {
    let engine = engine::named(&options.engine).map_err(|_| {
        let engine = options.engine.escape_default();
        let reason = format!("it is for the engine `{engine}`, which this version does not know");
        not_pulled(name, reason, Remedy::ReadHelp)
    })?;
    let program = programs::find(engine, options.server_bin.as_deref(), &options.search)?;
    if !engine.version(&options.version).is_some_and(|maker| engine.takes(&maker, &program.version)) {
        let (made_by, server) = (options.version.escape_default().to_string(), program.version.text);
        return Err(not_pulled(name, UnusableData::OtherVersion { made_by, server }, Remedy::ChooseMatchingVersion));
    }
    let here = std::env::consts::ARCH;
    if options.architecture != here {
        // Another processor may lay out data differently.
        let made_on = options.architecture.escape_default();
        let reason = format!("it was made on {made_on}, and this machine is {here}");
        return Err(not_pulled(name, reason, Remedy::RebuildTemplate(name.to_owned())));
    }
    Ok((engine, program))
}

fn make(
    home: &Home,
    lock: &NameLock,
    options: &ReceiveOptions,
    (engine, program): (&dyn Engine, &Program),
    slot: &Path,
) -> Result<DatabaseTemplate> {
    let account = Account::for_server(engine.accounts())?;
    let data = slot.join(DATA);
    engine.examine(&data, &program.version)?;
    let neutralised = engine.neutralise(&data)?;
    private::give_tree(&Directory::open(slot)?, DATA, account)?;
    let template = DatabaseTemplate {
        key: options.key.clone(),
        neutralised,
        origin: Some(options.origin.clone()),
        ..DatabaseTemplate::new(&lock.name, program.recorded(engine, account), slot)?
    };
    let sync = |path: &Path| sys::sync_file_system(path).at("sync", path);
    publish::publish(home, engine, &program.version, template, &sync)
}

/// Reports a failed pull instead of a hidden directory.
fn of_pull(error: Error, name: &str) -> Error {
    match error {
        Error::NotUsable { reason: reason @ UnusableData::OtherVersion { .. }, .. } => {
            not_pulled(name, reason, Remedy::ChooseMatchingVersion)
        }
        Error::NotUsable { reason, .. } => not_pulled(name, reason, Remedy::RebuildTemplate(name.to_owned())),
        other => other,
    }
}

fn not_pulled(name: &str, reason: impl Display, remedy: Remedy) -> Error {
    Error::failed(format!("the template `{name}` was not pulled: {reason}"), remedy)
}
