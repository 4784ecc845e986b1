//! A request to launch a server.

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

pub(crate) struct LaunchRequest<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) origin: &'a Origin,
    /// The directory for the data and temporary files.
    pub(crate) files: &'a Path,
    pub(crate) directory: &'a Path,
    /// `None` for a first start.
    pub(crate) reset: Option<&'a ResetData>,
    /// The clone is made ahead of time, at low priority.
    pub(crate) is_speculative: bool,
    pub(crate) engine: &'static dyn Engine,
    pub(crate) address: &'a Address,
    pub(crate) port: Option<&'a HeldPort>,
    pub(crate) starter: Option<BorrowedFd<'a>>,
    pub(crate) owners: Owners<'a>,
    pub(crate) cancel: &'a CancelToken,
}

impl<'a> LaunchRequest<'a> {
    /// Requests a server in its first directories, on the data of `spec`, without a port and a waiting caller.
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

    /// Waits until one of these is readable, or for `limit`. Returns whether the server is no longer wanted.
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

/// The data directory of a reset, whose template is undamaged and held.
pub(crate) enum ResetData {
    /// It is missing, or that of [`Origin::Present`].
    ToClone,
    /// The former one, with its changed entries put back.
    Reverted(LaunchReport, RevertReport),
}
