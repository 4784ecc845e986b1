//! Fetching the manifest of a template: of what is new in it, where an older one is here.

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::ops::Range;

use calve_core::PortableTemplate;

use crate::arrivals::Arrivals;
use crate::error::Error;
use crate::frames::{self, Frame, Hash, OTHER_HASH};
use crate::image::{Descriptor, FRAMES, ImageManifest, KEY, MANIFEST, chunks};
use crate::layer;
use crate::reference::Reference;
use crate::registry::Registry;
use crate::spool::Spool;

/// More of a manifest is not read.
const LARGEST_MANIFEST_BYTES: u64 = 256 << 20;
/// More of it is not fetched.
const LARGEST_COMPRESSED_BYTES: u64 = 32 << 20;

/// Fetches the manifest of the template. Returns also how much was fetched. `old` is the text of another version's.
pub(crate) fn fetch(
    reference: &Reference,
    from: (&Registry<'_>, &Arrivals),
    image: &ImageManifest,
    old: Option<String>,
) -> Result<(PortableTemplate, u64), Error> {
    let refused = |what: String| Error::NotATemplate { reference: reference.to_string(), what };
    let unreadable = |error: io::Error| refused(format!("its manifest cannot be read ({})", error.kind()));
    let found = image.layers.iter().find_map(|layer| Some((layer, layer.range(MANIFEST)?)));
    let (layer, at) = found.ok_or_else(|| refused("it has no manifest".into()))?;
    if layer.size > LARGEST_COMPRESSED_BYTES {
        return Err(refused("its manifest is too large".into()));
    }
    let parts = match old {
        Some(old) => of_parts(from, layer, &at, &old)?,
        None => None,
    };
    let (text, fetched) = match parts {
        Some(parts) => parts,
        None => {
            let (compressed, fetched) = whole(from, layer, at)?.ok_or_else(|| refused("it has no manifest".into()))?;
            (layer::read_manifest(&*compressed, LARGEST_MANIFEST_BYTES).map_err(unreadable)?, fetched)
        }
    };
    let template = PortableTemplate::parse(text).map_err(|what| {
        refused(format!("`{}` {}", calve_core::ShownPath(crate::assemble::path_of(&what.path)), what.what))
    })?;
    if image.annotations.get(KEY) != Some(&template.key()) {
        return Err(refused("its manifest has another key".into()));
    }
    Ok((template, fetched))
}

/// Fetches the compressed manifest, if it is there. Returns also how much was fetched.
pub(crate) fn whole(
    (registry, arrivals): (&Registry<'_>, &Arrivals),
    layer: &Descriptor,
    at: Range<usize>,
) -> Result<Option<(Vec<u8>, u64)>, Error> {
    let mut spool = registry.blob(layer, arrivals.spool(layer, &(0..layer.size))?)?;
    let fetched = spool.fetched();
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
    let is_missing = |frame: &Frame| !known.contains_key(&frame.hash);
    let mut receive = |run: &[Frame], bytes: &Range<u64>, spool| {
        let is_right = &mut |part: &mut Spool| read_frames(run, part, &mut new);
        let part = registry.checked_part(layer, bytes, spool, is_right, OTHER_HASH)?;
        fetched += part.as_ref().map_or(0, Spool::fetched);
        Ok(part.is_some())
    };
    if !arrivals.fetch_frames((registry, layer), (&frames, start), &is_missing, &mut receive)? {
        return Ok(None);
    }
    let text =
        frames.iter().filter_map(|frame| new.get(&frame.hash).map(String::as_str).or(known.get(&frame.hash).copied()));
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
