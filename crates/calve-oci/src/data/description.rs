//! The description of the data of an image, in its annotations.

use std::collections::BTreeMap;

use crate::image::ENGINE;

/// More annotations of the image: the server that made the data, and how much they are.
const VERSION: &str = "dev.calve.database.version";
const ARCHITECTURE: &str = "dev.calve.database.architecture";
const DATA_KEY: &str = "dev.calve.database.key";
const FILES: &str = "dev.calve.database.files";
const DATA_BYTES: &str = "dev.calve.database.bytes";
/// Annotation of the last layer: where the index is, `START-END` in bytes.
pub(super) const INDEX: &str = "dev.calve.database.index";

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
    pub(super) fn annotations(&self) -> BTreeMap<String, String> {
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

    /// Reads the annotations; `None` for an image of something else. Messages show the texts: none may be long, or have control characters.
    pub(super) fn read(annotations: &BTreeMap<String, String>) -> Option<Self> {
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
