//! Sending a template.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use calve_core::{HeldTemplate, PortableEntry, PortableTemplate, TemplateError, TemplateOptions, Templates};

use crate::assemble::path_of;
use crate::connection::ConnectionOptions;
use crate::error::{Error, Refusal};
use crate::frames;
use crate::image::{
    self, BYTES, CONFIG_TYPE, CONTENT, Descriptor, ENTRIES, FRAMES, ImageConfig, ImageManifest, KEY, LAYER_TYPE,
    MANIFEST, MANIFEST_TYPE, RANGE, RootFs,
};
use crate::layer::{self, Layer};
use crate::reference::Reference;
use crate::registry::Registry;
use crate::spool::{Spool, digest};
use crate::work::each;

/// How a template is to be sent.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PushOptions {
    /// Threads, progress and the switch that ends it early.
    pub template: TemplateOptions,
    /// How the registry is reached.
    pub connection: ConnectionOptions,
}

/// A template that was sent.
#[derive(Debug)]
#[non_exhaustive]
pub struct Pushed {
    /// The digest of the image.
    pub digest: String,
    /// The key of what travels: equal templates have the same on every machine.
    pub key: String,
    /// The number of layers.
    pub layers: u64,
    /// The size of what was sent.
    pub sent_bytes: u64,
    /// The size of the whole image.
    pub image_bytes: u64,
}

/// Sends a template to a registry, without what the registry has. The image appears under its name when all of it is there.
///
/// # Errors
/// Fails with [`TemplateError::NotPortable`] for a template that would change who may do what on another machine.
pub fn push(templates: &Templates, name: &str, reference: &Reference, options: &PushOptions) -> Result<Pushed, Error> {
    if reference.digest().is_some() {
        let (reference, what) = (reference.to_string(), "has a digest, which only a pull can ask for");
        return Err(Error::BadReference { reference, what });
    }
    let held = templates.hold(name)?;
    let template = templates.portable(&held)?;
    let registry = Registry::open(reference, &options.connection, &options.template.cancel)?;
    let push = Push { held: &held, template: &template, old: old_layers(&registry)?, registry, options };
    let ranges = image::ranges(&template.entries);
    let mut layers = each(&ranges, options.template.threads, |range| push.layer(range))?;
    layers.push(push.manifest_layer()?);
    push.image(layers)
}

struct Push<'a> {
    held: &'a HeldTemplate,
    template: &'a PortableTemplate,
    registry: Registry<'a>,
    /// The layers of the image that the tag stands for now, by what is in them.
    old: HashMap<String, SentLayer>,
    options: &'a PushOptions,
}

#[derive(Clone)]
struct SentLayer {
    descriptor: Descriptor,
    diff_id: String,
    sent_bytes: u64,
}

impl Push<'_> {
    fn layer(&self, range: &Range<usize>) -> Result<SentLayer, Error> {
        let content = image::content(self.template, range);
        let at = (RANGE.to_owned(), format!("{}-{}", range.start, range.end));
        let old = self.old.get(&content);
        if let Some(old) = old.filter(|old| self.registry.has_blob(&old.descriptor.digest).unwrap_or(false)) {
            self.count(range);
            let mut old = old.clone();
            old.descriptor.annotations.extend([at]);
            return Ok(old);
        }
        let changed = |entry: &PortableEntry| {
            let path = self.held.tree.join(path_of(&entry.path));
            calve_core::Error::from(TemplateError::Changed { name: self.held.name.clone(), path }).into()
        };
        let layer = layer::write(self.template, range, &self.held.tree, self.spool(), changed)?;
        let ends = (FRAMES.to_owned(), frames::annotation(&layer.frames));
        let sent = self.send(layer, BTreeMap::from([at, (CONTENT.to_owned(), content), ends]))?;
        self.count(range);
        Ok(sent)
    }

    fn manifest_layer(&self) -> Result<SentLayer, Error> {
        let written = layer::write_manifest(&self.template.text, self.spool());
        let (layer, at) = written.map_err(|error| Error::io("send the manifest", self.held.manifest(), error))?;
        let at = (MANIFEST.to_owned(), format!("{}-{}", at.start, at.end));
        let ends = (FRAMES.to_owned(), frames::annotation(&layer.frames));
        self.send(layer, BTreeMap::from([at, ends]))
    }

    fn send(
        &self,
        Layer { mut blob, diff_id, .. }: Layer,
        annotations: BTreeMap<String, String>,
    ) -> Result<SentLayer, Error> {
        let (digest, size) = (blob.digest(), blob.size());
        let is_there = self.registry.has_blob(&digest)?;
        if !is_there {
            self.registry.put_blob(&mut blob)?;
        }
        let descriptor = Descriptor { media_type: LAYER_TYPE.into(), digest, size, annotations };
        Ok(SentLayer { descriptor, diff_id, sent_bytes: if is_there { 0 } else { size } })
    }

    /// Names the layers as one image.
    fn image(&self, layers: Vec<SentLayer>) -> Result<Pushed, Error> {
        let config = ImageConfig {
            architecture: architecture().into(),
            os: "linux".into(),
            config: BTreeMap::new(),
            rootfs: RootFs {
                kind: "layers".into(),
                diff_ids: layers.iter().map(|layer| layer.diff_id.clone()).collect(),
            },
        };
        let encoded = |error: serde_json::Error| Error::io("encode", self.held.manifest(), error);
        let config = serde_json::to_vec(&config).map_err(encoded)?;
        let mut blob = self.spool();
        std::io::Write::write_all(&mut blob, &config).map_err(|error| blob.failed(error))?;
        let config = self.send(Layer { blob, frames: Vec::new(), diff_id: String::new() }, BTreeMap::new())?;
        let key = self.template.key();
        let manifest = ImageManifest {
            schema_version: 2,
            media_type: MANIFEST_TYPE.into(),
            config: Descriptor { media_type: CONFIG_TYPE.into(), ..config.descriptor.clone() },
            layers: layers.iter().map(|layer| layer.descriptor.clone()).collect(),
            annotations: BTreeMap::from([
                (KEY.to_owned(), key.clone()),
                (ENTRIES.to_owned(), self.template.entries.len().to_string()),
                (BYTES.to_owned(), self.template.bytes().to_string()),
            ]),
        };
        let bytes = serde_json::to_vec(&manifest).map_err(encoded)?;
        self.registry.put_manifest(&bytes)?;
        let all = || layers.iter().chain([&config]);
        Ok(Pushed {
            digest: digest(&bytes),
            key,
            layers: layers.len() as u64,
            sent_bytes: all().map(|layer| layer.sent_bytes).sum(),
            image_bytes: all().map(|layer| layer.descriptor.size).sum(),
        })
    }

    /// Large layers go into a file beside the template, where only this user can enter.
    fn spool(&self) -> Spool {
        Spool::new(self.held.tree.parent())
    }

    fn count(&self, range: &Range<usize>) {
        let (entries, bytes) = image::amount(self.template, range);
        self.options.template.progress.add(entries, bytes);
    }
}

/// Returns the layers of the image that the tag stands for. What cannot be used is sent anew.
fn old_layers(registry: &Registry<'_>) -> Result<HashMap<String, SentLayer>, Error> {
    let bytes = match registry.manifest() {
        Ok(bytes) => bytes,
        Err(Error::Refused { refusal: Refusal::NotFound, .. }) => return Ok(HashMap::new()),
        Err(error) => return Err(error),
    };
    let Ok(manifest) = serde_json::from_slice::<ImageManifest>(&bytes) else { return Ok(HashMap::new()) };
    if manifest.config.size > 4 << 20 || !manifest.annotations.contains_key(KEY) {
        return Ok(HashMap::new());
    }
    let mut spool = registry.blob(&manifest.config, Spool::new(None))?;
    let Ok(config) = serde_json::from_reader::<_, ImageConfig>(spool.reader()?) else { return Ok(HashMap::new()) };
    let pairs = manifest.layers.into_iter().zip(config.rootfs.diff_ids);
    let layer = |(descriptor, diff_id): (Descriptor, String)| {
        let content = descriptor.annotations.get(CONTENT)?.clone();
        Some((content, SentLayer { descriptor, diff_id, sent_bytes: 0 }))
    };
    Ok(pairs.filter_map(layer).collect())
}

/// The name that images have for the processor.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
