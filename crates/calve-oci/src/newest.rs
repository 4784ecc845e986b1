//! The last image of each repository sent or received here: the base for new tags, as those of commits or lockfiles.

use std::io::{self, Write as _};
use std::path::PathBuf;

use calve_core::template::Templates;

use crate::error::Error;
use crate::operation::Operation;
use crate::reference::{Reference, is_digest};

pub(crate) fn digest(templates: &Templates, reference: &Reference) -> Option<String> {
    let digest = fs_err::read_to_string(path(templates, reference).ok()?).ok()?;
    Some(digest.trim_end().to_owned()).filter(|digest| is_digest(digest))
}

/// Replaces the digest. Readers see the old one or the new one.
pub(crate) fn note(templates: &Templates, reference: &Reference, digest: &str) -> Result<(), Error> {
    let path = path(templates, reference)?;
    let failed = |error: io::Error| Error::io(Operation::Write, &path, error);
    let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(&path)).map_err(failed)?;
    writeln!(file, "{digest}").map_err(failed)?;
    file.persist(&path).map(drop).map_err(|error| failed(error.error))
}

fn path(templates: &Templates, reference: &Reference) -> Result<PathBuf, Error> {
    let name = blake3::hash(reference.repository_name().as_bytes()).to_hex();
    Ok(templates.images()?.join(name.as_str()))
}
