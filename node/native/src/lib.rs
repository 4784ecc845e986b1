//! What the npm package `calve` calls. Private to it: `src/*.ts` has the public functions, and checks what they are given.
//!
//! Work runs on threads of its own, never on the event loop nor on libuv's. Reports and errors cross as JSON, the contents of
//! files as buffers.

mod clone;
// Calve writes and reads many files at once on Unix alone.
#[cfg(unix)]
mod files;
mod running;

use std::path::PathBuf;
use std::sync::Arc;

use calve_core::{Cancel, Error, Progress};
use napi::Status;
use napi_derive::napi;

/// What another thread may do with work that runs: look how far it is, and end it.
#[napi]
#[derive(Default)]
pub struct Handle {
    cancel: Cancel,
    progress: Arc<Progress>,
}

#[napi]
impl Handle {
    /// For one operation.
    #[napi(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the operation.
    #[napi]
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Files, directories and others done so far.
    #[napi(getter)]
    pub fn entries(&self) -> f64 {
        self.progress.entries() as f64
    }

    /// Bytes of file contents done so far.
    #[napi(getter)]
    pub fn bytes(&self) -> f64 {
        self.progress.bytes() as f64
    }
}

#[cfg(unix)]
fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(bytes.to_vec()).into()
}

/// The package has checked that it is UTF-8.
#[cfg(windows)]
fn path(bytes: &[u8]) -> PathBuf {
    String::from_utf8_lossy(bytes).into_owned().into()
}

/// An error whose message is JSON, which the package makes a `CalveError` of.
fn failed(error: &Error) -> napi::Error {
    napi::Error::new(Status::GenericFailure, calve_receipt::error(error).to_string())
}

/// For what the package itself never passes.
fn invalid(what: impl std::fmt::Display) -> napi::Error {
    napi::Error::new(Status::InvalidArg, what.to_string())
}
