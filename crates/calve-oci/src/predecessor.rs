//! The image to which a push adds a delta: the tag's own, or an older one of the repository.
//!
//! Only the layers' digests in its manifest are trusted. A pull compares its tree with the manifest of the new image's
//! key, so the layers cannot change it. Programs that only unpack layers see whatever their maker put there.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use calve_core::internal::{PortableDelta, PortableKind, PortableTemplate, split_name};
use calve_core::template::Templates;

use crate::arrivals::Arrivals;
use crate::assemble::path_of;
use crate::error::{Error, RegistryRefusal};
use crate::image::{self, DELTA, Descriptor, ImageConfig, KEY, MANIFEST, RANGE, weight};
use crate::manifest::{self, DeltaAmounts, Image, LARGEST_DELTAS_BYTES};
use crate::newest;
use crate::reference::is_digest;
use crate::registry::Registry;
use crate::revision::{DELTAS, revisions};
use crate::send::SentLayer;
use crate::work::each;

/// Largest share of the deltas in the template, as a divisor: a first pull fetches them as well.
const LARGEST_PART: u64 = 5;
/// A larger manifest has no room for the annotations of one more delta.
const LARGEST_IMAGE_BYTES: usize = 3 << 20;
const LARGEST_CONFIG_BYTES: u64 = 1 << 20;
/// Docker unpacks no image with more than 125.
const MOST_LAYERS: usize = 100;
/// The prefix of a whiteout (OCI image specification, layer.md).
const WHITEOUT: &[u8] = b".wh.";
const LONGEST_NAME: usize = 255;

/// The layers of an image, which stay, and the difference to the template.
pub(crate) struct Predecessor {
    pub(crate) layers: Vec<SentLayer>,
    /// `None` for the same template.
    pub(crate) delta: Option<Difference>,
}

pub(crate) struct Difference {
    pub(crate) delta: PortableDelta,
    /// Numbers of the directories where something is new or gone. In mounted layers, a directory has the attributes
    /// from its uppermost layer, or those of a missing entry.
    pub(crate) directories: BTreeSet<usize>,
    pub(crate) whiteouts: Vec<PathBuf>,
}

/// Another image may be better.
const UNSUITABLE: ControlFlow<Option<Predecessor>> = ControlFlow::Continue(());

/// Finds an image worth a delta: the tag's, the one of `base`, or the newest known here. `None`: push a full one.
pub(crate) fn find(
    templates: &Templates,
    registry: &Registry<'_>,
    template: &Arc<PortableTemplate>,
    base: Option<&str>,
) -> Result<Option<Predecessor>, Error> {
    let arrivals = Arrivals::open(templates)?;
    let newest = newest::digest(templates, registry.reference);
    let versions = [Some(&*registry.reference.version), base, newest.as_deref()];
    let mut seen = BTreeSet::new();
    let found = versions.into_iter().flatten().find_map(|version| {
        match look(registry, version, &mut seen, &arrivals, template) {
            Ok(found) => found.break_value().map(Ok),
            // No image, one of something else, or a damaged one.
            Err(Error::Refused { refusal, .. }) if !matches!(refusal, RegistryRefusal::Busy(_)) => None,
            Err(Error::BadAnswer { .. } | Error::NotATemplate { .. }) => None,
            Err(error) => Some(Err(error)),
        }
    });
    arrivals.clear();
    found.unwrap_or(Ok(None))
}

/// Breaks with the result of [`find`].
fn look(
    registry: &Registry<'_>,
    version: &str,
    seen: &mut BTreeSet<String>,
    arrivals: &Arrivals,
    template: &Arc<PortableTemplate>,
) -> Result<ControlFlow<Option<Predecessor>>, Error> {
    let reference = registry.reference;
    let (bytes, digest) = registry.manifest(version)?;
    if !seen.insert(digest) || bytes.len() > LARGEST_IMAGE_BYTES {
        return Ok(UNSUITABLE);
    }
    let manifest = image::read_image(reference, &bytes)?;
    let is_same = manifest.annotations.get(KEY).is_some_and(|key| *key == template.key());
    if is_same && revisions(reference, &manifest)?.len() == 1 {
        // Pushing the full image of the same template again gives the same digest.
        return Ok(ControlFlow::Break(None));
    }
    // A layer that no version of this template needs was put there for other programs.
    let is_needed =
        |layer: &Descriptor| [RANGE, MANIFEST, DELTA].iter().any(|name| layer.annotations.contains_key(*name));
    if !manifest.layers.iter().all(is_needed) {
        return Ok(UNSUITABLE);
    }
    // The empty key matches no version: all manifests are fetched, except the parts that this template's has.
    let image = Image { registry, arrivals, manifest: &manifest };
    let sent = manifest::fetch(&image, Some(("", Arc::clone(template))))?;
    let delta = if is_same { None } else { difference(&sent, template) };
    if delta.is_none() && !is_same {
        return Ok(UNSUITABLE);
    }
    let added = delta.as_ref().map_or(0, |new: &Difference| image::ranges(&new.delta.changed.entries).len() + 1);
    if manifest.layers.len() + added > MOST_LAYERS {
        return Ok(UNSUITABLE);
    }
    let layers = layers(&image)?;
    Ok(layers.map_or(UNSUITABLE, |layers| ControlFlow::Break(Some(Predecessor { layers, delta }))))
}

/// Returns the delta, unless a full image is better.
fn difference(sent: &manifest::FetchedTemplate<'_>, template: &PortableTemplate) -> Option<Difference> {
    let delta = PortableDelta::between(&sent.template, template).ok()?;
    let mut all = DeltaAmounts { ..sent.deltas };
    all.add(&delta);
    let is_small = all.weight <= weight(&template.entries, 0) / LARGEST_PART;
    if all.number > DELTAS || all.text_bytes > LARGEST_DELTAS_BYTES || !is_small {
        return None;
    }
    // Other programs would take such a name for a whiteout.
    let paths = || delta.changed.entries.iter().map(|entry| &entry.path).chain(&delta.removed);
    if paths().any(|path| path.split(|&byte| byte == b'/').any(|name| name.starts_with(WHITEOUT))) {
        return None;
    }
    let whiteouts = whiteouts(&delta.removed, template)?;
    let mut directories = BTreeSet::new();
    for path in paths() {
        let mut above = &path[..];
        while !above.is_empty() {
            above = split_name(above).0;
            directories.extend(directory(template, above));
        }
    }
    Some(Difference { delta, directories, whiteouts })
}

fn directory(template: &PortableTemplate, path: &[u8]) -> Option<usize> {
    template.find(path).filter(|&number| template.entries[number].kind == PortableKind::Directory)
}

/// Returns whiteouts of removed paths, except below removed or replaced directories. `None` if a name is too long.
fn whiteouts(removed: &[Vec<u8>], template: &PortableTemplate) -> Option<Vec<PathBuf>> {
    let in_directories =
        removed.iter().map(|path| split_name(path)).filter(|(above, _)| directory(template, above).is_some());
    let whiteout = |(above, name)| {
        let name = [WHITEOUT, name].concat();
        (name.len() <= LONGEST_NAME).then(|| path_of(above).join(path_of(&name)))
    };
    in_directories.map(whiteout).collect()
}

/// Returns the layers of an image. `None` if the registry lacks one.
fn layers(&Image { registry, arrivals, manifest }: &Image<'_>) -> Result<Option<Vec<SentLayer>>, Error> {
    let wrong = || registry.wrong("an image without a configuration");
    let Descriptor { digest, size, .. } = &manifest.config;
    if !is_digest(digest) || *size > LARGEST_CONFIG_BYTES {
        return Err(wrong());
    }
    let bytes = registry.blob(&manifest.config, arrivals)?.bytes()?;
    let config: ImageConfig = serde_json::from_slice(&bytes).map_err(|_| wrong())?;
    let diff_ids = config.rootfs.diff_ids;
    if diff_ids.len() != manifest.layers.len() || !diff_ids.iter().all(|digest| is_digest(digest)) {
        return Err(wrong());
    }
    let are_there = each(&manifest.layers, None, |layer| registry.has_blob(&layer.digest))?;
    let layer = |(descriptor, diff_id): (&Descriptor, _)| SentLayer {
        descriptor: descriptor.clone(),
        diff_id,
        sent_bytes: 0,
        is_kept: true,
    };
    let layers = manifest.layers.iter().zip(diff_ids).map(layer).collect();
    Ok((!are_there.contains(&false)).then_some(layers))
}
