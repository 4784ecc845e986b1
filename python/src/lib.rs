//! What the PyPI package `calve` calls. Private to it: `calve/*.py` has the public functions.
//!
//! Work runs on a thread of its own with the GIL released. The calling thread looks every 50 ms for signals (Ctrl-C) and calls back.
//! Reports and errors cross as JSON.

// Calve writes and reads many files at once on Unix alone.
#[cfg(unix)]
mod files;
mod running;

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use calve_core::{
    Background, Cancel, Choice, CloneOptions, Durability, Error, Existing, Mounts, Progress, RemoveOptions, Verify,
    Wait,
};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;

use crate::running::Operation;

create_exception!(_native, Failed, PyException, "An error as JSON, which the package makes a CalveError of.");

/// A switch that ends work, and how far it is.
#[pyclass(frozen)]
#[derive(Default)]
struct Handle {
    cancel: Cancel,
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
    Failed::new_err(calve_receipt::error(error).to_string())
}

#[cfg(unix)]
fn path(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(bytes).into()
}

/// The package has checked that it is UTF-8.
#[cfg(windows)]
fn path(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// How often the calling thread looks up.
const PAUSE: Duration = Duration::from_millis(50);

/// Whether the work has ended.
#[derive(Default)]
struct Ended(Mutex<bool>, Condvar);

impl Ended {
    fn within(&self, pause: Duration) -> bool {
        let ended = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.1.wait_timeout_while(ended, pause, |ended| !*ended);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

struct Telling<'a>(&'a Ended);

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_one();
    }
}

/// Runs `work` on a thread of its own. What a signal handler or `on_progress` raises ends it, and is raised when it has ended.
fn watched<T: Send>(
    py: Python<'_>,
    handle: &Handle,
    on_progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    let ended = Ended::default();
    let operation = Operation::begin(handle.cancel.clone());
    std::thread::scope(|scope| {
        let running = || {
            // Also by a panic.
            let _telling = Telling(&ended);
            let _operation = operation;
            // What has been given up before it begins touches nothing.
            if handle.cancel.is_cancelled() { Err(Error::Interrupted) } else { work() }
        };
        let started = std::thread::Builder::new().name("calve".into()).spawn_scoped(scope, running);
        let thread = started.map_err(|source| {
            failed(&Error::Io { operation: "start a thread to work in", path: ".".into(), source })
        })?;
        let report = || -> PyResult<()> {
            py.check_signals()?;
            match on_progress {
                Some(call) => call.call1((handle.progress.entries(), handle.progress.bytes())).map(|_| ()),
                None => Ok(()),
            }
        };
        let mut raised = None;
        while !py.detach(|| ended.within(PAUSE)) {
            if raised.is_none() {
                raised = report().err();
                if raised.is_some() {
                    handle.cancel.cancel();
                }
            }
        }
        let result = py.detach(|| thread.join()).unwrap_or_else(|panic| resume_unwind(panic));
        match raised {
            Some(error) => Err(error),
            None => {
                let value = result.map_err(|error| failed(&error))?;
                report()?;
                Ok(value)
            }
        }
    })
}

fn wrong(text: String) -> PyErr {
    PyValueError::new_err(text)
}

/// Clones a tree or a file: `[receipt, whether there is trash to delete beside the destination]`, as JSON.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "called by the package alone")]
fn clone_tree(
    py: Python<'_>,
    src: Vec<u8>,
    dst: Vec<u8>,
    strategy: Option<String>,
    require: Vec<String>,
    exclude: Vec<String>,
    switches: [bool; 5],
    threads: Option<usize>,
    home: Vec<u8>,
    handle: &Handle,
    on_progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let [replace, one_file_system, sync, verify, only_file] = switches;
    let (src, dst) = (path(src), path(dst));
    let mut options = CloneOptions::default();
    if let Some(name) = strategy {
        options.strategy = Choice::Only(name.parse().map_err(wrong)?);
    }
    options.require = require.iter().map(|name| name.parse().map_err(wrong)).collect::<PyResult<_>>()?;
    options.exclude = exclude;
    options.existing = if replace { Existing::Replace } else { Existing::Refuse };
    options.mounts = if one_file_system { Mounts::Stay } else { Mounts::Cross };
    options.durability = if sync { Durability::Synced } else { Durability::Cached };
    options.verify = if verify { Verify::Contents } else { Verify::No };
    options.threads = threads.and_then(NonZeroUsize::new);
    options.protect = vec![path(home)];
    options.progress = Arc::clone(&handle.progress);
    options.cancel = handle.cancel.clone();
    let report = watched(py, handle, on_progress, || {
        if only_file && src.symlink_metadata().is_ok_and(|data| data.is_dir()) {
            let source = std::io::ErrorKind::IsADirectory.into();
            return Err(Error::Io { operation: "clone the file", path: src.clone(), source });
        }
        calve_core::clone_tree(&src, &dst, &options)
    })?;
    Ok(format!("[{},{}]", calve_receipt::clone(&report), report.trash_waits))
}

/// Removes a tree or a file: `[receipt, whether there is trash to delete beside it]`, as JSON.
#[pyfunction]
fn remove_tree(
    py: Python<'_>,
    what: Vec<u8>,
    wait: bool,
    home: Vec<u8>,
    handle: &Handle,
    on_progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let what = path(what);
    let mut options = RemoveOptions::default();
    options.wait = if wait { Wait::Yes } else { Wait::No };
    options.protect = vec![path(home)];
    options.progress = Arc::clone(&handle.progress);
    options.cancel = handle.cancel.clone();
    let report = watched(py, handle, on_progress, || calve_core::remove_tree(&what, &options))?;
    Ok(format!("[{},{}]", calve_receipt::remove(&report), report.trashed.is_some()))
}

/// What a pair of places can do, as JSON.
#[pyfunction]
fn probe(py: Python<'_>, src: Vec<u8>, dst: Vec<u8>) -> PyResult<String> {
    let (src, dst) = (path(src), path(dst));
    let report = watched(py, &Handle::default(), None, || calve_core::probe(&src, &dst))?;
    Ok(calve_receipt::probe(&report).to_string())
}

/// Deletes the trash of a directory, in a process that does nothing else.
#[pyfunction]
fn reap(py: Python<'_>, directory: Vec<u8>) -> PyResult<()> {
    let directory = path(directory);
    py.detach(|| reap_in(&directory)).map_err(|error| failed(&error))
}

#[cfg(unix)]
fn reap_in(directory: &Path) -> Result<(), Error> {
    let failed = |source| Error::Io { operation: "open directory", path: directory.to_path_buf(), source };
    let open = fs_err::File::open(directory).map_err(failed)?.into_file();
    calve_core::reap(open.into(), Path::new("."), Background::Yes, &Cancel::default()).map(|_| ())
}

#[cfg(windows)]
fn reap_in(directory: &Path) -> Result<(), Error> {
    calve_core::reap(directory, Background::Yes, &Cancel::default()).map(|_| ())
}

/// Ends everything that runs, for when the interpreter exits: threads that it does not wait for would leave something half made.
#[pyfunction]
fn end_all(py: Python<'_>) {
    py.detach(running::end_all);
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("Failed", module.py().get_type::<Failed>())?;
    module.add_class::<Handle>()?;
    #[cfg(unix)]
    files::add(module)?;
    module.add_function(wrap_pyfunction!(clone_tree, module)?)?;
    module.add_function(wrap_pyfunction!(remove_tree, module)?)?;
    module.add_function(wrap_pyfunction!(probe, module)?)?;
    module.add_function(wrap_pyfunction!(reap, module)?)?;
    module.add_function(wrap_pyfunction!(end_all, module)?)
}
