//! Reaching a registry: the options, and opening it.

use std::time::Duration;

use calve_core::CancelToken;

use crate::credentials::CredentialFiles;
use crate::error::Error;
use crate::reference::Reference;
use crate::registry::Registry;

#[derive(Debug, Clone, Default)]
pub struct ConnectionOptions {
    pub credentials: CredentialFiles,
    /// How long a connection may be silent before it counts as broken: a minute if not given.
    pub silence: Option<Duration>,
}

impl ConnectionOptions {
    pub(crate) fn open<'r>(&self, reference: &'r Reference, cancel: &'r CancelToken) -> Result<Registry<'r>, Error> {
        Registry::open(reference, &self.credentials, self.silence, cancel)
    }
}
