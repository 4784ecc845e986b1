//! The structure of a template's image: layers of tar, compressed by zstd, each with a range of the manifest's entries.
//! Behind the last one, an empty tar, a skippable frame has the manifest. Annotations have the ranges and the
//! manifest's place. So the image opens wherever images do, and a range that did not change is a layer that did not
//! change.

use std::collections::BTreeMap;
use std::ops::Range;

use calve_core::internal::{PortableEntry, PortableKind, PortableTemplate};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::reference::{Reference, is_digest};

pub(crate) const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
pub(crate) const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar+zstd";

/// Annotations of the image: the key, and the number of entries and bytes.
pub(crate) const KEY: &str = "dev.calve.template.key";
pub(crate) const ENTRIES: &str = "dev.calve.template.entries";
pub(crate) const BYTES: &str = "dev.calve.template.bytes";
/// Annotation of a data directory's image: the database engine.
pub(crate) const ENGINE: &str = "dev.calve.database.engine";
/// Annotation of a layer: the entries, `FIRST-END`.
pub(crate) const RANGE: &str = "dev.calve.template.range";
/// Annotation of a layer: its frames; of the last layer: the manifest's.
pub(crate) const FRAMES: &str = "dev.calve.template.frames";
/// Annotation of the last layer: the manifest's place, `START-END` in bytes.
pub(crate) const MANIFEST: &str = "dev.calve.template.manifest";
/// Annotations of a delta's last layer: its manifest's place and its base's key. Older versions refuse the image's key.
pub(crate) const DELTA: &str = "dev.calve.template.delta";
pub(crate) const BASE: &str = "dev.calve.template.base";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    pub(crate) media_type: String,
    pub(crate) digest: String,
    pub(crate) size: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<String, String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImageManifest {
    pub(crate) schema_version: u32,
    pub(crate) media_type: String,
    pub(crate) config: Descriptor,
    pub(crate) layers: Vec<Descriptor>,
    #[serde(default)]
    pub(crate) annotations: BTreeMap<String, String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ImageConfig {
    pub(crate) architecture: String,
    pub(crate) os: String,
    #[serde(default)]
    pub(crate) config: BTreeMap<String, String>,
    pub(crate) rootfs: RootFs,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RootFs {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) diff_ids: Vec<String>,
}

impl Descriptor {
    /// Reads an annotation of two numbers, `START-END`.
    pub(crate) fn range(&self, annotation: &str) -> Option<Range<usize>> {
        let (start, end) = self.annotations.get(annotation)?.split_once('-')?;
        let range = start.parse().ok()?..end.parse().ok()?;
        (range.start <= range.end).then_some(range)
    }
}

/// Approximate size of a layer before compression. It doubles for large templates: there are some 50 layers at most.
const LAYER_BYTES: u64 = 4 << 20;
const LAYERS: u64 = 48;
/// Approximate size of an entry in a tar, without its contents.
const ENTRY_BYTES: u64 = 512;

/// Divides a template's entries into a range for each layer.
pub(crate) fn ranges(entries: &[PortableEntry]) -> Vec<Range<usize>> {
    divide(entries, |entry| (&entry.path, contents(entry)))
}

pub(crate) fn divide<E>(entries: &[E], of: impl Fn(&E) -> (&[u8], u64)) -> Vec<Range<usize>> {
    let weighed = entries.iter().map(|entry| {
        let (path, contents) = of(entry);
        (path, ENTRY_BYTES.saturating_add(contents))
    });
    cut(weighed, LAYER_BYTES, LAYERS).into_iter().map(|(range, _)| range).collect()
}

/// Cuts weighted paths into ranges of about `target`, which doubles until there are about `most`, and weighs each.
/// Paths decide where a range ends, so that a change moves few.
fn cut<'p>(
    items: impl Iterator<Item = (&'p [u8], u64)> + Clone,
    mut target: u64,
    most: u64,
) -> Vec<(Range<usize>, u64)> {
    let total = items.clone().fold(0, |sum: u64, (_, weight)| sum.saturating_add(weight));
    while total / target > most {
        target *= 2;
    }
    let mut ranges: Vec<(Range<usize>, u64)> = Vec::new();
    let mut is_open = false;
    for (index, (path, weight)) in items.enumerate() {
        let is_large = weight >= target;
        let present = ranges.pop_if(|_| is_open && !is_large);
        let (start, size) = present.map_or((index, weight), |(range, size)| (range.start, size + weight));
        ranges.push((start..index + 1, size));
        let is_boundary =
            size >= target / 4 && u128::from(chance(path)) * u128::from(target) < u128::from(weight) << 64;
        is_open = !is_large && !is_boundary && size < 2 * target;
    }
    ranges
}

/// Returns the approximate size in a tar of these entries, and of `more` without contents.
pub(crate) fn weight(entries: &[PortableEntry], more: usize) -> u64 {
    entries.iter().fold(more as u64 * ENTRY_BYTES, |sum: u64, entry| {
        sum.saturating_add(ENTRY_BYTES.saturating_add(contents(entry)))
    })
}

/// Approximate size of a frame of the manifest before compression. It doubles for large manifests.
const CHUNK_BYTES: u64 = 16 << 10;
const CHUNKS: u64 = 1024;

/// Divides the manifest into chunks of whole lines.
pub(crate) fn chunks(text: &str) -> Vec<Range<usize>> {
    let lines = text.split_inclusive('\n').map(|line| {
        let path = line.split(' ').next().unwrap_or_default();
        (path.as_bytes(), line.len() as u64)
    });
    let mut end = 0;
    let mut chunk = |size: u64| {
        let start = end;
        end += size as usize;
        start..end
    };
    cut(lines, CHUNK_BYTES, CHUNKS).into_iter().map(|(_, size)| chunk(size)).collect()
}

fn chance(path: &[u8]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *blake3::hash(path).as_bytes();
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

pub(crate) fn contents(entry: &PortableEntry) -> u64 {
    match entry.kind {
        PortableKind::File { size, .. } => size,
        _ => 0,
    }
}

/// Returns the file whose contents this layer has for an entry: a copy for a hard link into an earlier layer.
pub(crate) fn contents_in(template: &PortableTemplate, range: &Range<usize>, index: usize) -> Option<usize> {
    let file = match template.entries[index].kind {
        PortableKind::HardLink(first) if first < range.start => first,
        _ => index,
    };
    matches!(template.entries[file].kind, PortableKind::File { .. }).then_some(file)
}

pub(crate) fn amount<'e>(entries: impl Iterator<Item = &'e PortableEntry>) -> (u64, u64) {
    entries.fold((0, 0), |(number, bytes), entry| (number + 1, contents(entry).saturating_add(bytes)))
}

pub(crate) fn read_image(reference: &Reference, bytes: &[u8]) -> Result<ImageManifest, Error> {
    let manifest: ImageManifest =
        serde_json::from_slice(bytes).map_err(|_| reference.not_a_template("it is not an image"))?;
    if manifest.schema_version != 2 || manifest.media_type != MANIFEST_TYPE {
        return Err(reference.not_a_template("it is an image of another kind"));
    }
    let is_good = |layer: &Descriptor| layer.media_type == LAYER_TYPE && is_digest(&layer.digest);
    match manifest.layers.iter().all(is_good) {
        true => Ok(manifest),
        false => Err(reference.not_a_template("it has layers of another kind")),
    }
}

/// Returns the error for an image of the wrong kind. Images of the other kind have the annotation `other`.
pub(crate) fn of_another_kind(reference: &Reference, image: &ImageManifest, other: &str) -> Error {
    match image.annotations.contains_key(other) {
        true => Error::OtherKind { reference: reference.to_string(), is_database: other == ENGINE },
        false => reference.not_a_template("it is an image of something else"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(files: impl Iterator<Item = (String, u64)>) -> PortableTemplate {
        let mut names: Vec<_> = files.collect();
        names.sort();
        let mut text = "#mtree\n# calve portable template 1\n. type=dir mode=0755 time=1.000000000\n".to_owned();
        for (name, size) in names {
            let hash = "0".repeat(64);
            text += &format!("./{name} type=file mode=0644 time=1.000000000 size={size} blake3digest={hash}\n");
        }
        PortableTemplate::parse(text).unwrap()
    }

    fn contents_of(template: &PortableTemplate) -> Vec<String> {
        let line = |entry: &PortableEntry| &template.text[entry.line.clone()];
        ranges(&template.entries)
            .iter()
            .map(|range| template.entries[range.clone()].iter().map(line).collect())
            .collect()
    }

    #[test]
    fn every_entry_is_in_one_layer_and_there_are_not_too_many() {
        for (number, size) in [(0, 0), (1, 0), (10_000, 100), (2_000, 1 << 20), (30, 1 << 30)] {
            let template = template((0..number).map(|number| (format!("f{number:06}"), size)));
            let ranges = ranges(&template.entries);
            let mut end = 0;
            for range in &ranges {
                assert!(range.start == end && range.end > end, "{ranges:?}");
                end = range.end;
            }
            assert_eq!(end, template.entries.len());
            assert!(ranges.len() <= 4 * 48, "{}", ranges.len());
        }
    }

    #[test]
    fn a_line_more_changes_one_chunk_or_two() {
        let text = |more: &str| {
            let mut text = template((0..20_000).map(|number| (format!("f{number:06}"), 1))).text;
            let at = text.find("./f010001").unwrap();
            text.insert_str(at, more);
            text
        };
        let (before, after) = (text(""), text("./f010000x type=file\n"));
        let chunks_of = |text: &str| {
            let chunks = chunks(text);
            assert_eq!(chunks.iter().map(|chunk| &text[chunk.clone()]).collect::<String>(), text);
            chunks.into_iter().map(|chunk| text[chunk].to_owned()).collect::<Vec<_>>()
        };
        let (before, after) = (chunks_of(&before), chunks_of(&after));
        let new = after.iter().filter(|chunk| !before.contains(chunk)).count();
        assert!(before.len() > 20 && (1..=2).contains(&new), "{new} of {}", after.len());
    }

    #[test]
    fn an_entry_more_changes_one_layer_or_two() {
        let names = || (0..20_000).map(|number| (format!("f{number:06}"), 5_000));
        let before = contents_of(&template(names()));
        let after = contents_of(&template(names().chain([("f010000x".to_owned(), 10)])));
        let new = after.iter().filter(|content| !before.contains(content)).count();
        assert!(before.len() > 10 && (1..=2).contains(&new), "{new} of {}", after.len());
    }
}
