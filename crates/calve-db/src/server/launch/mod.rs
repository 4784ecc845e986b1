//! From a specification to a server that answers: data directory, configuration, process, readiness.

pub(crate) mod data;
mod port;
mod process;
mod readiness;
mod request;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use calve_core::internal::{CloneState, OverlayMount};
use calve_core::{CancelToken, CloneOptions, RemovalWait, Strategy};
use rustix::event::{PollFd, PollFlags};

use self::data::{DataClone, MAY_NOT_MOUNT, clone_by, large_files, milliseconds_since};
pub(crate) use self::port::HeldPort;
pub(crate) use self::process::start_server;
use self::process::{start, start_in_container};
use self::readiness::Notices;
pub(crate) use self::request::{LaunchRequest, Owners, ResetData};
use crate::engine::container::process::ServerProcess;
use crate::engine::{Instance, ServerProgram, connection, container, memory};
use crate::error::{AtPath as _, Error, Result};
use crate::files::directory::Directory;
use crate::files::log;
use crate::files::private::{self, CLOSED};
use crate::files::runtime;
use crate::files::trash;
use crate::registry::template::{self, manifest};
use crate::registry::{self, DATA, LaunchReport, StartFindings};
use crate::server::messages::Origin;
use crate::sys::{self, ProcessEnd};

pub(crate) struct RunningServer {
    pub(crate) server: ServerProcess,
    pub(crate) report: LaunchReport,
    pub(crate) found: StartFindings,
    /// Unmounted before the files are removed, and before `overlay`, which it shows too.
    pub(crate) seen: ServerView,
    pub(crate) overlay: Option<OverlayMount>,
    /// The data directory's state before the start, if a reset made it.
    pub(crate) state: Option<CloneState>,
    /// Keeps the template's files below an overlay.
    pub(crate) template: Option<File>,
}

/// Makes the data directory, which stays if this fails, and starts the server on it.
pub(crate) fn launch(wanted: &LaunchRequest<'_>) -> Result<RunningServer> {
    let started = Instant::now();
    let spec = wanted.spec;
    let data = wanted.files.join(DATA);
    let (slot, settings, output) = make_files(wanted)?;
    let (cloned, template, mut neutralised) = unless_left(&wanted.owners, wanted.cancel, || {
        quietly(wanted.is_speculative, || data_directory(wanted, &slot, &data))
    })?;
    let state = recorded(wanted, &cloned, &data);
    let seen = as_seen(wanted)?;
    open_up(wanted, &slot, &settings)?;
    if *wanted.origin == Origin::Init {
        initialise(wanted, &seen.path.join(DATA), &settings, &output)?;
    }
    let instance = instance(wanted, &seen.path, settings);
    let notices = Notices::listen(wanted.directory, spec.program.account)?;
    connection::forget_first_process(wanted.address);
    let notify = Some(&*notices.path).filter(|_| wanted.engine.may_notify(&instance.program.version));
    let _lent = wanted.port.map(HeldPort::lend);
    let mut server = start_server(wanted, &instance, notify, &output)?;
    let pid = server.pid();
    if !spec.is_left_to_the_kernel() {
        registry::write_begun(&spec.slot, &spec.record.server.engine, Some(pid))?;
    }
    let shares_memory = !spec.record.isolated && spec.container.is_none() && spec.purpose.is_on_a_template();
    let forgotten = std::cell::Cell::new(!shares_memory);
    let meanwhile = || {
        spec.container.iter().for_each(|container| container.find_first_process(wanted.address));
        // Early, because from then on the kernel removes the memory with its last user, whichever process is killed.
        forgotten.set(forgotten.get() || memory::forget(wanted.engine, wanted.files, pid));
    };
    let tells = spec.program.notifies && notify.is_some();
    let notifies = readiness::wait(&mut server, wanted, &notices, tells, &meanwhile);
    let notifies = notifies.map_err(|error| match (&error, &spec.container) {
        // A removed image is not the server's failure.
        (Error::ServerFailed { .. }, Some(container)) => container.image.missing().unwrap_or(error),
        _ => error,
    })?;
    meanwhile();
    neutralised
        .extend(unless_left(&wanted.owners, wanted.cancel, || wanted.engine.finish_start(&instance, wanted.cancel))?);
    let DataClone { mut report, copies_up, overlay } = cloned;
    report.ready_ms += milliseconds_since(started);
    report.strategy = report.strategy.or(spec.record.server.launch.strategy);
    if let (Origin::Template(source), true) = (wanted.origin, copies_up) {
        report.copied_on_first_open = large_files(&source.join(DATA));
    }
    let template = template.filter(|_| overlay.is_some());
    let found = StartFindings { program: ServerProgram { notifies, ..spec.program.clone() }, neutralised };
    Ok(RunningServer { server, report, found, seen, overlay, state, template })
}

/// Recreates a server's directories, except its data. Returns those of its files and its settings, and its log.
pub(crate) fn make_files(wanted: &LaunchRequest<'_>) -> Result<(Directory, Directory, File)> {
    let spec = wanted.spec;
    let slot = Directory::open(wanted.files)?;
    // Shuts out other processes while root writes to the server's files, and puts earlier leftovers out of reach.
    private::close(&slot)?;
    let settings = runtime::renew(wanted.directory, spec.program.account)?;
    trash::remove(&wanted.files.join("tmp"), RemovalWait::No)?;
    private::make_in(&slot, "tmp")?.give_itself(spec.program.account)?;
    Ok((slot, settings, private::append(&log::path(spec.files()))?))
}

/// Lets the server's account into the directories that [`make_files`] made.
pub(crate) fn open_up(wanted: &LaunchRequest<'_>, slot: &Directory, settings: &Directory) -> Result<()> {
    let spec = wanted.spec;
    private::share(slot, spec.program.account, wanted.files)?;
    if spec.container.is_some() {
        container::name_user(settings, wanted.engine.name(), spec.program.account)?;
    }
    Ok(())
}

/// Records the data directory's state for the next reset, which can do without. Root never changes anything in a
/// directory that the server's account could reach before, so its resets always make a new one.
fn recorded(wanted: &LaunchRequest<'_>, cloned: &DataClone, data: &Path) -> Option<CloneState> {
    let reset = wanted.reset?;
    let is_tree = cloned.report.clone_ms.is_some() && cloned.overlay.is_none();
    if !is_tree || wanted.spec.program.account.to_become().is_some() {
        return None;
    }
    let after = match reset {
        ResetData::Reverted(_, reverted) => Some(reverted),
        ResetData::ToClone => None,
    };
    CloneState::record(data, after, wanted.cancel).ok().flatten()
}

pub(crate) fn instance(wanted: &LaunchRequest<'_>, seen: &Path, settings: Directory) -> Instance {
    Instance {
        program: wanted.spec.program.clone(),
        data: seen.join(DATA),
        data_here: wanted.files.join(DATA),
        settings,
        address: wanted.address.clone(),
        purpose: wanted.spec.purpose,
    }
}

/// Runs long work, such as copying gigabytes, and cancels it when the server is no longer wanted.
pub(crate) fn unless_left<T>(owners: &Owners<'_>, cancel: &CancelToken, work: impl FnOnce() -> T) -> T {
    let Ok((ended, done)) = std::io::pipe() else { return work() };
    let (socket, processes) = owners;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut fds = vec![PollFd::new(&ended, PollFlags::IN)];
            // Only the other end's hangup: its requests are read later.
            fds.extend(socket.map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::empty())));
            fds.extend(processes.iter().map(|process| PollFd::from_borrowed_fd(*process, PollFlags::IN)));
            let _ = crate::sys::retry(|| rustix::event::poll(&mut fds, None));
            if fds[0].revents().is_empty() {
                cancel.cancel();
            }
        });
        let result = work();
        drop(done);
        result
    })
}

/// Runs background work on a thread at low priority. The server cannot be started there: it would end with that thread,
/// and without privilege no process can raise its priority again.
fn quietly<T: Send>(is_speculative: bool, work: impl FnOnce() -> T + Send) -> T {
    if !is_speculative {
        return work();
    }
    let work = || {
        sys::lower_priority();
        work()
    };
    let worked = std::thread::scope(|scope| scope.spawn(work).join());
    worked.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The cloned data directory, the lock of its template, and a list of the things removed from it.
type PreparedData = (DataClone, Option<File>, Vec<String>);

fn data_directory(wanted: &LaunchRequest<'_>, slot: &Directory, data: &Path) -> Result<PreparedData> {
    let spec = wanted.spec;
    match wanted.origin {
        Origin::Present => Ok(PreparedData::default()),
        Origin::Init => {
            make_data(data)?;
            slot.give(DATA, spec.program.account)?;
            Ok(PreparedData::default())
        }
        Origin::Template(template) => {
            let lock = template::lock(template)?;
            // A reset has checked them.
            wanted.reset.map_or_else(|| template::check_files(template), |_| Ok(()))?;
            let no_overlay = match &spec.container {
                Some(container) if container.image.is_docker() => {
                    Some("Docker's engine does not see what this process mounts")
                }
                _ if spec.record.isolated && !spec.whole => None,
                _ => Some(MAY_NOT_MOUNT),
            };
            let (source, strategy) = (template.join(DATA), spec.record.server.launch.strategy);
            let cloned = match wanted.reset {
                Some(ResetData::Reverted(report, _)) => DataClone { report: report.clone(), ..DataClone::default() },
                _ => clone_by(&source, data, strategy, no_overlay, wanted.cancel)?,
            };
            Ok((cloned, Some(lock), Vec::new()))
        }
        Origin::Directory(source) => {
            let (cloned, neutralised) = taken_over(wanted, source, slot, data)?;
            Ok((cloned, None, neutralised))
        }
    }
}

/// Clones and neutralises a user's data directory. Only this process can reach the clone until the end, and nothing in
/// it is changed before it is known to have no links that lead out.
fn taken_over(
    wanted: &LaunchRequest<'_>,
    source: &Path,
    slot: &Directory,
    data: &Path,
) -> Result<(DataClone, Vec<String>)> {
    // Entry by entry, so that the directory itself can be one that is later cloned by snapshot.
    let started = Instant::now();
    make_data(data)?;
    let mut strategy = Strategy::Copy;
    let options = CloneOptions { cancel: wanted.cancel.clone(), ..CloneOptions::default() };
    for entry in manifest::names(source)? {
        strategy = calve_core::clone_tree(&source.join(&entry), &data.join(&entry), &options)?.strategy;
    }
    let cloned = DataClone::new(strategy, &[], started);
    let neutralised = wanted.engine.neutralise(data)?;
    wanted.engine.scrub(data)?;
    private::give_tree(slot, DATA, wanted.spec.program.account)?;
    Ok((cloned, neutralised))
}

pub(crate) fn make_data(data: &Path) -> Result<()> {
    calve_core::internal::make_snapshotable_directory(data)?;
    private::make_directory(data, CLOSED).map(|_| ())
}

/// Runs the engine's initialisation. `data`: the path that its program sees.
fn initialise(wanted: &LaunchRequest<'_>, data: &Path, settings: &Directory, output: &File) -> Result<()> {
    let in_image = wanted.spec.container.is_some();
    let command = wanted.engine.init(&wanted.spec.program.path, data, &|program| in_image || program.is_file())?;
    let Some(command) = command else { return Ok(()) };
    let mut program = match &wanted.spec.container {
        Some(container) => start_in_container(wanted, container, &command, settings, false, output)?,
        None => start(wanted, &command, data, None, output)?,
    };
    loop {
        if let Some(ended) = program.ended() {
            if ended == ProcessEnd::Exit(0) {
                return Ok(());
            }
            let name = Path::new(&command[0]).file_name().unwrap_or_default().to_string_lossy().into_owned();
            let said = log::tail(wanted.spec.files());
            let full = log::full(wanted.spec.files(), &said);
            return Err(Error::Program { program: name, how: ended.to_string(), said, full });
        }
        if wanted.is_left_within(Duration::from_millis(50), program.end()) {
            return Err(Error::Interrupted);
        }
    }
}

/// The path at which the server's user sees the files: another one if a directory above them is closed to this user.
pub(crate) struct ServerView {
    pub(crate) path: PathBuf,
    /// It is mounted, in this process's own namespace.
    is_mount: bool,
}

impl ServerView {
    pub(crate) fn hide(&mut self) {
        if std::mem::take(&mut self.is_mount) {
            sys::unbind(&self.path);
        }
    }
}

impl Drop for ServerView {
    fn drop(&mut self) {
        self.hide();
    }
}

pub(crate) fn as_seen(wanted: &LaunchRequest<'_>) -> Result<ServerView> {
    let (spec, account) = (wanted.spec, wanted.spec.program.account);
    // A container reaches the directories that are bound into it.
    if spec.container.is_some() || account.to_become().is_none() || account.reaches(wanted.files) {
        return Ok(ServerView { path: wanted.files.to_path_buf(), is_mount: false });
    }
    if !spec.record.isolated {
        return Err(Error::Unreachable(wanted.files.to_path_buf()));
    }
    let at = wanted.directory.join(runtime::FILES);
    private::make_directory(&at, CLOSED)?;
    sys::bind(wanted.files, &at).at("mount", &at)?;
    Ok(ServerView { path: at, is_mount: true })
}
