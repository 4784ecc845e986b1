//! Many small files: one call for each batch.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::Arc;

use calve_core::Error;
use calve_core::bulk::{
    Directory, ExistingFile, Flush, OnError, Placement, ReadOptions, WriteEntry, WriteOptions, Writer,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::running::{InsideGuard, Operation};
use crate::{EndSignal, EndTeller, Handle, PAUSE, builder, failed, no_thread, path, wrong};

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<WriteSession>()?;
    module.add_function(wrap_pyfunction!(read_files, module)?)
}

/// Runs `work` on a thread of its own, and waits for it. A signal handler's exception ends it, and is raised after
/// that: such handlers run on the main thread alone, which the interpreter does not end.
fn watched<T: Send>(
    py: Python<'_>,
    handle: &Handle,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<(T, InsideGuard)> {
    let Some(inside) = InsideGuard::enter() else { return Err(failed(&Error::Interrupted)) };
    let ended = EndSignal::default();
    let operation = Operation::begin(handle.cancel.clone());
    std::thread::scope(|scope| {
        let running = || {
            // Also after a panic.
            let _telling = EndTeller(&ended);
            let _operation = operation;
            // Work cancelled before it begins touches nothing.
            if handle.cancel.is_cancelled() { Err(Error::Interrupted) } else { work() }
        };
        let thread = builder().spawn_scoped(scope, running).map_err(no_thread)?;
        let mut raised = None;
        while !py.detach(|| ended.within(PAUSE)) {
            if raised.is_none() {
                raised = py.check_signals().err();
                if raised.is_some() {
                    handle.cancel.cancel();
                }
            }
        }
        let result = py.detach(|| thread.join()).unwrap_or_else(|panic| resume_unwind(panic));
        match raised {
            Some(error) => Err(error),
            None => Ok((result.map_err(|error| failed(&error))?, inside)),
        }
    })
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
        options.placement = if atomic { Placement::Rename } else { Placement::InPlace };
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
        watched(py, self.handle.get(), || writer.write(&entries)).map(|((), _)| ())
    }

    /// Ends it, with the report as JSON.
    fn finish(&mut self, py: Python<'_>) -> PyResult<String> {
        let Some(writer) = self.writer.take() else { return Err(failed(&Error::Interrupted)) };
        let (report, _inside) = watched(py, self.handle.get(), || writer.finish())?;
        Ok(calve_receipt::json(&calve_receipt::WriteReceipt::from(&report)))
    }

    /// Gives up: closes the root.
    fn close(&mut self) {
        self.writer = None;
    }
}

/// Contents, or an error as JSON.
type ReadOutcome = (Option<Py<PyBytes>>, Option<String>);

/// Reads files, for each path from the first on, until it is enough.
#[pyfunction]
fn read_files(
    py: Python<'_>,
    paths: Vec<Vec<u8>>,
    threads: Option<usize>,
    handle: &Handle,
) -> PyResult<Vec<ReadOutcome>> {
    let paths: Vec<PathBuf> = paths.into_iter().map(path).collect();
    let mut options = ReadOptions::default();
    options.threads = threads.and_then(NonZeroUsize::new);
    options.enough_bytes = 16 << 20;
    options.cancel = handle.cancel.clone();
    let (read, _inside) = watched(py, handle, || calve_core::bulk::read_files(&paths, &options))?;
    let each = read.into_iter().map(|contents| match contents {
        Ok(contents) => (Some(PyBytes::new(py, &contents).unbind()), None),
        Err(error) => (None, Some(calve_receipt::json(&calve_receipt::ErrorReceipt::from(&error)))),
    });
    Ok(each.collect())
}
