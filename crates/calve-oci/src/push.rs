use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use calve_core::error::TemplateError;
use calve_core::internal::{PortableEntry, PortableTemplate};
use calve_core::template::{HeldTemplate, Templates};

use crate::assemble::path_of;
use crate::error::Error;
use crate::image::{self, BASE, BYTES, DELTA, ENTRIES, FRAMES, KEY, MANIFEST, RANGE};
use crate::layer::{self, Layer};
use crate::predecessor::{self, Difference, Predecessor};
use crate::reference::{Reference, check_base};
use crate::registry::{Registry, RegistryOptions};
use crate::send::{self, PushReport, SentLayer};
use crate::spool::Spool;
use crate::work::each;
use crate::{frames, newest};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushedImage<'a> {
    /// An older image's layers with a delta if that is small enough, else a full image.
    DeltaOrFull {
        /// A tag in the same repository for the delta's base, used if the image of the push's tag is unsuitable.
        base: Option<&'a str>,
    },
    /// A full image: all layers are made here.
    Full,
}

/// Sends a template, without layers that the registry has. The image appears under its name once it is complete. Equal
/// templates on one base make one image. Returns also the key, which equal templates share on every machine.
///
/// # Errors
/// Fails with [`TemplateError::NotPortable`] for a template that would grant or deny access on another machine.
pub fn push(
    templates: &Templates,
    name: &str,
    reference: &Reference,
    image: PushedImage<'_>,
    options: &RegistryOptions,
) -> Result<(PushReport, String), Error> {
    reference.check_tag()?;
    if let PushedImage::DeltaOrFull { base: Some(base) } = image {
        check_base(base)?;
    }
    let held = templates.hold(name)?;
    let template = Arc::new(templates.portable(&held)?);
    let registry = Registry::open(reference, options)?;
    let predecessor = match image {
        PushedImage::DeltaOrFull { base } => predecessor::find(templates, &registry, &template, base)?,
        PushedImage::Full => None,
    };
    let push = Push { held: &held, template: &template, registry: &registry };
    let layers = match predecessor {
        Some(predecessor) => push.delta(predecessor)?,
        None => push.revision(&template, (&[], &[]), None)?,
    };
    let key = template.key();
    let annotations = BTreeMap::from([
        (KEY.to_owned(), key.clone()),
        (ENTRIES.to_owned(), template.entries.len().to_string()),
        (BYTES.to_owned(), template.bytes().to_string()),
    ]);
    let report = send::name_image(&registry, &layers, annotations)?;
    // Without the note, the next push to a new tag sends more, and its report says so.
    let _ = newest::note(templates, reference, &report.digest);
    Ok((report, key))
}

struct Push<'a> {
    held: &'a HeldTemplate,
    template: &'a PortableTemplate,
    registry: &'a Registry<'a>,
}

impl Push<'_> {
    /// Keeps the predecessor's layers, and adds those of the difference.
    fn delta(&self, Predecessor { mut layers, delta }: Predecessor) -> Result<Vec<SentLayer>, Error> {
        if let Some(Difference { delta, directories, whiteouts }) = delta {
            let directories: Vec<_> = directories.into_iter().map(|number| &self.template.entries[number]).collect();
            layers.extend(self.revision(&delta.changed, (&directories, &whiteouts), Some(delta.base))?);
        }
        Ok(layers)
    }

    /// Sends the layers of a template, or of a delta to `base`.
    fn revision(
        &self,
        entries: &PortableTemplate,
        for_others: (&[&PortableEntry], &[PathBuf]),
        base: Option<String>,
    ) -> Result<Vec<SentLayer>, Error> {
        let ranges = image::ranges(&entries.entries);
        let mut layers = each(&ranges, self.registry.options.threads, |range| self.layer(entries, range))?;
        let written = layer::write_manifest(&entries.text, for_others, self.spool());
        let failed = |error| Error::io("send the manifest", &self.held.manifest, error);
        let (Layer { blob, frames, diff_id }, at) = written.map_err(failed)?;
        let annotations = match base {
            None => [(MANIFEST.to_owned(), at), (FRAMES.to_owned(), frames::annotation(&frames))],
            Some(base) => [(DELTA.to_owned(), at), (BASE.to_owned(), base)],
        };
        layers.push(send::send(self.registry, (blob, diff_id), BTreeMap::from(annotations))?);
        Ok(layers)
    }

    /// Writes a layer, and sends it if the registry lacks it. Equal entries make equal bytes.
    fn layer(&self, entries: &PortableTemplate, range: &Range<usize>) -> Result<SentLayer, Error> {
        let at = (RANGE.to_owned(), format!("{}-{}", range.start, range.end));
        let changed = |entry: &PortableEntry| {
            let path = self.held.tree.join(path_of(&entry.path));
            calve_core::Error::from(TemplateError::Changed { name: self.held.name.clone(), path }).into()
        };
        let Layer { blob, frames, diff_id } = layer::write(entries, range, &self.held.tree, self.spool(), changed)?;
        let ends = (FRAMES.to_owned(), frames::annotation(&frames));
        let sent = send::send(self.registry, (blob, diff_id), BTreeMap::from([at, ends]))?;
        let (entries, bytes) = image::amount(entries.entries[range.clone()].iter());
        self.registry.options.progress.add(entries, bytes);
        Ok(sent)
    }

    /// Large layers go into a file beside the template, where only this user can enter.
    fn spool(&self) -> Spool {
        Spool::new(self.held.tree.parent())
    }
}
