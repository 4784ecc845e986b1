//! The image of each repository last sent or received here, to which a push to a new tag adds: tags made of commits or lockfiles always are.

use std::io::{self, Write as _};
use std::path::PathBuf;

use calve_core::template::Templates;

use crate::error::Error;
use crate::operation::Operation;
use crate::reference::{Reference, is_digest};

pub(crate) struct NewestImage(PathBuf);

impl NewestImage {
    pub(crate) fn new(templates: &Templates, reference: &Reference) -> Result<Self, Error> {
        let name = blake3::hash(reference.repository_name().as_bytes()).to_hex();
        Ok(Self(templates.images()?.join(name.as_str())))
    }

    /// Returns the digest of its manifest, if it is known.
    pub(crate) fn digest(&self) -> Option<String> {
        let digest = fs_err::read_to_string(&self.0).ok()?;
        Some(digest.trim_end().to_owned()).filter(|digest| is_digest(digest))
    }

    /// Notes another digest. Readers see the old one or the new one.
    pub(crate) fn note(&self, digest: &str) -> Result<(), Error> {
        let failed = |error: io::Error| Error::io(Operation::Write, &self.0, error);
        let directory = self.0.parent().unwrap_or(&self.0);
        let mut file = tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
        writeln!(file, "{digest}").map_err(failed)?;
        file.persist(&self.0).map(drop).map_err(|error| failed(error.error))
    }
}
