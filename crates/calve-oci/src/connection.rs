//! Reaching a registry: the options, opening it, and the manifest that the policy lets in.

use std::time::Duration;

use calve_core::CancelToken;

use crate::credentials::CredentialFiles;
use crate::error::Error;
use crate::policy::PolicyFiles;
use crate::reference::Reference;
use crate::registry::Registry;
use crate::signature::SignedImage;
use crate::spool::digest;

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

impl ConnectionOptions {
    /// Opens the registry of an image.
    pub(crate) fn open<'r>(&self, reference: &'r Reference, cancel: &'r CancelToken) -> Result<Registry<'r>, Error> {
        Registry::open(reference, &self.credentials, self.silence, cancel)
    }

    /// Fetches the manifest of an image, if the user's policy lets that in. Returns also its digest.
    pub(crate) fn allowed_manifest(
        &self,
        registry: &Registry<'_>,
        reference: &Reference,
    ) -> Result<(Vec<u8>, String), Error> {
        let bytes = registry.manifest()?;
        let digest = digest(&bytes);
        if let Some(policy) = self.policy.of(reference)? {
            policy.check(&SignedImage { reference, registry, digest: &digest })?;
        }
        Ok((bytes, digest))
    }
}
