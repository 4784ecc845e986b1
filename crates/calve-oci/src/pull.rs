//! Receiving a template.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use calve_core::{
    HeldTemplate, PortableKind, PortableTemplate, ReceivedTemplate, SweptTemplates, Template, TemplateError,
    TemplateOptions, Templates,
};

use crate::assemble::Parents;
use crate::credentials::CredentialFiles;
use crate::error::Error;
use crate::image::{self, Descriptor, ImageManifest, KEY, LAYER_TYPE, MANIFEST, MANIFEST_TYPE, RANGE};
use crate::layer;
use crate::reference::{Reference, Transport, is_digest};
use crate::registry::Registry;
use crate::spool::digest;
use crate::work::each;

/// More of a manifest is not read.
const LARGEST_MANIFEST_BYTES: u64 = 256 << 20;
/// More of it is not fetched.
const LARGEST_COMPRESSED_BYTES: u64 = 32 << 20;

/// How a template is to be received.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PullOptions {
    /// Where to keep it, threads, progress and the switch that ends it early.
    pub template: TemplateOptions,
    /// Where credentials may be.
    pub credentials: CredentialFiles,
}

/// A template that was received, or that was there.
#[derive(Debug)]
#[non_exhaustive]
pub struct Pulled {
    /// The template.
    pub template: Template,
    /// The digest of the image.
    pub digest: String,
    /// The key of what travels: equal templates have the same on every machine.
    pub key: String,
    /// The size of what was fetched.
    pub fetched_bytes: u64,
    /// The size of the files that were taken from the template's version that was here before.
    pub reused_bytes: u64,
    /// Whether the template was as the image is, so that nothing was made.
    pub is_up_to_date: bool,
    /// What became of the version that it replaced.
    pub swept: SweptTemplates,
}

/// Receives a template from a registry. It appears under its name when it is complete, checked, and on the disk. A template of that name is
/// replaced if it was pulled from the same repository.
///
/// # Errors
/// Fails with [`Error::NameTaken`] if it was not. Leaves nothing behind.
pub fn pull(templates: &Templates, reference: &Reference, name: &str, options: &PullOptions) -> Result<Pulled, Error> {
    let old = old(templates, reference, name)?;
    let registry = Registry::open(reference, &options.credentials, &options.template.cancel)?;
    let bytes = registry.manifest()?;
    let (digest, manifest) = (digest(&bytes), read_image(reference, &bytes)?);
    let (sent, manifest_bytes) = read_manifest(reference, &registry, &manifest)?;
    let key = sent.key();
    let reuse = Reuse::of(templates, old.as_ref());
    let pulled = |template, is_up_to_date, swept| Pulled {
        template,
        digest: digest.clone(),
        key: key.clone(),
        fetched_bytes: manifest_bytes,
        reused_bytes: 0,
        is_up_to_date,
        swept,
    };
    if let (Some(old), true) = (&old, reuse.as_ref().is_some_and(|reuse| reuse.key == key)) {
        return Ok(pulled(old.clone(), true, SweptTemplates::default()));
    }
    let layers = ranges(reference, &manifest, &sent)?;
    let fetched = AtomicU64::new(0);
    let reused = AtomicU64::new(0);
    let pull =
        Pull { sent: &sent, registry: &registry, reuse: reuse.as_ref(), fetched: &fetched, reused: &reused, options };
    let origin = PathBuf::from(format!("{ORIGIN}{reference}"));
    let made =
        templates.receive(name, &origin, (&sent, old.as_ref()), &options.template, |root| pull.fill(root, &layers));
    let ReceivedTemplate { template, swept, .. } = match made {
        Ok(received) => received,
        Err(error) => {
            return made_meanwhile(templates, name, &key, error)
                .map(|template| pulled(template, true, SweptTemplates::default()));
        }
    };
    let (fetched, reused) = (fetched.into_inner(), reused.into_inner());
    Ok(Pulled { fetched_bytes: manifest_bytes + fetched, reused_bytes: reused, ..pulled(template, false, swept) })
}

const ORIGIN: &str = "oci:";

/// Returns the image that a template was pulled from.
pub fn origin(template: &Template) -> Option<&str> {
    template.source.to_str()?.strip_prefix(ORIGIN)
}

/// Returns the template that this one replaces.
fn old(templates: &Templates, reference: &Reference, name: &str) -> Result<Option<Template>, Error> {
    let old = match templates.find(name) {
        Ok(old) => old,
        Err(calve_core::Error::Template(TemplateError::Unknown(_))) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let place = origin(&old).and_then(|origin| Reference::parse(origin, Transport::Https).ok());
    if place.is_some_and(|place| place.place() == reference.place()) {
        return Ok(Some(old));
    }
    Err(Error::NameTaken { name: name.into(), place: reference.place() })
}

/// Two that pull the same at once are both content.
fn made_meanwhile(templates: &Templates, name: &str, key: &str, error: Error) -> Result<Template, Error> {
    use calve_core::Error::Template as Failed;
    if let Error::Core(Failed(TemplateError::Exists(_) | TemplateError::Superseded(_))) = &error {
        let held = templates.hold(name)?;
        if templates.portable(&held)?.key() == key {
            return Ok((*held).clone());
        }
    }
    Err(error)
}

fn read_image(reference: &Reference, bytes: &[u8]) -> Result<ImageManifest, Error> {
    let refused = |what: &str| Error::NotATemplate { reference: reference.to_string(), what: what.into() };
    let manifest: ImageManifest = serde_json::from_slice(bytes).map_err(|_| refused("it is no image"))?;
    if manifest.schema_version != 2 || manifest.media_type != MANIFEST_TYPE {
        return Err(refused("it is an image of another kind"));
    }
    if !manifest.annotations.contains_key(KEY) {
        return Err(refused("it is an image of something else"));
    }
    let is_good = |layer: &Descriptor| layer.media_type == LAYER_TYPE && is_digest(&layer.digest);
    if manifest.layers.iter().all(is_good) { Ok(manifest) } else { Err(refused("it has layers of another kind")) }
}

/// Fetches the manifest of the template. Returns also how much was fetched.
fn read_manifest(
    reference: &Reference,
    registry: &Registry<'_>,
    image: &ImageManifest,
) -> Result<(PortableTemplate, u64), Error> {
    let refused = |what: String| Error::NotATemplate { reference: reference.to_string(), what };
    let found = image.layers.iter().find_map(|layer| Some((layer, layer.range(MANIFEST)?)));
    let (layer, at) = found.ok_or_else(|| refused("it has no manifest".into()))?;
    if layer.size > LARGEST_COMPRESSED_BYTES {
        return Err(refused("its manifest is too large".into()));
    }
    let mut spool = registry.blob(layer, None)?;
    let mut bytes = Vec::new();
    spool.reader()?.read_to_end(&mut bytes).map_err(|error| Error::io("read the manifest of", "", error))?;
    let compressed = bytes.get(at).ok_or_else(|| refused("it has no manifest".into()))?;
    let text = layer::read_manifest(compressed, LARGEST_MANIFEST_BYTES)
        .map_err(|error| refused(format!("its manifest cannot be read ({})", error.kind())))?;
    let template = PortableTemplate::parse(text).map_err(|what| {
        refused(format!("`{}` {}", calve_core::Shown(crate::assemble::path_of(&what.path)), what.what))
    })?;
    if image.annotations.get(KEY) != Some(&template.key()) {
        return Err(refused("its manifest has another key".into()));
    }
    Ok((template, layer.size))
}

/// Returns the layers with their ranges, which are all entries, each once.
fn ranges<'i>(
    reference: &Reference,
    image: &'i ImageManifest,
    template: &PortableTemplate,
) -> Result<Vec<(&'i Descriptor, Range<usize>)>, Error> {
    let refused = |what: &str| Error::NotATemplate { reference: reference.to_string(), what: what.into() };
    let layers: Vec<_> = image.layers.iter().filter_map(|layer| Some((layer, layer.range(RANGE)?))).collect();
    let mut end = 0;
    for (layer, range) in &layers {
        if range.start != end || range.end > template.entries.len() {
            return Err(refused("its layers do not have each entry once"));
        }
        end = range.end;
        // Compressed, nothing is twice as large as it was.
        if layer.size > 2 * layer::largest(template, range) {
            return Err(refused("a layer is too large"));
        }
    }
    if end == template.entries.len() { Ok(layers) } else { Err(refused("its layers do not have each entry once")) }
}

/// The files of the version that was here before, by their contents.
struct Reuse {
    held: HeldTemplate,
    key: String,
    files: HashMap<[u8; 32], Vec<u8>>,
}

impl Reuse {
    /// `None` if there is none, or if it cannot be used: then everything is fetched.
    fn of(templates: &Templates, old: Option<&Template>) -> Option<Self> {
        let held = templates.hold(&old?.name).ok()?;
        let template = templates.portable(&held).ok()?;
        let key = template.key();
        let file = |entry: calve_core::PortableEntry| match entry.kind {
            PortableKind::File { size, hash } if size > 0 => Some((hash, entry.path)),
            _ => None,
        };
        Some(Self { held, key, files: template.entries.into_iter().filter_map(file).collect() })
    }
}

struct Pull<'a> {
    sent: &'a PortableTemplate,
    registry: &'a Registry<'a>,
    reuse: Option<&'a Reuse>,
    fetched: &'a AtomicU64,
    reused: &'a AtomicU64,
    options: &'a PullOptions,
}

impl Pull<'_> {
    /// Makes the tree in an empty directory.
    fn fill(&self, root: &Path, layers: &[(&Descriptor, Range<usize>)]) -> Result<(), Error> {
        self.check_room(root)?;
        let mut parents = Parents::open(root)?;
        parents.make_directories(self.sent)?;
        each(layers, self.options.template.threads, |(layer, range)| self.layer(root, layer, range))?;
        parents.finish(self.sent)
    }

    fn check_room(&self, root: &Path) -> Result<(), Error> {
        let found = rustix::fs::statvfs(root).map_err(|errno| Error::io("look at the file system of", root, errno))?;
        let (needed, available) = (self.sent.bytes(), found.f_bavail.saturating_mul(found.f_frsize));
        if needed <= available || self.reuse.is_some() {
            return Ok(());
        }
        let path = root.parent().unwrap_or(root).to_path_buf();
        Err(calve_core::Error::NoRoom { path, needed, available, unit: "bytes" }.into())
    }

    fn layer(&self, root: &Path, layer: &Descriptor, range: &Range<usize>) -> Result<(), Error> {
        let mut parents = Parents::open(root)?;
        let missing = self.reuse_files(&mut parents, range)?;
        if missing.iter().any(|&is_missing| is_missing) {
            // Large layers wait in a file beside the tree, which is removed with it.
            let directory = root.parent().unwrap_or(root);
            let mut blob = self.registry.blob(layer, Some(directory))?;
            self.fetched.fetch_add(layer.size, Ordering::Relaxed);
            let receive = |index: usize, contents: &mut dyn std::io::Read| {
                if missing[index - range.start] {
                    parents.make_file(&self.sent.entries[index], contents)
                } else {
                    Ok(())
                }
            };
            layer::read(self.sent, range, &mut blob, receive, |what| self.registry.wrong(what))?;
        }
        let (entries, bytes) = image::amount(self.sent, range);
        self.options.template.progress.add(entries, bytes);
        Ok(())
    }

    /// Makes the files whose contents are here. Returns for each entry whether it is a file that is missing.
    fn reuse_files(&self, parents: &mut Parents, range: &Range<usize>) -> Result<Vec<bool>, Error> {
        let mut old = self.reuse.map(|reuse| Parents::open(&reuse.held.tree)).transpose()?;
        let mut missing = Vec::with_capacity(range.len());
        for entry in &self.sent.entries[range.clone()] {
            self.registry.still_wanted()?;
            let PortableKind::File { size, hash } = entry.kind else {
                missing.push(false);
                continue;
            };
            let is_made = match (&mut old, self.reuse) {
                _ if size == 0 => parents.make_file(entry, &mut std::io::empty()).map(|()| true)?,
                (Some(old), Some(reuse)) => match reuse.files.get(&hash).and_then(|path| old.open_file(path).ok()) {
                    Some(file) => self.reuse_file(parents, entry, file)?,
                    None => false,
                },
                _ => false,
            };
            missing.push(!is_made);
        }
        Ok(missing)
    }

    fn reuse_file(&self, parents: &mut Parents, entry: &calve_core::PortableEntry, file: File) -> Result<bool, Error> {
        let is_made = parents.make_file_of(entry, file)?;
        if let (true, PortableKind::File { size, .. }) = (is_made, &entry.kind) {
            self.reused.fetch_add(*size, Ordering::Relaxed);
        }
        Ok(is_made)
    }
}
