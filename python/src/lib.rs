//! What the PyPI package `calve` calls. Private to it: `calve/*.py` has the public functions.
//!
//! Work runs on a thread of its own with the GIL released. The calling thread looks every 50 ms for signals (Ctrl-C) and calls back.
//! Reports and errors cross as JSON.

mod running;

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStringExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use calve_core::{
    Background, Cancel, Choice, CloneOptions, Directory, Durability, Error, Existing, ExistingFile, Flush, Mounts,
    OnError, Placing, Progress, ReadOptions, RemoveOptions, Verify, Wait, WriteEntry, WriteOptions, Writer,
};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

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

fn path(bytes: Vec<u8>) -> PathBuf {
    OsString::from_vec(bytes).into()
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
            work()
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
            let source = std::io::Error::from_raw_os_error(IS_A_DIRECTORY);
            return Err(Error::Io { operation: "clone the file", path: src.clone(), source });
        }
        calve_core::clone_tree(&src, &dst, &options)
    })?;
    Ok(format!("[{},{}]", calve_receipt::clone(&report), report.trash_waits))
}

/// EISDIR, the same number on every Unix.
const IS_A_DIRECTORY: i32 = 21;

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
    py.detach(|| {
        let failed = |source| Error::Io { operation: "open directory", path: directory.clone(), source };
        let open = fs_err::File::open(&directory).map_err(failed)?.into_file();
        calve_core::reap(open.into(), Path::new("."), Background::Yes, &Cancel::default())
    })
    .map(|_| ())
    .map_err(|error| failed(&error))
}

/// Ends everything that runs, for when the interpreter exits: threads that it does not wait for would leave something half made.
#[pyfunction]
fn end_all(py: Python<'_>) {
    py.detach(running::end_all);
}

/// Files being written below one directory.
#[pyclass]
struct WriteSession {
    writer: Option<Writer>,
    handle: Py<Handle>,
}

#[pymethods]
impl WriteSession {
    #[new]
    #[allow(clippy::too_many_arguments, reason = "called by the package alone")]
    fn new(
        root: Vec<u8>,
        threads: Option<usize>,
        mode: u32,
        switches: [bool; 4],
        fsync: &str,
        handle: Py<Handle>,
    ) -> PyResult<Self> {
        let [exclusive, mkdir, atomic, collect] = switches;
        let mut options = WriteOptions::default();
        options.threads = threads.and_then(NonZeroUsize::new);
        options.mode = mode;
        options.existing = if exclusive { ExistingFile::Refuse } else { ExistingFile::Overwrite };
        options.directory = if mkdir { Directory::Make } else { Directory::MustExist };
        options.placing = if atomic { Placing::Rename } else { Placing::InPlace };
        options.on_error = if collect { OnError::Collect } else { OnError::Stop };
        options.flush = match fsync {
            "none" => Flush::Never,
            "end" => Flush::AtEnd,
            "each" => Flush::EachFile,
            other => return Err(wrong(other.into())),
        };
        options.progress = Arc::clone(&handle.get().progress);
        options.cancel = handle.get().cancel.clone();
        let writer = Writer::open(&path(root), options).map_err(|error| failed(&error))?;
        Ok(Self { writer: Some(writer), handle })
    }

    /// Writes a batch.
    fn write(&mut self, py: Python<'_>, paths: Vec<Vec<u8>>, contents: Vec<Py<PyBytes>>) -> PyResult<()> {
        let contents: Vec<&[u8]> = contents.iter().map(|one| one.as_bytes(py)).collect();
        let paths: Vec<PathBuf> = paths.into_iter().map(path).collect();
        let pairs = paths.iter().zip(&contents);
        let entries: Vec<_> = pairs.map(|(path, contents)| WriteEntry { path, contents }).collect();
        let Some(writer) = self.writer.as_mut() else { return Err(failed(&Error::Interrupted)) };
        watched(py, self.handle.get(), None, || writer.write(&entries))
    }

    /// Ends it, with the report as JSON.
    fn finish(&mut self, py: Python<'_>) -> PyResult<String> {
        let Some(writer) = self.writer.take() else { return Err(failed(&Error::Interrupted)) };
        let report = watched(py, self.handle.get(), None, || writer.finish())?;
        Ok(calve_receipt::write(&report).to_string())
    }

    /// Gives up: closes the root.
    fn close(&mut self) {
        self.writer = None;
    }
}

/// Contents, or an error as JSON.
type Read = (Option<Py<PyBytes>>, Option<String>);

/// Reads files, for each path from the first on, until it is enough.
#[pyfunction]
fn read_files(py: Python<'_>, paths: Vec<Vec<u8>>, threads: Option<usize>, handle: &Handle) -> PyResult<Vec<Read>> {
    let paths: Vec<PathBuf> = paths.into_iter().map(path).collect();
    let mut options = ReadOptions::default();
    options.threads = threads.and_then(NonZeroUsize::new);
    options.enough_bytes = 16 << 20;
    options.cancel = handle.cancel.clone();
    let read = watched(py, handle, None, || calve_core::read_files(&paths, &options))?;
    let each = read.into_iter().map(|contents| match contents {
        Ok(contents) => (Some(PyBytes::new(py, &contents).unbind()), None),
        Err(error) => (None, Some(calve_receipt::error(&error).to_string())),
    });
    Ok(each.collect())
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("Failed", module.py().get_type::<Failed>())?;
    module.add_class::<Handle>()?;
    module.add_class::<WriteSession>()?;
    module.add_function(wrap_pyfunction!(clone_tree, module)?)?;
    module.add_function(wrap_pyfunction!(remove_tree, module)?)?;
    module.add_function(wrap_pyfunction!(probe, module)?)?;
    module.add_function(wrap_pyfunction!(reap, module)?)?;
    module.add_function(wrap_pyfunction!(end_all, module)?)?;
    module.add_function(wrap_pyfunction!(read_files, module)?)
}
