//! The revisions of a template that an image consists of: a full one, and deltas, each against the one before.
//!
//! Each revision has layers with entries, and a last layer with its manifest. A delta is made of the same parts as a full image: the layers of the
//! image before it stay as they are, and other programs unpack one after the other.

use std::ops::Range;
use std::sync::Arc;

use calve_core::internal::PortableTemplate;

use crate::error::Error;
use crate::image::{BASE, DELTA, Descriptor, ImageManifest, MANIFEST, RANGE};
use crate::layer;
use crate::reference::Reference;

/// An image with more deltas is neither made nor read: each costs a pull two requests.
pub(crate) const DELTAS: usize = 8;

const INCOMPLETE: &str = "its layers lack entries, or have some twice";

/// A part of an image that has a manifest.
#[derive(Debug)]
pub(crate) struct Revision<'i> {
    /// The key of the manifest that a delta is against.
    pub(crate) base: Option<&'i str>,
    /// The layers that have entries, with their ranges.
    layers: Vec<(&'i Descriptor, Range<usize>)>,
    /// The layer that has the manifest, and where.
    pub(crate) manifest: (&'i Descriptor, Range<usize>),
}

/// Returns the revisions of an image, of which the first is full and the others are deltas.
pub(crate) fn revisions<'i>(reference: &Reference, image: &'i ImageManifest) -> Result<Vec<Revision<'i>>, Error> {
    let mut revisions: Vec<Revision<'i>> = Vec::new();
    let mut layers = Vec::new();
    for layer in &image.layers {
        layers.extend(layer.range(RANGE).map(|range| (layer, range)));
        let found = layer.range(if revisions.is_empty() { MANIFEST } else { DELTA });
        let Some(at) = found else { continue };
        let base = if revisions.is_empty() { None } else { layer.annotations.get(BASE).map(String::as_str) };
        if base.is_some() == revisions.is_empty() {
            return Err(reference.not_a_template("it has a delta that is against nothing"));
        }
        revisions.push(Revision { base, layers: std::mem::take(&mut layers), manifest: (layer, at) });
    }
    match revisions.len() {
        0 => Err(reference.not_a_template("it has no manifest")),
        length if length > DELTAS + 1 => Err(reference.not_a_template("it has too many deltas")),
        _ if !layers.is_empty() => Err(reference.not_a_template(INCOMPLETE)),
        _ => Ok(revisions),
    }
}

impl<'i> Revision<'i> {
    /// Returns the layers that have these entries, each once.
    pub(crate) fn layers(&self, reference: &Reference, entries: &PortableTemplate) -> Result<ListedLayers<'i>, Error> {
        let mut end = 0;
        for (layer, range) in &self.layers {
            if range.start != end || range.end > entries.entries.len() {
                return Err(reference.not_a_template(INCOMPLETE));
            }
            end = range.end;
            // Compression never doubles the size of a layer.
            if layer.size > layer::largest(entries, range, range).saturating_mul(2) {
                return Err(reference.not_a_template("a layer is too large"));
            }
        }
        match end == entries.entries.len() {
            true => Ok(self.layers.iter().map(|(layer, range)| (Some(*layer), range.clone())).collect()),
            false => Err(reference.not_a_template(INCOMPLETE)),
        }
    }
}

/// Layers, or none where it is not known which one has the entries, each with its range of entries.
type ListedLayers<'i> = Vec<(Option<&'i Descriptor>, Range<usize>)>;

/// The entries of a revision, and which of them are in the template.
pub(crate) struct Listing<'i> {
    pub(crate) layers: ListedLayers<'i>,
    /// The entries that the layers have.
    pub(crate) entries: Arc<PortableTemplate>,
    /// The number that each entry has in the template. `None` for one that a later revision has, or that is gone.
    pub(crate) targets: Vec<Option<usize>>,
}

/// Returns for lists of entries, of which later ones replace earlier ones, their numbers in the template.
pub(crate) fn targets(template: &PortableTemplate, lists: &[Arc<PortableTemplate>]) -> Vec<Vec<Option<usize>>> {
    let mut is_first = vec![true; template.entries.len()];
    let of_list = |list: &Arc<PortableTemplate>| {
        let mut all = template.entries.iter().enumerate().peekable();
        let mut target = |path: &[u8]| {
            let is_before = |own: &[u8]| own.split(|&byte| byte == b'/').lt(path.split(|&byte| byte == b'/'));
            while all.next_if(|(_, own)| is_before(&own.path)).is_some() {}
            let (number, _) = all.next_if(|(_, own)| own.path == path)?;
            std::mem::replace(&mut is_first[number], false).then_some(number)
        };
        list.entries.iter().map(|entry| target(&entry.path)).collect()
    };
    let mut targets: Vec<_> = lists.iter().rev().map(of_list).collect();
    targets.reverse();
    targets
}
