//! Many small files: one call for each batch.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use calve_core::Error;
use calve_core::bulk::{
    Directory, ExistingFile, Flush, OnError, Placement, ReadOptions, WriteEntry, WriteOptions, WriteReport, Writer,
    read_files,
};
use napi::bindgen_prelude::{Buffer, BufferSlice, Either, Env, Object, Uint32Array};
use napi_derive::napi;

use crate::clone::threads;
use crate::running::start;
use crate::stop::StopSwitch;
use crate::{Failure, Handle, Outcome, invalid, outcome, path};

/// As `writeFiles` was asked for.
#[napi(object)]
pub struct WriteRequest {
    /// Worker threads.
    pub concurrency: Option<u32>,
    /// Permission bits.
    pub mode: u32,
    /// Existing files are an error.
    pub exclusive: bool,
    /// Make directories.
    pub mkdir: bool,
    /// "none", "end" or "each".
    pub fsync: String,
    /// Write beside and rename.
    pub atomic: bool,
    /// Go on after errors.
    pub collect: bool,
}

fn options(request: &WriteRequest, handle: &Handle) -> napi::Result<WriteOptions> {
    let mut options = WriteOptions::default();
    options.threads = threads(request.concurrency);
    options.mode = request.mode;
    options.existing = if request.exclusive { ExistingFile::Refuse } else { ExistingFile::Overwrite };
    options.directory = if request.mkdir { Directory::Make } else { Directory::MustExist };
    options.flush = match request.fsync.as_str() {
        "none" => Flush::Never,
        "end" => Flush::AtEnd,
        "each" => Flush::EachFile,
        other => return Err(invalid(other)),
    };
    options.placement = if request.atomic { Placement::Rename } else { Placement::InPlace };
    options.on_error = if request.collect { OnError::Collect } else { OnError::Stop };
    options.progress = Arc::clone(&handle.progress);
    options.cancel = handle.stop.token();
    Ok(options)
}

/// Length of an entry whose contents are the next of the separate buffers.
const ALONE: u32 = u32::MAX;

/// Returns the entries of a batch. `lengths` has pairs: the length of a path, and that of its contents.
fn entries<'a>(
    paths: &'a [u8],
    lengths: &[u32],
    contents: &'a [u8],
    alone: impl IntoIterator<Item = &'a [u8]>,
) -> napi::Result<Vec<WriteEntry<'a>>> {
    let (mut paths, mut contents, mut alone) = (paths, contents, alone.into_iter());
    let wrong = || invalid("the lengths do not fit the buffers");
    let mut entries = Vec::with_capacity(lengths.len() / 2);
    for pair in lengths.chunks_exact(2) {
        let &[path_bytes, bytes] = pair else { return Err(wrong()) };
        let (path, rest) = paths.split_at_checked(path_bytes as usize).ok_or_else(wrong)?;
        paths = rest;
        let contents = if bytes == ALONE {
            alone.next().ok_or_else(wrong)?
        } else {
            let (own, rest) = contents.split_at_checked(bytes as usize).ok_or_else(wrong)?;
            contents = rest;
            own
        };
        entries.push(WriteEntry { path: Path::new(OsStr::from_bytes(path)), contents });
    }
    Ok(entries)
}

/// Files being written below one directory.
#[napi]
pub struct WriteSession {
    writer: Arc<Mutex<Option<Writer>>>,
    stop: StopSwitch,
}

fn lock(writer: &Mutex<Option<Writer>>) -> MutexGuard<'_, Option<Writer>> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ended() -> Error {
    Error::Interrupted
}

/// Opens the root.
#[napi]
pub fn open_session(root: BufferSlice, request: WriteRequest, handle: &Handle) -> napi::Result<Outcome<WriteSession>> {
    let opened = Writer::open(&path(&root), options(&request, handle)?);
    let stop = handle.stop.clone();
    Ok(outcome(opened.map(|writer| WriteSession { writer: Arc::new(Mutex::new(Some(writer))), stop })))
}

#[napi]
impl WriteSession {
    /// Writes a batch. The buffers are the package's own, which nobody else can change, transfer or shrink until the promise is
    /// settled: Node has nothing that keeps the memory of a buffer whose owner gives it away.
    #[napi(ts_return_type = "Promise<void | Failure>")]
    pub fn write<'env>(
        &self,
        env: &'env Env,
        paths: Buffer,
        lengths: Uint32Array,
        contents: Buffer,
        alone: Vec<Buffer>,
    ) -> napi::Result<Object<'env>> {
        let writer = Arc::clone(&self.writer);
        let lengths = lengths.to_vec();
        entries(&paths, &lengths, &contents, alone.iter().map(|one| &**one))?;
        start(env, self.stop.clone(), move || {
            let entries = entries(&paths, &lengths, &contents, alone.iter().map(|one| &**one)).map_err(|_| ended())?;
            lock(&writer).as_mut().ok_or_else(ended)?.write(&entries)
        })
    }

    /// Writes a batch as [`Self::write`] does, and waits for it. Nothing else runs meanwhile, so that the buffers may be anybody's.
    #[napi]
    pub fn write_sync(
        &self,
        paths: BufferSlice,
        lengths: &[u32],
        contents: BufferSlice,
        alone: Vec<BufferSlice>,
    ) -> napi::Result<Option<Failure>> {
        let entries = entries(&paths, lengths, &contents, alone.iter().map(|one| &**one))?;
        let mut writer = lock(&self.writer);
        let written = writer.as_mut().ok_or_else(ended).and_then(|writer| writer.write(&entries));
        Ok(written.err().as_ref().map(Failure::from))
    }

    /// Ends it, with the report as JSON.
    #[napi(ts_return_type = "Promise<string | Failure>")]
    pub fn finish<'env>(&self, env: &'env Env) -> napi::Result<Object<'env>> {
        let writer = Arc::clone(&self.writer);
        start(env, self.stop.clone(), move || Ok(document(&finish(&writer)?)))
    }

    /// Ends it as [`Self::finish`] does, and waits for it.
    #[napi]
    pub fn finish_sync(&self) -> Outcome<String> {
        outcome(finish(&self.writer).map(|report| document(&report)))
    }

    /// Gives up: closes the root.
    #[napi]
    pub fn close(&self) {
        lock(&self.writer).take();
    }
}

fn finish(writer: &Mutex<Option<Writer>>) -> Result<WriteReport, Error> {
    lock(writer).take().ok_or_else(ended)?.finish()
}

fn document(report: &WriteReport) -> String {
    calve_receipt::json(&calve_receipt::WriteReceipt::from(report))
}

/// Reads files: a buffer, or an error as JSON, for each path from the first on, until it is enough.
#[napi(ts_return_type = "Promise<Array<Buffer | string> | Failure>")]
pub fn start_read<'env>(
    env: &'env Env,
    paths: Vec<BufferSlice>,
    concurrency: Option<u32>,
    enough_bytes: Option<u32>,
    handle: &Handle,
) -> napi::Result<Object<'env>> {
    let paths: Vec<PathBuf> = paths.iter().map(|one| path(one)).collect();
    let mut options = ReadOptions::default();
    options.threads = threads(concurrency);
    options.cancel = handle.stop.token();
    if let Some(bytes) = enough_bytes {
        options.enough_bytes = bytes.into();
    }
    start(env, handle.stop.clone(), move || {
        let read = read_files(&paths, &options)?;
        let each = read.into_iter().map(|contents| match contents {
            Ok(contents) => Either::A(Buffer::from(contents)),
            Err(error) => Either::B(calve_receipt::json(&calve_receipt::ErrorReceipt::from(&error))),
        });
        Ok(each.collect::<Vec<_>>())
    })
}
