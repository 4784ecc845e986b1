//! The plot of building a template.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use calve_core::internal::ShownPath;
use calve_core::{CancelToken, RemovalWait};
use fs_err as fs;

use super::publish;
use crate::engine::container::{self, Container, Image};
use crate::engine::programs::{self, Program};
use crate::engine::{self, Engine, Purpose};
use crate::error::{AtPath as _, Error, Remedy, Result, UnusableData, unless_cancelled};
use crate::files::account::Account;
use crate::files::log;
use crate::files::private;
use crate::files::trash;
use crate::registry;
use crate::registry::template::key::Key;
use crate::registry::template::{self, DatabaseTemplate, building_lock, load};
use crate::registry::{Home, Record, StartFindings, mark, name};
use crate::server::messages::{Origin, Spec};
use crate::server::standby;
use crate::server::starter::{OwnedServer, Starter, new_spec, run};
use crate::server::sweep;
use crate::sys;

#[derive(Debug, Clone, Default)]
pub struct CreateOptions {
    pub name: String,
    /// `None`: the engine of the base.
    pub engine: Option<String>,
    /// A data directory to take over.
    pub from: Option<PathBuf>,
    pub base: Option<String>,
    /// A server and one of its marks, to start from.
    pub mark: Option<(String, String)>,
    /// Patterns of the files that the command reads.
    pub inputs: Vec<String>,
    pub rebuild: bool,
    /// Fills the template. Part of its key, and run by the caller.
    pub command: Vec<OsString>,
    /// The directory with the server's program. `None`: `search`, and the usual places.
    pub server_bin: Option<PathBuf>,
    /// The image with the server's program, and the runtime that has it. `None`: the first that has the image.
    pub image: Option<String>,
    pub runtime: Option<PathBuf>,
    /// Runtimes to look for, the best first. Empty: [`crate::RUNTIMES`].
    pub runtimes: Vec<String>,
    /// The directories of PATH.
    pub search: Vec<PathBuf>,
    /// The base of relative paths and patterns.
    pub directory: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildEvent {
    /// Another process is building this template.
    Waiting,
    /// Something that was removed from the data directory, or stays in it without effect.
    Neutralised(String),
    /// The template is made, but this failed afterwards.
    Unfinished(String),
}

pub struct CommandEnd {
    /// The exit code that Calve passes on.
    pub code: u8,
    pub how: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct BuiltTemplate {
    pub template: DatabaseTemplate,
    pub reused: bool,
}

pub struct Caller<'a> {
    pub say: &'a mut dyn FnMut(BuildEvent),
    /// Runs the command, tied to its server. `None`: it succeeded.
    pub run: &'a mut dyn FnMut(&OwnedServer) -> Result<Option<CommandEnd>>,
    pub cancel: &'a CancelToken,
}

/// Builds a template, or returns the existing one if it is undamaged and has the same key.
pub fn create(
    home: &Home,
    options: &CreateOptions,
    supervisor: &[PathBuf],
    caller: &mut Caller<'_>,
) -> Result<BuiltTemplate> {
    name::check(&options.name)?;
    home.prepare()?;
    let plan = TemplatePlan::new(home, options)?;
    let _building = wait_for_others(home, &options.name, caller.say, caller.cancel)?;
    if !options.rebuild {
        match load(home, &options.name) {
            Ok(template) if template.program.engine != plan.engine.name() => return Err(of_other_engine(&template)),
            Ok(DatabaseTemplate { name, promoted: true, .. }) => {
                let text = format!("the template `{name}` holds the data of a worktree, which would be lost");
                return Err(Error::failed(text, Remedy::ReplaceTemplate(name)));
            }
            // A damaged template is built again.
            Ok(template) if template.key == plan.key && template::check_files(&template.slot).is_ok() => {
                return Ok(BuiltTemplate { template, reused: true });
            }
            // Only the unreadable record would tell whether it holds the data of a worktree.
            Err(error @ (Error::TemplateDamaged { .. } | Error::Io { .. })) => return Err(error),
            _ => {}
        }
    }
    let template = build(home, options, &plan, supervisor, caller)?;
    standby::empty(home, &template.name, Some(&template))?;
    Ok(BuiltTemplate { template, reused: false })
}

pub(super) fn of_other_engine(template: &DatabaseTemplate) -> Error {
    let DatabaseTemplate { name, program, .. } = template;
    let text = format!("there is a template `{name}` of the engine {}", program.engine);
    Error::failed(text, Remedy::ReplaceTemplate(name.clone()))
}

struct TemplatePlan {
    engine: &'static dyn Engine,
    program: Program,
    image: Option<Image>,
    base: Option<DatabaseTemplate>,
    from: Option<PathBuf>,
    key: String,
}

impl TemplatePlan {
    fn new(home: &Home, options: &CreateOptions) -> Result<Self> {
        if options.base.is_some() && options.from.is_some() {
            let text = "a template is made from a data directory or from a base template, not from both";
            return Err(Error::usage(text, Remedy::NameOneSource));
        }
        let base = match (&options.base, &options.mark) {
            (Some(base), _) => Some(load(home, base)?),
            (None, Some((server, mark))) => Some(mark::find(home, server, mark)?),
            (None, None) => None,
        };
        let engine = match (&options.engine, &base) {
            (Some(name), Some(base)) if *name != base.program.engine => {
                let text = format!("the base template `{}` is for {}", base.name, base.program.engine);
                return Err(Error::usage(text, Remedy::ReadHelp));
            }
            (Some(name), _) => engine::named(name)?,
            (None, Some(base)) => engine::named(&base.program.engine)?,
            (None, None) => return Err(Error::usage("no engine was named", Remedy::NameEngine)),
        };
        let named = options.server_bin.as_ref().map(|path| options.directory.join(path));
        let named = named.as_deref().or(base.as_ref().map(|base| base.program.path.as_path()));
        let of_base = base.as_ref().filter(|_| options.server_bin.is_none()).and_then(|base| base.image.as_ref());
        let runtime = options.runtime.as_deref().or(of_base.map(|image| image.runtime.as_path()));
        let (image, program) = match options.image.as_deref().or(of_base.map(|image| image.name.as_str())) {
            Some(image) => {
                let runtimes: Vec<&Path> = match runtime {
                    Some(named) => vec![named],
                    None if options.runtimes.is_empty() => container::RUNTIMES.map(Path::new).to_vec(),
                    None => options.runtimes.iter().map(Path::new).collect(),
                };
                // Tests whether the engine sees this machine's files: no other machine has this slot's lock.
                let slot = registry::reserve_build(home, &options.name)?;
                let seen = slot.path.join(registry::LOCK);
                let looked = container::look_at(engine, image, &runtimes, &options.search, &seen);
                trash::remove(&slot.path, RemovalWait::Yes)?;
                looked.map(|(image, program)| (Some(image), program))?
            }
            None if options.runtime.is_some() => {
                return Err(Error::usage("a container runtime was named without an image", Remedy::ChooseImage));
            }
            None => (None, programs::find(engine, named, &options.search)?),
        };
        let mut key = Key::new();
        for part in [engine.name(), &program.version.text, &engine.recipe()] {
            key.add(part);
        }
        key.add(program.path.as_os_str().as_encoded_bytes());
        key.add(base.as_ref().map_or("", |base| base.key.as_str()));
        // Without an image nothing is added, so the keys of older versions stay valid.
        if let Some(image) = &image {
            key.add(&image.id);
        }
        let mut from = None;
        if let Some(path) = &options.from {
            let path = options.directory.join(path);
            let path = fs::canonicalize(&path).at("find", &path)?;
            key.add_directory(&path).map_err(of_source)?;
            from = Some(path);
        }
        key.add_command(&options.command);
        key.add_inputs(&options.inputs, &options.directory)?;
        Ok(Self { engine, program, image, base, from, key: key.finish() })
    }
}

/// Waits for other builders of this name, and takes the builder's lock. Waiters find the first one's template.
pub(super) fn wait_for_others(
    home: &Home,
    name: &str,
    say: &mut dyn FnMut(BuildEvent),
    cancel: &CancelToken,
) -> Result<File> {
    let path = building_lock(home, name);
    let lock = private::open(&path)?;
    let mut said = false;
    registry::wait_unless(&lock, &path, cancel, || {
        if !std::mem::replace(&mut said, true) {
            say(BuildEvent::Waiting);
        }
        Ok(())
    })?;
    Ok(lock)
}

fn spec(home: &Home, options: &CreateOptions, plan: &TemplatePlan, slot: &Path, account: Account) -> Result<Spec> {
    let program = plan.program.recorded(plan.engine, account);
    let mut spec = new_spec(home, &options.name, slot, program)?;
    spec.container = plan.image.as_ref().map(|image| Container::new(image, home, &options.name)).transpose()?;
    spec.origin = match (&plan.from, &plan.base) {
        (Some(from), _) => Origin::Directory(from.clone()),
        (None, Some(base)) => Origin::Template(base.slot.clone()),
        (None, None) => Origin::Init,
    };
    spec.purpose = if plan.from.is_some() { Purpose::TakeOver } else { Purpose::Build };
    // A template must not depend on a mount.
    spec.whole = true;
    Ok(spec)
}

fn build(
    home: &Home,
    options: &CreateOptions,
    plan: &TemplatePlan,
    supervisor: &[PathBuf],
    caller: &mut Caller<'_>,
) -> Result<DatabaseTemplate> {
    if let Some(from) = &plan.from {
        check_unused(home, from)?;
        plan.engine.examine(from, &plan.program.version).map_err(of_source)?;
    }
    if let Some(base) = &plan.base {
        plan.engine.examine(&base.data_directory(), &plan.program.version)?;
    }
    let account = match &plan.base {
        Some(base) => base.program.account,
        None => Account::for_server(plan.engine.accounts())?,
    };
    let slot = registry::reserve_build(home, &options.name)?;
    let path = slot.path.clone();
    // This process too holds the lock until the template is published.
    let held = slot.lock.try_clone().at("lock", &path)?;
    let mut spec = spec(home, options, plan, &path, account)?;
    let log = home.logs.join(format!("{}.log", options.name));
    let cancel = caller.cancel;
    let starter = Starter { supervisor, cancel };
    let started = run(home, &mut spec, slot, &starter);
    let made = started.map_err(|error| of_server_on_source(error, plan)).and_then(|owned| {
        let gone = || Error::SupervisorGone(options.name.clone());
        let StartFindings { program, mut neutralised } = owned.record.found.clone().ok_or_else(gone)?;
        spec.container.iter().for_each(|container| container.find_first_process(&owned.record.server.address));
        let is_new = plan.from.is_none() && options.command.is_empty();
        if let Err(error) = fill(plan, &path, &owned, options, &log, caller) {
            keep_log(&path, &log);
            let _ = owned.stop();
            return Err(error);
        }
        neutralised.extend(plan.engine.without_effect(&owned.record.server.address));
        owned.finish(cancel)?;
        if !is_new {
            let fresh = self::spec(home, options, plan, &path, account)?;
            let fresh = Spec { origin: Origin::Present, purpose: Purpose::Build, ..fresh };
            try_to_start(home, fresh, &held, plan.engine, &starter)?;
        }
        // The supervisor has ended. The lock is now the builder's alone.
        registry::sign(&held);
        let template = DatabaseTemplate {
            image: plan.image.clone(),
            key: plan.key.clone(),
            base: plan.base.as_ref().and_then(|base| options.base.clone().or(base.base.clone())),
            neutralised,
            ..DatabaseTemplate::new(&options.name, program, &path)?
        };
        publish::publish(home, plan.engine, &plan.program.version, template, &|path| starter.sync(path))
    });
    if made.is_err() {
        keep_log(&path, &log);
        let _ = sweep::take_away(home, &path, RemovalWait::Yes);
    }
    drop(held);
    let neutralised = made.iter().flat_map(|template| &template.neutralised);
    neutralised.for_each(|what| (caller.say)(BuildEvent::Neutralised(what.clone())));
    // Without a command the data is the source's, and so are its faults.
    let source = plan.from.as_deref().filter(|_| options.command.is_empty());
    made.map_err(|error| of_template(error, &path, &home.templates.join(&options.name), &options.name, source))
}

/// Fails if a running server uses the directory. Calve's records know more than the files do: mounts, and process ids.
fn check_unused(home: &Home, data: &Path) -> Result<()> {
    let is_its = |record: &Record| fs::canonicalize(&record.server.data_directory).is_ok_and(|path| path == data);
    let user = match registry::list(home)?.into_iter().find(is_its).map(|Record { server, durable, .. }| {
        let pid = server.pid.filter(|_| durable);
        pid.map_or(UnusableData::InUseByServer(server.name), |pid| UnusableData::InUse(pid.into()))
    }) {
        // A server in a container has another pid here than in its files.
        None => sys::works_in(data, &engine::ENGINES.iter().map(|engine| engine.program()).collect::<Vec<_>>())
            .map(|pid| UnusableData::InUse(pid.into())),
        own => own,
    };
    user.map_or(Ok(()), |user| Err(Error::not_usable(data, user)))
}

/// Starts a server once on the finished data: settings that prevent a start must not replace a good template.
fn try_to_start(home: &Home, mut spec: Spec, held: &File, engine: &dyn Engine, starter: &Starter<'_>) -> Result<()> {
    publish::check_log(engine, &spec.slot)?;
    sweep::leave_data(&spec.slot)?;
    let lock = held.try_clone().at("lock", &spec.slot)?;
    let slot = registry::RegistrySlot { path: spec.slot.clone(), lock };
    let started = run(home, &mut spec, slot, starter);
    started.and_then(|owned| owned.finish(starter.cancel)).map_err(|error| match error {
        Error::ServerFailed { how, log, full } => {
            Error::ServerFailed { how: format!("{how} when it was started on what is to be the template"), log, full }
        }
        other => other,
    })
}

/// Advises to read the source as its owner if permission is denied.
fn of_source(error: Error) -> Error {
    match error {
        Error::Io { operation, path, source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            Error::failed(format!("cannot {operation} `{}`: {source}", ShownPath(&path)), Remedy::ReadAsOwner)
        }
        other => other,
    }
}

/// Names the part that the source data directory lacks, if the server's refusal tells it.
fn of_server_on_source(error: Error, plan: &TemplatePlan) -> Error {
    match (&error, &plan.from) {
        (Error::ServerFailed { how, .. }, Some(from)) => {
            plan.engine.lacking(how).map_or(error, |lacks| Error::not_usable(from, lacks))
        }
        _ => error,
    }
}

/// Names the template, or its source, instead of the hidden directory `slot` that it is built in.
fn of_template(error: Error, slot: &Path, target: &Path, template: &str, source: Option<&Path>) -> Error {
    let (hidden, shown) = (slot.to_string_lossy(), target.to_string_lossy());
    let in_target = |path: PathBuf| if path.starts_with(slot) { target.to_path_buf() } else { path };
    match error {
        Error::Io { operation, path, source, remedy } => {
            let path = path.strip_prefix(slot).map_or_else(|_| path.clone(), |below| target.join(below));
            Error::Io { operation, path, source, remedy }
        }
        Error::NotUsable { path, reason } if path.starts_with(slot) => match source {
            Some(source) => Error::not_usable(source, reason),
            None => Error::failed(format!("the template `{template}` was not made: {reason}"), Remedy::CorrectCommand),
        },
        Error::ServerFailed { how, log, full } => {
            Error::ServerFailed { how, log: log.replace(&*hidden, &shown), full: full.map(in_target) }
        }
        Error::Program { program, how, said, full } => {
            Error::Program { program, how, said: said.replace(&*hidden, &shown), full: full.map(in_target) }
        }
        Error::Clone { message, full, remedy } => {
            Error::Clone { message: message.replace(&*hidden, &shown), full: full.map(in_target), remedy }
        }
        other => other,
    }
}

/// MySQL may count the connection of the readiness probe only after it is over.
const SETTLES_IN: Duration = Duration::from_millis(10);

/// The output of a server in a container passes through the runtime's processes before Calve can read it.
const IS_PASSED_ON_IN: Duration = Duration::from_secs(5);

fn fill(
    plan: &TemplatePlan,
    slot: &Path,
    owned: &OwnedServer,
    options: &CreateOptions,
    log: &Path,
    caller: &mut Caller<'_>,
) -> Result<()> {
    if options.command.is_empty() {
        return Ok(());
    }
    unless_cancelled(caller.cancel)?;
    let said = log::open(slot)?;
    let mut asked = 0;
    let mut connections = || {
        let said = log::read(&said).at("read", log::path(slot))?;
        let had = plan.engine.connections(&owned.record.server.address, &said, asked);
        asked += 1;
        had
    };
    let before = loop {
        let now = connections()?;
        std::thread::sleep(SETTLES_IN);
        if connections()? == now {
            break now;
        }
    };
    let end = (caller.run)(owned)?;
    unless_cancelled(caller.cancel)?;
    if let Some(CommandEnd { code, how }) = end {
        return Err(Error::Command { template: options.name.clone(), code, how, log: log.to_path_buf() });
    }
    let until = plan.image.as_ref().map(|_| Instant::now() + IS_PASSED_ON_IN);
    while connections()? <= before {
        if until.is_none_or(|until| Instant::now() >= until) {
            return Err(Error::NotConnected { template: options.name.clone() });
        }
        std::thread::sleep(SETTLES_IN);
    }
    Ok(())
}

fn keep_log(slot: &Path, log: &Path) {
    let said = log::open(slot).ok().and_then(|said| log::read(&said).ok());
    let _ = said.map(|said| private::replace(log, &said));
}
