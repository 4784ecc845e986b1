use std::collections::BTreeMap;

use crate::image::ENGINE;

/// Annotations of the image: the server that made the data, and their amount.
const VERSION: &str = "dev.calve.database.version";
const ARCHITECTURE: &str = "dev.calve.database.architecture";
const DATA_KEY: &str = "dev.calve.database.key";
const FILES: &str = "dev.calve.database.files";
const DATA_BYTES: &str = "dev.calve.database.bytes";
/// Annotation of the last layer: the index's place, `START-END` in bytes.
pub(super) const INDEX: &str = "dev.calve.database.index";

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DataDescription {
    pub engine: String,
    /// In the words of the server that made the data.
    pub version: String,
    /// The server's processor, as Rust names it.
    pub architecture: String,
    pub key: String,
    pub files: u64,
    pub bytes: u64,
}

impl DataDescription {
    pub(super) fn annotations(&self) -> BTreeMap<String, String> {
        let all = [
            (ENGINE, self.engine.clone()),
            (VERSION, self.version.clone()),
            (ARCHITECTURE, self.architecture.clone()),
            (DATA_KEY, self.key.clone()),
            (FILES, self.files.to_string()),
            (DATA_BYTES, self.bytes.to_string()),
        ];
        all.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// Returns `None` for another kind of image. Messages show the texts: none may be long or have control characters.
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
