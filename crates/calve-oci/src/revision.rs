//! The revisions of a template in an image: a full one, then deltas, each against the one before.
//!
//! A revision has layers with entries, and a last layer with its manifest. A delta keeps the earlier layers as they
//! are, and other programs unpack one after the other.

use std::ops::Range;
use std::sync::Arc;

use calve_core::internal::PortableTemplate;

use crate::error::Error;
use crate::image::{BASE, DELTA, Descriptor, ImageManifest, MANIFEST, RANGE};
use crate::layer;
use crate::reference::Reference;

/// An image with more deltas is neither made nor read: each costs a pull two requests.
pub(crate) const DELTAS: usize = 8;

const INCOMPLETE: &str = "its layers lack or repeat entries";

#[derive(Debug)]
pub(crate) struct Revision<'i> {
    /// Key of the manifest that a delta builds on.
    pub(crate) base: Option<&'i str>,
    /// With their ranges of entries.
    layers: Vec<(&'i Descriptor, Range<usize>)>,
    /// The layer with the manifest, and its place there.
    pub(crate) manifest: (&'i Descriptor, Range<usize>),
}

pub(crate) fn revisions<'i>(reference: &Reference, image: &'i ImageManifest) -> Result<Vec<Revision<'i>>, Error> {
    let mut revisions: Vec<Revision<'i>> = Vec::new();
    let mut layers = Vec::new();
    for layer in &image.layers {
        layers.extend(layer.range(RANGE).map(|range| (layer, range)));
        let found = layer.range(if revisions.is_empty() { MANIFEST } else { DELTA });
        let Some(at) = found else { continue };
        let base = if revisions.is_empty() { None } else { layer.annotations.get(BASE).map(String::as_str) };
        if base.is_some() == revisions.is_empty() {
            return Err(reference.not_a_template("it has a delta without a base"));
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
    /// Returns the layers, if they have each of these entries once.
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

/// Ranges of entries, each with its layer if that is known.
type ListedLayers<'i> = Vec<(Option<&'i Descriptor>, Range<usize>)>;

pub(crate) struct Listing<'i> {
    pub(crate) layers: ListedLayers<'i>,
    pub(crate) entries: Arc<PortableTemplate>,
    /// The number of each entry in the template. `None` if a later revision has it, or if it is gone.
    pub(crate) targets: Vec<Option<usize>>,
}

/// Returns the targets of each list. Later lists replace the entries of earlier ones.
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
