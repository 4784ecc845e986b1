//! Fetching a template's manifests: only their new parts if an older version is here.

use std::collections::HashMap;
use std::io::Read as _;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use calve_core::internal::{PortabilityObstacle, PortableDelta, PortableTemplate, ShownPath};

use crate::arrivals::Arrivals;
use crate::assemble::path_of;
use crate::error::Error;
use crate::fetch::{Fetcher, Run};
use crate::frames::{self, Frame, Hash};
use crate::image::{Descriptor, FRAMES, ImageManifest, KEY, chunks, ranges, weight};
use crate::layer;
use crate::registry::Registry;
use crate::revision::{Listing, Revision, revisions, targets};
use crate::spool::Spool;

const LARGEST_MANIFEST_BYTES: u64 = 256 << 20;
/// All deltas of an image together: more is neither written nor read.
pub(crate) const LARGEST_DELTAS_BYTES: u64 = 64 << 20;
/// A larger layer with a manifest or an index is not fetched.
const LARGEST_COMPRESSED_BYTES: u64 = 32 << 20;

/// An image by the manifest that its tag had: later changes of the tag do not count.
#[derive(Clone, Copy)]
pub(crate) struct Image<'i> {
    pub(crate) registry: &'i Registry<'i>,
    pub(crate) arrivals: &'i Arrivals,
    pub(crate) manifest: &'i ImageManifest,
}

pub(crate) struct FetchedTemplate<'i> {
    pub(crate) template: Arc<PortableTemplate>,
    pub(crate) key: String,
    /// The revisions whose entries are known. If an older version here has the rest, the whole template comes first,
    /// without layers, and its targets lack the entries of later listings. Empty if that version has all.
    pub(crate) listings: Vec<Listing<'i>>,
    pub(crate) deltas: DeltaAmounts,
    pub(crate) fetched_bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct DeltaAmounts {
    pub(crate) number: usize,
    /// Approximate size in tars of the added and the removed entries.
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

/// Fetches a template's manifest: the deltas since `old` (a key and its version), if there are any, else all it lacks.
pub(crate) fn fetch<'i>(
    image: &Image<'i>,
    old: Option<(&str, Arc<PortableTemplate>)>,
) -> Result<FetchedTemplate<'i>, Error> {
    let reference = image.registry.reference;
    let in_the_way = |PortabilityObstacle { path, what }: PortabilityObstacle| match &*path {
        [] => reference.not_a_template(format!("its manifest {what}")),
        path => reference.not_a_template(format!("`{}` {what}", ShownPath(path_of(path)))),
    };
    let wanted = image.manifest.annotations.get(KEY).ok_or_else(|| reference.not_a_template("it has no key"))?;
    let revisions = revisions(reference, image.manifest)?;
    let after = |key: &str| match key == wanted {
        true => Some(revisions.len()),
        false => revisions.iter().rposition(|revision| revision.base == Some(key)),
    };
    let mut fetched_bytes = 0;
    let mut text_of = |revision: &Revision<'_>, old: Option<&str>, limit_bytes| {
        let (text, bytes) = text(image, revision, old, limit_bytes)?;
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
            let what = "its delta's base is not the manifest that it names";
            return Err(reference.not_a_template(what));
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
        return Err(reference.not_a_template("its manifest has the wrong key"));
    }
    if first == revisions.len() {
        return Ok(FetchedTemplate { template, key, listings: Vec::new(), deltas: amounts, fetched_bytes });
    }
    let mut lists = vec![if first == 0 { base } else { Arc::clone(&template) }];
    lists.extend(deltas.into_iter().map(|delta| Arc::new(delta.changed)));
    let targets = targets(&template, &lists);
    let listings = lists.into_iter().zip(targets).enumerate().map(|(number, (entries, targets))| {
        let layers = match number {
            0 if first > 0 => ranges(&entries.entries).into_iter().map(|range| (None, range)).collect(),
            _ => revisions[first.max(1) + number - 1].layers(reference, &entries)?,
        };
        Ok(Listing { layers, entries, targets })
    });
    let listings = listings.collect::<Result<_, Error>>()?;
    Ok(FetchedTemplate { template, key, listings, deltas: amounts, fetched_bytes })
}

/// Fetches the text of a revision's manifest. Returns also the fetched bytes. `old` is another manifest's text.
fn text(
    image: &Image<'_>,
    revision: &Revision<'_>,
    old: Option<&str>,
    limit_bytes: u64,
) -> Result<(String, u64), Error> {
    let (layer, at) = &revision.manifest;
    if let Some(old) = old.filter(|_| layer.size <= LARGEST_COMPRESSED_BYTES)
        && let Some(parts) = of_parts(image, layer, at, old)?
    {
        return Ok(parts);
    }
    let (text, _, fetched) = listed(image.registry, image.arrivals, (layer, at), "manifest", limit_bytes)?;
    Ok((text, fetched))
}

/// Fetches the text, called `name`, at a place in a layer. Returns also its bytes as sent, and the fetched bytes.
pub(crate) fn listed(
    registry: &Registry<'_>,
    arrivals: &Arrivals,
    (layer, at): (&Descriptor, &Range<usize>),
    name: &str,
    limit_bytes: u64,
) -> Result<(String, Vec<u8>, u64), Error> {
    let refused = |what: String| registry.reference.not_a_template(what);
    if layer.size > LARGEST_COMPRESSED_BYTES {
        return Err(refused(format!("its {name} is too large")));
    }
    let mut blob = registry.blob(layer, arrivals)?;
    let whole = blob.bytes()?;
    let compressed = whole.get(at.clone()).ok_or_else(|| refused(format!("it has no {name}")))?;
    let text = layer::read_manifest(compressed, limit_bytes);
    let text = text.map_err(|error| refused(format!("its {name} cannot be read ({})", error.kind())))?;
    Ok((text, compressed.to_vec(), blob.fetched))
}

/// Assembles a manifest from old and fetched parts. `None` if most are missing, or the registry ignores ranges.
fn of_parts(
    Image { registry, arrivals, .. }: &Image<'_>,
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
    // The limit was checked against the lengths that the frames claim.
    let known_as = |frame: &Frame| known.get(&frame.hash).copied().filter(|text| text.len() == frame.has.len());
    let is_missing = |frame: &Frame| known_as(frame).is_none();
    let (fetched, new) = (AtomicU64::new(0), Mutex::new(HashMap::new()));
    let receive = |run: &Run<'_, Frame>, part: &mut Spool| {
        read_frames(run.parts, part, &mut new.lock().unwrap_or_else(PoisonError::into_inner))
    };
    let fetcher = Fetcher { registry, arrivals, threads: None, fetched: &fetched, receive: &receive };
    if !fetcher.fetch_frames(layer, (&frames, start), &is_missing)? {
        return Ok(None);
    }
    let new = new.into_inner().unwrap_or_else(PoisonError::into_inner);
    let text = frames.iter().filter_map(|frame| new.get(&frame.hash).map(String::as_str).or_else(|| known_as(frame)));
    Ok(Some((text.collect(), fetched.into_inner())))
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
