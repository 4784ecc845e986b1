//! How a registry is to be reached.

use std::time::Duration;

use crate::credentials::CredentialFiles;
use crate::policy::PolicyFiles;

/// How a registry is to be reached.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ConnectionOptions {
    /// Where credentials may be.
    pub credentials: CredentialFiles,
    /// Where the policy may be that says which images a pull lets in.
    pub policy: PolicyFiles,
    /// How long a connection may be silent before it counts as broken: a minute if not given.
    pub silence: Option<Duration>,
}
