//! The last image of each repository sent or received here: the base for new tags, as those of commits or lockfiles.

use calve_core::template::Templates;

use crate::error::Error;
use crate::reference::{Reference, is_digest};

pub(crate) fn digest(templates: &Templates, reference: &Reference) -> Option<String> {
    let digest = String::from_utf8(templates.images().ok()?.read(&name(reference)).ok()??).ok()?;
    Some(digest.trim_end().to_owned()).filter(|digest| is_digest(digest))
}

/// Replaces the digest. Readers see the old one or the new one.
pub(crate) fn note(templates: &Templates, reference: &Reference, digest: &str) -> Result<(), Error> {
    Ok(templates.images()?.write(&name(reference), format!("{digest}\n").as_bytes())?)
}

fn name(reference: &Reference) -> String {
    blake3::hash(reference.repository_name().as_bytes()).to_hex().to_string()
}
