//! How a registry is to be reached.

use std::time::Duration;

use crate::credentials::CredentialFiles;

/// How a registry is to be reached.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ConnectionOptions {
    /// Where credentials may be.
    pub credentials: CredentialFiles,
    /// How long a connection may be silent before it counts as broken: a minute if not given.
    pub silence: Option<Duration>,
}
