//! Trees: clone, remove, probe.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use calve_core::error::{Operation, Remedy};
use calve_core::internal::{BeforePublish, Latency, home_directory, with_source};
use calve_core::options::{Background, SpareUse};
use calve_core::report::ReapReport;
use calve_core::{
    CancelToken, Choice, CloneOptions, CloneReport, CloneVerification, Durability, Error, ExistingDestination, Mounts,
    RemovalWait, RemoveOptions, clone_tree, probe, reap, remove_tree,
};
use calve_receipt::{ProbeReceipt, json};
use napi::Status;
use napi::bindgen_prelude::{BufferSlice, Env, Function, Object};
use napi::threadsafe_function::ThreadsafeFunctionCallMode::NonBlocking;
use napi_derive::napi;

use crate::running::start;
use crate::stop::StopSwitch;
use crate::{Handle, Outcome, invalid, outcome, path};

/// As on the command line.
#[napi(object)]
pub struct CloneRequest {
    /// One of the strategies' names.
    pub strategy: Option<String>,
    /// Properties that must hold.
    pub require: Vec<String>,
    /// Globs.
    pub exclude: Vec<String>,
    /// Exchange what is there.
    pub replace: bool,
    /// Leave other file systems out.
    pub one_file_system: bool,
    /// Worker threads.
    pub threads: Option<u32>,
    /// Write to the disk first.
    pub sync: bool,
    /// Compare first.
    pub verify: bool,
    /// The source has to be something else than a directory.
    pub only_file: bool,
    /// The home directory, which is not replaced.
    pub home: String,
}

fn options(request: CloneRequest, handle: &Handle) -> napi::Result<CloneOptions> {
    let mut options = CloneOptions::default();
    if let Some(name) = &request.strategy {
        options.strategy = Choice::Only(name.parse().map_err(invalid)?);
    }
    options.require = request.require.iter().map(|name| name.parse().map_err(invalid)).collect::<napi::Result<_>>()?;
    options.exclude = request.exclude;
    options.existing = if request.replace { ExistingDestination::Replace } else { ExistingDestination::Refuse };
    options.mounts = if request.one_file_system { Mounts::Stay } else { Mounts::Cross };
    options.durability = if request.sync { Durability::Synced } else { Durability::Cached };
    // Event loops run in the same process.
    options.internal.latency = Latency::Low;
    options.verify = if request.verify { CloneVerification::Contents } else { CloneVerification::No };
    options.threads = threads(request.threads);
    options.protect = vec![request.home.into()];
    options.progress = Arc::clone(&handle.progress);
    options.cancel = handle.stop.token();
    Ok(options)
}

pub(crate) fn threads(wanted: Option<u32>) -> Option<NonZeroUsize> {
    wanted.and_then(|threads| NonZeroUsize::new(threads as usize))
}

/// CALVE_HOME, or an error. Read on the calling thread: another one may not while Node changes the environment.
type Home = Result<PathBuf, &'static str>;

fn home() -> Home {
    home_directory(|name| std::env::var_os(name), std::env::home_dir())
}

/// Returns `[receipt, trash waits beside the destination, spares are wanted]` as JSON. The source may be `@NAME`.
fn clone(src: &Path, dst: &Path, only_file: bool, mut options: CloneOptions, home: Home) -> Result<String, Error> {
    options.spares = home.as_deref().ok().map(SpareUse::in_home);
    let mut report = with_source(src, &options, || home, |tree, options| clone_one(tree, dst, only_file, options))?;
    report.src = src.to_path_buf();
    let (trash_waits, spares_wanted) = (report.trash_waits, report.spares_wanted);
    Ok(format!("[{},{trash_waits},{spares_wanted}]", json(&report)))
}

fn clone_one(src: &Path, dst: &Path, only_file: bool, options: &CloneOptions) -> Result<CloneReport, Error> {
    if only_file && src.symlink_metadata().is_ok_and(|data| data.is_dir()) {
        let source = std::io::ErrorKind::IsADirectory.into();
        return Err(Error::Io { operation: Operation::CloneFile, path: src.to_path_buf(), source });
    }
    clone_tree(src, dst, options)
}

/// Calls `ask` on the event loop, and waits for the handle's `go_on` or `cancel`.
fn before_publish(ask: &Function<'_, (), ()>, stop: StopSwitch) -> napi::Result<BeforePublish> {
    let ask = ask.build_threadsafe_function().build()?;
    Ok(BeforePublish::new(move || match ask.call((), NonBlocking) {
        Status::Ok => stop.wait(),
        // The event loop has ended.
        _ => stop.cancel(),
    }))
}

/// Clones a tree or a file. `ask` is called when all is made, and before it gets its name.
#[napi(ts_return_type = "Promise<string | Failure>")]
pub fn start_clone<'env>(
    env: &'env Env,
    src: BufferSlice,
    dst: BufferSlice,
    request: CloneRequest,
    handle: &Handle,
    ask: Option<Function<'_, (), ()>>,
) -> napi::Result<Object<'env>> {
    let (src, dst, only_file) = (path(&src), path(&dst), request.only_file);
    let mut options = options(request, handle)?;
    options.internal.before_publish = ask.map(|ask| before_publish(&ask, handle.stop.clone())).transpose()?;
    let home = home();
    start(env, handle.stop.clone(), move || clone(&src, &dst, only_file, options, home))
}

/// Clones as [`start_clone`] does, and waits for it.
#[napi]
pub fn clone_sync(src: BufferSlice, dst: BufferSlice, request: CloneRequest) -> napi::Result<Outcome<String>> {
    let (src, dst, only_file) = (path(&src), path(&dst), request.only_file);
    let options = options(request, &Handle::default())?;
    Ok(outcome(clone(&src, &dst, only_file, options, home())))
}

/// Returns the work of removing a tree, which returns `[receipt, trash waits beside it]` as JSON.
fn remove(what: &Path, wait: bool, home: String, handle: &Handle) -> impl FnOnce() -> Result<String, Error> + use<> {
    let what = what.to_path_buf();
    let mut options = RemoveOptions::default();
    options.wait = if wait { RemovalWait::Yes } else { RemovalWait::No };
    options.protect = vec![home.into()];
    options.progress = Arc::clone(&handle.progress);
    options.cancel = handle.stop.token();
    move || {
        let report = remove_tree(&what, &options)?;
        Ok(format!("[{},{}]", json(&report), report.trashed.is_some()))
    }
}

/// Removes a tree or a file.
#[napi(ts_return_type = "Promise<string | Failure>")]
pub fn start_remove<'env>(
    env: &'env Env,
    what: BufferSlice,
    wait: bool,
    home: String,
    handle: &Handle,
) -> napi::Result<Object<'env>> {
    start(env, handle.stop.clone(), remove(&path(&what), wait, home, handle))
}

/// Removes as [`start_remove`] does, and waits for it.
#[napi]
pub fn remove_sync(what: BufferSlice, wait: bool, home: String) -> Outcome<String> {
    outcome(remove(&path(&what), wait, home, &Handle::default())())
}

/// Reports what a pair of places can do.
#[napi(ts_return_type = "Promise<string | Failure>")]
pub fn start_probe<'env>(env: &'env Env, src: BufferSlice, dst: BufferSlice) -> napi::Result<Object<'env>> {
    let (src, dst) = (path(&src), path(&dst));
    start(env, StopSwitch::default(), move || Ok(json(&ProbeReceipt::new(probe(&src, &dst)?, Remedy::to_string))))
}

/// Deletes the trash of a directory, where no process can be started for that.
#[napi(ts_return_type = "Promise<void | Failure>")]
pub fn start_reap<'env>(env: &'env Env, parent: BufferSlice) -> napi::Result<Object<'env>> {
    let (parent, stop) = (path(&parent), StopSwitch::default());
    let cancel = stop.token();
    start(env, stop, move || reap_in(&parent, &cancel)?.failure.map_or(Ok(()), Err))
}

fn reap_in(parent: &Path, cancel: &CancelToken) -> Result<ReapReport, Error> {
    // The error names the path.
    #[expect(clippy::disallowed_methods)]
    let opened = std::fs::File::open(parent);
    let failed = |source| Error::Io { operation: Operation::OpenDirectory, path: parent.to_path_buf(), source };
    reap(opened.map_err(failed)?.into(), parent, Background::No, cancel)
}
