//! The wish for a server.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use calve_core::CancelToken;
use calve_core::internal::RevertReport;

use super::port::HeldPort;
use crate::engine::Engine;
use crate::engine::address::Address;
use crate::registry::LaunchReport;
use crate::server::messages::{Origin, Spec};
use crate::sys;

pub(super) const DATA: &str = "data";

pub(crate) struct LaunchRequest<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) origin: &'a Origin,
    /// The directory for the data and temporary files.
    pub(crate) files: &'a Path,
    pub(crate) directory: &'a Path,
    /// The knowledge of a reset. `None` for a first start.
    pub(crate) reset: Option<&'a ResetData>,
    /// Whether the clone is made ahead of time, when nothing else is to be done.
    pub(crate) is_speculative: bool,
    pub(crate) engine: &'static dyn Engine,
    pub(crate) address: &'a Address,
    pub(crate) port: Option<&'a HeldPort>,
    pub(crate) starter: Option<BorrowedFd<'a>>,
    pub(crate) owners: Owners<'a>,
    pub(crate) cancel: &'a CancelToken,
}

impl<'a> LaunchRequest<'a> {
    /// Returns the request for a server in its first directories, on the data that `spec` names, without a port and a waiting caller.
    pub(crate) fn new(
        spec: &'a Spec,
        engine: &'static dyn Engine,
        address: &'a Address,
        cancel: &'a CancelToken,
    ) -> Self {
        Self {
            spec,
            origin: &spec.origin,
            files: spec.files(),
            directory: &spec.record.directory,
            reset: None,
            is_speculative: false,
            engine,
            address,
            port: None,
            starter: None,
            owners: (None, Vec::new()),
            cancel,
        }
    }

    /// Waits until one of these is readable, at most as long as `limit`. Returns whether the server is not wanted any more.
    pub(super) fn is_left_within<'f>(
        &'f self,
        limit: Duration,
        others: impl IntoIterator<Item = BorrowedFd<'f>>,
    ) -> bool {
        let ready = sys::wait_for_any(self.starter.into_iter().chain(others), limit);
        self.cancel.is_cancelled() || (self.starter.is_some() && ready[0])
    }
}

/// Descriptors whose closing ends the server: of a socket, and of processes.
pub(crate) type Owners<'a> = (Option<BorrowedFd<'a>>, Vec<BorrowedFd<'a>>);

/// The data directory of a reset. Its template was found to be undamaged, and is held.
pub(crate) enum ResetData {
    /// None is there, or that of [`Origin::Present`].
    ToClone,
    /// The one from before is there, and the entries that had changed were put back.
    Reverted(LaunchReport, RevertReport),
}
