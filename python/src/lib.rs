//! The native half of the PyPI package `calve`. Private to it: `calve/*.py` has the public functions.
//!
//! Work runs on threads of its own with the GIL released. The package waits in turns of 50 ms and calls back in
//! between, so that no Python function runs on top of one of this module. While the interpreter ends, a thread that
//! waits for the GIL never gets it and ends where it is: none may be in this module then (`running.rs`). Reports and
//! errors cross as JSON.

mod files;
mod plain;
mod running;
mod sys;

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use calve_core::internal::Latency;
use calve_core::options::Background;
use calve_core::{
    CancelToken, Choice, CloneOptions, CloneVerification, Durability, Error, ExistingDestination, Mounts, Progress,
    RemovalWait, RemoveOptions,
};
use calve_receipt::{ErrorReceipt, ProbeReceipt, json};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyImportError, PyValueError};
use pyo3::prelude::*;

use crate::running::{InsideGuard, Operation};

create_exception!(_native, Failed, PyException, "An error as JSON, which the package makes a CalveError of.");

/// A switch that ends work, and how far it is.
#[pyclass(frozen)]
#[derive(Default)]
struct Handle {
    cancel: CancelToken,
    progress: Arc<Progress>,
}

#[pymethods]
impl Handle {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn cancel(&self) {
        self.cancel.cancel();
    }

    fn cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }
}

fn failed(error: &Error) -> PyErr {
    Failed::new_err(json(&ErrorReceipt::from(error)))
}

fn path(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(bytes).into()
}

/// Interval at which the calling thread looks up.
const PAUSE: Duration = Duration::from_millis(50);

/// Set once the work has ended.
#[derive(Default)]
struct EndSignal(Mutex<bool>, Condvar);

impl EndSignal {
    fn within(&self, pause: Duration) -> bool {
        let ended = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.1.wait_timeout_while(ended, pause, |ended| !*ended);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

struct EndTeller<'a>(&'a EndSignal);

impl Drop for EndTeller<'_> {
    fn drop(&mut self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_one();
    }
}

fn no_thread(source: std::io::Error) -> PyErr {
    failed(&Error::Io { operation: calve_core::error::Operation::StartThread, path: ".".into(), source })
}

fn builder() -> std::thread::Builder {
    std::thread::Builder::new().name("calve".into())
}

/// Work that has been started. What it answers is JSON.
#[pyclass(frozen)]
struct Work {
    progress: Arc<Progress>,
    ended: Arc<EndSignal>,
    thread: Mutex<Option<JoinHandle<Result<String, Error>>>>,
}

impl Work {
    fn start(handle: &Handle, work: impl FnOnce() -> Result<String, Error> + Send + 'static) -> PyResult<Self> {
        let (cancel, ended) = (handle.cancel.clone(), Arc::<EndSignal>::default());
        let operation = Operation::begin(cancel.clone());
        let telling = Arc::clone(&ended);
        let running = move || {
            let _telling = EndTeller(&telling);
            let _operation = operation;
            if cancel.is_cancelled() { Err(Error::Interrupted) } else { work() }
        };
        let thread = Mutex::new(Some(builder().spawn(running).map_err(no_thread)?));
        Ok(Self { progress: Arc::clone(&handle.progress), ended, thread })
    }
}

#[pymethods]
impl Work {
    /// Waits for a moment. Whether it has ended.
    fn wait(&self, py: Python<'_>) -> bool {
        match InsideGuard::enter() {
            Some(_inside) => py.detach(|| self.ended.within(PAUSE)),
            None => self.ended.within(Duration::ZERO),
        }
    }

    /// Returns the entries and bytes done so far.
    fn progress(&self) -> (u64, u64) {
        (self.progress.entries(), self.progress.bytes())
    }

    /// Returns what came of it, once, when it has ended.
    fn result(&self) -> PyResult<String> {
        let _inside = InsideGuard::enter();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread.filter(|_| self.ended.within(Duration::ZERO)) else {
            return Err(failed(&Error::Interrupted));
        };
        thread.join().unwrap_or_else(|panic| resume_unwind(panic)).map_err(|error| failed(&error))
    }
}

fn wrong(text: String) -> PyErr {
    PyValueError::new_err(text)
}

/// Begins to clone a tree or a file: `[receipt, whether there is trash to delete beside the destination, whether a spare is to be built]`, as
/// JSON.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "called by the package alone")]
fn clone_tree(
    src: Vec<u8>,
    dst: Vec<u8>,
    strategy: Option<String>,
    require: Vec<String>,
    exclude: Vec<String>,
    switches: [bool; 5],
    threads: Option<usize>,
    home: Vec<u8>,
    handle: &Handle,
) -> PyResult<Work> {
    let [replace, one_file_system, sync, verify, only_file] = switches;
    let (src, dst) = (path(src), path(dst));
    let mut options = CloneOptions::default();
    if let Some(name) = strategy {
        options.strategy = Choice::Only(name.parse().map_err(wrong)?);
    }
    options.require = require.iter().map(|name| name.parse().map_err(wrong)).collect::<PyResult<_>>()?;
    options.exclude = exclude;
    options.existing = if replace { ExistingDestination::Replace } else { ExistingDestination::Refuse };
    options.mounts = if one_file_system { Mounts::Stay } else { Mounts::Cross };
    options.durability = if sync { Durability::Synced } else { Durability::Cached };
    // Event loops run in the same process.
    options.internal.latency = Latency::Low;
    options.verify = if verify { CloneVerification::Contents } else { CloneVerification::No };
    options.threads = threads.and_then(NonZeroUsize::new);
    options.protect = vec![path(home)];
    options.progress = Arc::clone(&handle.progress);
    options.cancel = handle.cancel.clone();
    // Read on the calling thread: another one may not read the environment while Python changes it.
    let kept = calve_core::internal::home_directory(|name| std::env::var_os(name), std::env::home_dir());
    options.spares = kept.as_deref().ok().map(calve_core::options::SpareUse::in_home);
    Work::start(handle, move || {
        let mut report = calve_core::internal::with_source(
            &src,
            &options,
            || kept,
            |src, options| {
                if only_file && src.symlink_metadata().is_ok_and(|data| data.is_dir()) {
                    let source = std::io::ErrorKind::IsADirectory.into();
                    return Err(Error::Io {
                        operation: calve_core::error::Operation::CloneFile,
                        path: src.to_path_buf(),
                        source,
                    });
                }
                calve_core::clone_tree(src, &dst, options)
            },
        )?;
        report.src.clone_from(&src);
        let (trash_waits, spares_wanted) = (report.trash_waits, report.spares_wanted);
        Ok(format!("[{},{trash_waits},{spares_wanted}]", json(&report)))
    })
}

/// Begins to remove a tree or a file: `[receipt, whether there is trash to delete beside it]`, as JSON.
#[pyfunction]
fn remove_tree(what: Vec<u8>, wait: bool, home: Vec<u8>, handle: &Handle) -> PyResult<Work> {
    let what = path(what);
    let mut options = RemoveOptions::default();
    options.wait = if wait { RemovalWait::Yes } else { RemovalWait::No };
    options.protect = vec![path(home)];
    options.progress = Arc::clone(&handle.progress);
    options.cancel = handle.cancel.clone();
    Work::start(handle, move || {
        let report = calve_core::remove_tree(&what, &options)?;
        Ok(format!("[{},{}]", json(&report), report.trashed.is_some()))
    })
}

/// Begins to find out what a pair of places can do: `[receipt, false]`, as JSON.
#[pyfunction]
fn probe(src: Vec<u8>, dst: Vec<u8>, handle: &Handle) -> PyResult<Work> {
    let (src, dst) = (path(src), path(dst));
    Work::start(handle, move || {
        let report = calve_core::probe(&src, &dst)?;
        Ok(format!("[{},false]", json(&ProbeReceipt::new(report, calve_core::error::Remedy::to_string))))
    })
}

/// Deletes the trash of a directory on a thread of this process, where there is no program to do it. What is left when the process ends
/// is for whoever comes next.
#[pyfunction]
fn reap(directory: Vec<u8>) -> PyResult<()> {
    let directory = path(directory);
    let handle = Handle::default();
    let cancel = handle.cancel.clone();
    Work::start(&handle, move || reap_in(&directory, &cancel).map(|()| String::new())).map(|_| ())
}

fn reap_in(directory: &Path, cancel: &CancelToken) -> Result<(), Error> {
    let failed = |source| Error::Io {
        operation: calve_core::error::Operation::OpenDirectory,
        path: directory.to_path_buf(),
        source,
    };
    let open = fs_err::File::open(directory).map_err(failed)?.into_file();
    calve_core::reap(open.into(), directory, Background::No, cancel).map(|_| ())
}

/// Ends everything that runs, for when the interpreter exits: threads that it does not wait for would leave something half made.
#[pyfunction]
fn end_all(py: Python<'_>) {
    py.detach(running::end_all);
}

// Not tested without the GIL: the package refuses to be imported there.
#[pymodule(gil_used = true)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // From Python 3.12 on the interpreter itself refuses.
    if !sys::is_main_interpreter(module.py()) {
        return Err(PyImportError::new_err("calve._native does not work in a subinterpreter"));
    }
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Failed", module.py().get_type::<Failed>())?;
    module.add_class::<Handle>()?;
    module.add_class::<Work>()?;
    files::add(module)?;
    plain::add(module)?;
    module.add_function(wrap_pyfunction!(clone_tree, module)?)?;
    module.add_function(wrap_pyfunction!(remove_tree, module)?)?;
    module.add_function(wrap_pyfunction!(probe, module)?)?;
    module.add_function(wrap_pyfunction!(reap, module)?)?;
    module.add_function(wrap_pyfunction!(end_all, module)?)
}
