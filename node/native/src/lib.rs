//! The native half of the npm package `calve`. Private to it: `src/*.ts` has the public API, and checks arguments.
//!
//! Work runs on threads of its own, never on the event loop nor on libuv's. Reports and errors cross as JSON, the
//! contents of files as buffers. Errors are returned, not thrown.

mod background;
mod clone;
mod copy;
mod files;
mod running;
mod stop;

use std::path::PathBuf;
use std::sync::Arc;

use calve_core::{Error, Progress};
use napi::Status;
use napi::bindgen_prelude::Either;
use napi_derive::napi;

use crate::stop::StopSwitch;

/// What another thread may do with work that runs: look how far it is, and end it.
#[napi]
#[derive(Default)]
pub struct Handle {
    stop: StopSwitch,
    progress: Arc<Progress>,
}

#[napi]
impl Handle {
    /// Makes a handle for one operation.
    #[napi(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the operation.
    #[napi]
    pub fn cancel(&self) {
        self.stop.cancel();
    }

    /// Answers the last look: the clone may get its name.
    #[napi]
    pub fn go_on(&self) {
        self.stop.go_on();
    }

    /// Returns how many files, directories and others are done so far.
    #[napi(getter)]
    pub fn entries(&self) -> f64 {
        self.progress.entries() as f64
    }

    /// Returns how many bytes of file contents are done so far.
    #[napi(getter)]
    pub fn bytes(&self) -> f64 {
        self.progress.bytes() as f64
    }
}

/// Why something failed: plain data, of which the package makes an error of the realm that it runs in. An error object made here would
/// be of the main realm, which code in another one (Jest's, say) does not know as an error.
#[napi(object)]
pub struct Failure {
    /// JSON.
    pub failure: String,
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self { failure: calve_receipt::json(&calve_receipt::ErrorReceipt::from(error)) }
    }
}

type Outcome<T> = Either<T, Failure>;

fn outcome<T>(result: Result<T, Error>) -> Outcome<T> {
    match result {
        Ok(value) => Either::A(value),
        Err(error) => Either::B(Failure::from(&error)),
    }
}

fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(bytes.to_vec()).into()
}

/// Reports an argument that the package itself never passes.
fn invalid(what: impl std::fmt::Display) -> napi::Error {
    napi::Error::new(Status::InvalidArg, what.to_string())
}
