use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::Error;
use crate::image::{CONFIG_TYPE, Descriptor, ImageConfig, ImageManifest, LAYER_TYPE, MANIFEST_TYPE, RootFs};
use crate::registry::Registry;
use crate::spool::Spool;

#[derive(Clone)]
pub(crate) struct SentLayer {
    pub(crate) descriptor: Descriptor,
    pub(crate) diff_id: String,
    pub(crate) sent_bytes: u64,
    /// True for a layer of the image to which a delta is added.
    pub(crate) is_kept: bool,
}

#[derive(Debug)]
pub struct PushReport {
    pub digest: String,
    pub layers: u64,
    /// Layers of the image to which a delta is added. 0 for a full image.
    pub kept_layers: u64,
    pub sent_bytes: u64,
    pub image_bytes: u64,
}

/// Sends a layer, unless the registry has it.
pub(crate) fn send(
    registry: &Registry<'_>,
    (mut blob, diff_id): (Spool, String),
    annotations: BTreeMap<String, String>,
) -> Result<SentLayer, Error> {
    let (digest, size) = (blob.digest(), blob.size);
    let is_there = registry.has_blob(&digest)?;
    if !is_there {
        registry.put_blob(&mut blob)?;
    }
    let descriptor = Descriptor { media_type: LAYER_TYPE.into(), digest, size, annotations };
    Ok(SentLayer { descriptor, diff_id, sent_bytes: if is_there { 0 } else { size }, is_kept: false })
}

pub(crate) fn name_image(
    registry: &Registry<'_>,
    layers: &[SentLayer],
    annotations: BTreeMap<String, String>,
) -> Result<PushReport, Error> {
    let config = ImageConfig {
        architecture: architecture().into(),
        os: "linux".into(),
        config: BTreeMap::new(),
        rootfs: RootFs { kind: "layers".into(), diff_ids: layers.iter().map(|layer| layer.diff_id.clone()).collect() },
    };
    let config = send(registry, (encoded(&config)?, String::new()), BTreeMap::new())?;
    let manifest = ImageManifest {
        schema_version: 2,
        media_type: MANIFEST_TYPE.into(),
        config: Descriptor { media_type: CONFIG_TYPE.into(), ..config.descriptor.clone() },
        layers: layers.iter().map(|layer| layer.descriptor.clone()).collect(),
        annotations,
    };
    let mut manifest = encoded(&manifest)?;
    registry.put_manifest(&mut manifest)?;
    let all = || layers.iter().chain([&config]);
    Ok(PushReport {
        digest: manifest.digest(),
        layers: layers.len() as u64,
        kept_layers: layers.iter().filter(|layer| layer.is_kept).count() as u64,
        sent_bytes: all().map(|layer| layer.sent_bytes).sum(),
        image_bytes: all().map(|layer| layer.descriptor.size).sum(),
    })
}

fn encoded(document: &impl Serialize) -> Result<Spool, Error> {
    let mut spool = Spool::new(None);
    let written = serde_json::to_writer(&mut spool, document);
    written.map_err(|error| Error::io("encode", "the manifest", error))?;
    Ok(spool)
}

/// Returns the processor's name in images.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
