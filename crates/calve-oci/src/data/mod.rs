//! Data directories of database servers in registries.
//!
//! The image is an ordinary one, as those of file templates: layers of tar, compressed by zstd, and a last layer with what is known of the others.
//! Here that is an index of chunks. A file has its contents in frames of its own, one for each chunk; what the tar has beside them, nobody who
//! pulls looks at. Where files are cut is decided by what is in them, so that a changed page costs a chunk, not a file.

mod cut;
mod fetch;
mod index;
mod pull;
mod push;

use std::collections::BTreeMap;

use crate::image::ENGINE;

pub use pull::{DataImage, OldData, ReceivedData};
pub use push::{DataSource, push_data};

/// More annotations of the image: the server that made the data, and how much they are.
const VERSION: &str = "dev.calve.database.version";
const ARCHITECTURE: &str = "dev.calve.database.architecture";
const DATA_KEY: &str = "dev.calve.database.key";
const FILES: &str = "dev.calve.database.files";
const DATA_BYTES: &str = "dev.calve.database.bytes";
/// Annotation of the last layer: where the index is, `START-END` in bytes.
const INDEX: &str = "dev.calve.database.index";

/// The data of an image, by its annotations.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DataDescription {
    pub engine: String,
    /// The version of the server that made them, in that server's words.
    pub version: String,
    /// The processor that it ran on, as Rust names it.
    pub architecture: String,
    pub key: String,
    pub files: u64,
    pub bytes: u64,
}

impl DataDescription {
    fn annotations(&self) -> BTreeMap<String, String> {
        let (files, bytes) = (self.files.to_string(), self.bytes.to_string());
        let all = [
            (ENGINE, &self.engine),
            (VERSION, &self.version),
            (ARCHITECTURE, &self.architecture),
            (DATA_KEY, &self.key),
            (FILES, &files),
            (DATA_BYTES, &bytes),
        ];
        all.into_iter().map(|(name, value)| (name.to_owned(), value.clone())).collect()
    }

    /// Reads the annotations. `None` if it is an image of something else. No text may be long, or have control characters: messages show
    /// them.
    fn read(annotations: &BTreeMap<String, String>) -> Option<Self> {
        let text = |name: &str| {
            let value = annotations.get(name)?;
            (value.len() <= 256 && !value.contains(char::is_control)).then(|| value.clone())
        };
        Some(Self {
            engine: text(ENGINE)?,
            version: text(VERSION)?,
            architecture: text(ARCHITECTURE)?,
            key: text(DATA_KEY)?,
            files: text(FILES)?.parse().ok()?,
            bytes: text(DATA_BYTES)?.parse().ok()?,
        })
    }
}
