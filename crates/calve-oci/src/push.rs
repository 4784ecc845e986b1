//! Sending a template.

use std::collections::BTreeMap;
use std::ops::Range;

use calve_core::{HeldTemplate, PortableEntry, PortableTemplate, TemplateError, TemplateOptions, Templates};

use crate::assemble::path_of;
use crate::connection::ConnectionOptions;
use crate::error::Error;
use crate::frames;
use crate::image::{self, BYTES, ENTRIES, FRAMES, KEY, MANIFEST, RANGE};
use crate::layer::{self, Layer};
use crate::operation::Operation;
use crate::reference::Reference;
use crate::registry::Registry;
use crate::send::{self, PushReport, SentLayer};
use crate::spool::Spool;
use crate::work::each;

/// How a template is to be sent.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PushOptions {
    /// Threads, progress and the token that ends it early.
    pub template: TemplateOptions,
    /// How the registry is reached.
    pub connection: ConnectionOptions,
}

/// Sends a template to a registry, without what the registry has. The image appears under its name when all of it is there.
/// Returns also the key of what travels: equal templates have the same on every machine.
///
/// # Errors
/// Fails with [`TemplateError::NotPortable`] for a template that would change who may do what on another machine.
pub fn push(
    templates: &Templates,
    name: &str,
    reference: &Reference,
    options: &PushOptions,
) -> Result<(PushReport, String), Error> {
    reference.check_tag()?;
    let held = templates.hold(name)?;
    let template = templates.portable(&held)?;
    let registry = options.connection.open(reference, &options.template.cancel)?;
    let push = Push { held: &held, template: &template, registry, options };
    let ranges = image::ranges(&template.entries);
    let mut layers = each(&ranges, options.template.threads, |range| push.layer(range))?;
    layers.push(push.manifest_layer()?);
    push.image(&layers)
}

struct Push<'a> {
    held: &'a HeldTemplate,
    template: &'a PortableTemplate,
    registry: Registry<'a>,
    options: &'a PushOptions,
}

impl Push<'_> {
    /// Writes a layer, and sends it if the registry lacks it. Equal entries make equal bytes. An older image is not asked for their digest: whoever
    /// can push might have put another one there, which would be signed with this image.
    fn layer(&self, range: &Range<usize>) -> Result<SentLayer, Error> {
        let at = (RANGE.to_owned(), format!("{}-{}", range.start, range.end));
        let changed = |entry: &PortableEntry| {
            let path = self.held.tree.join(path_of(&entry.path));
            calve_core::Error::from(TemplateError::Changed { name: self.held.name.clone(), path }).into()
        };
        let layer = layer::write(self.template, range, &self.held.tree, self.spool(), changed)?;
        let ends = (FRAMES.to_owned(), frames::annotation(&layer.frames));
        let sent = self.send(layer, BTreeMap::from([at, ends]))?;
        self.count(range);
        Ok(sent)
    }

    fn manifest_layer(&self) -> Result<SentLayer, Error> {
        let written = layer::write_manifest(&self.template.text, self.spool());
        let (layer, at) = written.map_err(|error| Error::io(Operation::SendManifest, self.held.manifest(), error))?;
        let at = (MANIFEST.to_owned(), format!("{}-{}", at.start, at.end));
        let ends = (FRAMES.to_owned(), frames::annotation(&layer.frames));
        self.send(layer, BTreeMap::from([at, ends]))
    }

    fn send(
        &self,
        Layer { blob, diff_id, .. }: Layer,
        annotations: BTreeMap<String, String>,
    ) -> Result<SentLayer, Error> {
        send::send(&self.registry, (blob, diff_id), annotations)
    }

    /// Names the layers as one image.
    fn image(&self, layers: &[SentLayer]) -> Result<(PushReport, String), Error> {
        let key = self.template.key();
        let annotations = BTreeMap::from([
            (KEY.to_owned(), key.clone()),
            (ENTRIES.to_owned(), self.template.entries.len().to_string()),
            (BYTES.to_owned(), self.template.bytes().to_string()),
        ]);
        Ok((send::name_image(&self.registry, layers, annotations)?, key))
    }

    /// Returns a spool for large layers. They go into a file beside the template, where only this user can enter.
    fn spool(&self) -> Spool {
        Spool::new(self.held.tree.parent())
    }

    fn count(&self, range: &Range<usize>) {
        let (entries, bytes) = image::amount(self.template, range);
        self.options.template.progress.add(entries, bytes);
    }
}
