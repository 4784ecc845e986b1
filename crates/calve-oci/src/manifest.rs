//! Fetching the manifests of a template: only their new parts, if an older version is here.

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::ops::Range;
use std::sync::Arc;

use calve_core::internal::{PortabilityObstacle, PortableDelta, PortableTemplate};

use crate::arrivals::Arrivals;
use crate::error::Error;
use crate::frames::{self, Frame, Hash, OTHER_HASH};
use crate::image::{Descriptor, FRAMES, ImageManifest, KEY, chunks, weight};
use crate::layer;
use crate::reference::Reference;
use crate::registry::Registry;
use crate::revision::{Listing, Revision, revisions, targets};
use crate::spool::Spool;

/// More of a manifest is not read.
const LARGEST_MANIFEST_BYTES: u64 = 256 << 20;
/// More of the deltas of an image, together, is neither written nor read.
pub(crate) const LARGEST_DELTAS_BYTES: u64 = 64 << 20;
/// More of one is not fetched.
const LARGEST_COMPRESSED_BYTES: u64 = 32 << 20;

/// A template whose manifests were fetched and checked.
pub(crate) struct FetchedTemplate<'i> {
    pub(crate) template: Arc<PortableTemplate>,
    pub(crate) key: String,
    /// The revisions whose entries are known. Those that an older version here has are not.
    pub(crate) listings: Vec<Listing<'i>>,
    /// True for each entry of the template that none of them has.
    pub(crate) is_elsewhere: Vec<bool>,
    pub(crate) deltas: DeltaAmounts,
    pub(crate) fetched_bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct DeltaAmounts {
    pub(crate) number: usize,
    /// The approximate size in tars of what they add, and of as many entries as they remove.
    pub(crate) weight: u64,
    pub(crate) text_bytes: u64,
}

impl DeltaAmounts {
    pub(crate) fn add(&mut self, delta: &PortableDelta) {
        self.number += 1;
        self.weight = self.weight.saturating_add(weight(&delta.changed.entries, delta.removed.len()));
        self.text_bytes += delta.changed.text.len() as u64;
    }
}

/// Fetches the template's manifest: only the deltas against `old` (another version, with its key), if there are any, else all that it lacks.
pub(crate) fn fetch<'i>(
    reference: &Reference,
    from: (&Registry<'_>, &Arrivals),
    image: &'i ImageManifest,
    old: Option<(&str, Arc<PortableTemplate>)>,
) -> Result<FetchedTemplate<'i>, Error> {
    let refused = |what: String| Error::NotATemplate { reference: reference.to_string(), what };
    let in_the_way = |what: PortabilityObstacle| match &*what.path {
        [] => refused(format!("its manifest {}", what.what)),
        path => refused(format!("`{}` {}", calve_core::internal::ShownPath(crate::assemble::path_of(path)), what.what)),
    };
    let wanted = image.annotations.get(KEY).ok_or_else(|| refused("it has no key".into()))?;
    let revisions = revisions(reference, image)?;
    let after = |key: &str| match key == wanted {
        true => Some(revisions.len()),
        false => revisions.iter().rposition(|revision| revision.base == Some(key)),
    };
    let mut fetched_bytes = 0;
    let mut text_of = |revision: &Revision<'_>, old: Option<&str>, limit_bytes| {
        let (text, bytes) = text(from, revision, (old, limit_bytes), &refused)?;
        fetched_bytes += bytes;
        Ok::<_, Error>(text)
    };
    let (base, first) = match old.map(|(key, old)| (after(key), old)) {
        Some((Some(first), old)) => (old, first),
        other => {
            let old = other.as_ref().map(|(_, old)| &*old.text);
            let text = text_of(&revisions[0], old, LARGEST_MANIFEST_BYTES)?;
            (Arc::new(PortableTemplate::parse(text).map_err(in_the_way)?), 0)
        }
    };
    let (mut deltas, mut amounts) = (Vec::new(), DeltaAmounts::default());
    for revision in &revisions[first.max(1)..] {
        let text = text_of(revision, None, LARGEST_DELTAS_BYTES - amounts.text_bytes)?;
        let delta = PortableDelta::parse(text).map_err(in_the_way)?;
        if revision.base != Some(&*delta.base) {
            return Err(refused("it has a delta against another manifest than the one it names".into()));
        }
        amounts.add(&delta);
        deltas.push(delta);
    }
    let composed = match &deltas[..] {
        [] => None,
        deltas => Some(Arc::new(base.with(deltas, LARGEST_MANIFEST_BYTES).map_err(in_the_way)?)),
    };
    let template = composed.unwrap_or_else(|| Arc::clone(&base));
    let key = template.key();
    if key != *wanted {
        return Err(refused("its manifest has another key".into()));
    }
    let mut lists: Vec<_> = deltas.into_iter().map(|delta| Arc::new(delta.changed)).collect();
    if first == 0 {
        lists.insert(0, base);
    }
    let (targets, is_elsewhere) = targets(&template, &lists);
    let listings =
        revisions[first..].iter().zip(lists.into_iter().zip(targets)).map(|(revision, (entries, targets))| {
            let layers = revision.layers(reference, &entries)?.to_vec();
            Ok(Listing { layers, entries, targets })
        });
    let listings = listings.collect::<Result<_, Error>>()?;
    Ok(FetchedTemplate { template, key, listings, is_elsewhere, deltas: amounts, fetched_bytes })
}

/// Fetches the text of a revision's manifest. Returns also how much was fetched. `old` is the text of another one.
fn text(
    from: (&Registry<'_>, &Arrivals),
    revision: &Revision<'_>,
    (old, limit_bytes): (Option<&str>, u64),
    refused: &dyn Fn(String) -> Error,
) -> Result<(String, u64), Error> {
    let unreadable = |error: io::Error| refused(format!("its manifest cannot be read ({})", error.kind()));
    let (layer, at) = &revision.manifest;
    if layer.size > LARGEST_COMPRESSED_BYTES {
        return Err(refused("its manifest is too large".into()));
    }
    let parts = old.map(|old| of_parts(from, layer, at, old)).transpose()?.flatten();
    if let Some(parts) = parts {
        return Ok(parts);
    }
    let (compressed, fetched) = whole(from, layer, at.clone())?.ok_or_else(|| refused("it has no manifest".into()))?;
    Ok((layer::read_manifest(&*compressed, limit_bytes).map_err(unreadable)?, fetched))
}

/// Fetches the compressed manifest, if it is there. Returns also how much was fetched.
pub(crate) fn whole(
    (registry, arrivals): (&Registry<'_>, &Arrivals),
    layer: &Descriptor,
    at: Range<usize>,
) -> Result<Option<(Vec<u8>, u64)>, Error> {
    let mut spool = registry.blob(layer, arrivals.spool(layer, &(0..layer.size))?)?;
    let fetched = spool.fetched;
    let mut bytes = Vec::new();
    let read = spool.reader()?.read_to_end(&mut bytes);
    read.map_err(|error| spool.failed(error))?;
    Ok(bytes.get(at).map(|bytes| (bytes.to_vec(), fetched)))
}

/// Puts the manifest together of what the old one has, and of what it lacks. `None` if that is most of it, or if the registry has no parts.
fn of_parts(
    (registry, arrivals): (&Registry<'_>, &Arrivals),
    layer: &Descriptor,
    at: &Range<usize>,
    old: &str,
) -> Result<Option<(String, u64)>, Error> {
    let (start, size) = (at.start as u64, at.len() as u64);
    let parsed = layer.annotations.get(FRAMES).and_then(|text| frames::parse(text, 0, size));
    let is_good = |frames: &Vec<Frame>| {
        let length = frames.last().map_or(0, |last| last.has.end) as u64;
        length <= LARGEST_MANIFEST_BYTES && start.checked_add(size).is_some_and(|end| end <= layer.size)
    };
    let Some(frames) = parsed.filter(is_good) else { return Ok(None) };
    let chunk = |chunk: Range<usize>| (frames::hash(old[chunk.clone()].as_bytes()), &old[chunk]);
    let known: HashMap<Hash, &str> = chunks(old).into_iter().map(chunk).collect();
    let mut new: HashMap<Hash, String> = HashMap::new();
    let mut fetched = 0;
    // The lengths that the frames claim are what the limit was checked against.
    let known_as = |frame: &Frame| known.get(&frame.hash).copied().filter(|text| text.len() == frame.has.len());
    let is_missing = |frame: &Frame| known_as(frame).is_none();
    let mut receive = |run: &[Frame], bytes: &Range<u64>, spool| {
        let is_right = &mut |part: &mut Spool| read_frames(run, part, &mut new);
        let part = registry.checked_part(layer, bytes, spool, is_right, OTHER_HASH)?;
        fetched += part.as_ref().map_or(0, |part| part.fetched);
        Ok(part.is_some())
    };
    if !arrivals.fetch_frames((registry, layer), (&frames, start), &is_missing, &mut receive)? {
        return Ok(None);
    }
    let text = frames.iter().filter_map(|frame| new.get(&frame.hash).map(String::as_str).or_else(|| known_as(frame)));
    Ok(Some((text.collect(), fetched)))
}

/// Decompresses frames of the manifest. Returns false if one has another hash.
fn read_frames(frames: &[Frame], part: &mut Spool, texts: &mut HashMap<Hash, String>) -> Result<bool, Error> {
    let mut reader = part.reader()?;
    for frame in frames {
        let compressed = (&mut reader).take(frame.size());
        let text = layer::read_manifest(compressed, frame.has.len() as u64).ok();
        let Some(text) = text.filter(|text| frames::hash(text.as_bytes()) == frame.hash) else { return Ok(false) };
        texts.insert(frame.hash, text);
    }
    Ok(true)
}
