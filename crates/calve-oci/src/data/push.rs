use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::cut::{LayerWriter, chunk_bytes};
use super::description::{DataDescription, INDEX};
use super::index::{FORMAT, Index, IndexedDirectory, IndexedFile, LARGEST_INDEX_BYTES};
use crate::assemble::Parents;
use crate::error::Error;
use crate::image::divide;
use crate::layer::{self, Layer};
use crate::reference::Reference;
use crate::registry::{Registry, RegistryOptions};
use crate::send::{self, PushReport, SentLayer};
use crate::spool::Spool;
use crate::work::each;

const PERMISSIONS: u32 = 0o777;
/// Approximate size of an entry in the index, without its path and its chunks.
const INDEXED_ENTRY_BYTES: u64 = 60;
const INDEXED_CHUNK_BYTES: u64 = 38;

/// The data directory of a stopped server.
pub struct DataSource<'a> {
    pub data: &'a Path,
    /// Directory for the nameless files of large layers.
    pub spool: &'a Path,
    /// Returns false as soon as the path of `data` leads to something else.
    pub is_current: &'a dyn Fn() -> bool,
}

/// Sends a data directory, without layers that the registry has. The image appears under its name once it is complete.
///
/// # Errors
/// Fails with [`Error::DataNotPortable`] for entries other than files and directories, and names that are not UTF-8,
/// and with [`Error::DataReplaced`] if the data were replaced meanwhile.
pub fn push_data(
    source: &DataSource<'_>,
    about: &DataDescription,
    reference: &Reference,
    options: &RegistryOptions,
) -> Result<PushReport, Error> {
    reference.check_tag()?;
    let registry = Registry::open(reference, options)?;
    let sent = send_layers(source, &registry);
    // Files of two versions would make a database that never existed.
    if !(source.is_current)() {
        return Err(Error::DataReplaced(source.data.into()));
    }
    send::name_image(&registry, &sent?, about.annotations())
}

fn send_layers(source: &DataSource<'_>, registry: &Registry<'_>) -> Result<Vec<SentLayer>, Error> {
    let found = DataTree::walk(source.data)?;
    found.check_size(source.data)?;
    let push = Push { data: source.data, spool: source.spool, found: &found, registry };
    let ranges = found.layers();
    let sent = each(&ranges, registry.options.threads, |range| push.layer(range))?;
    let mut files = Vec::new();
    let mut layers = Vec::new();
    for (number, (layer, indexed)) in sent.into_iter().enumerate() {
        files.extend(indexed.into_iter().map(|file| IndexedFile { layer: number, ..file }));
        layers.push(layer);
    }
    layers.push(push.index(Index { format: FORMAT, directories: found.directories.clone(), files })?);
    Ok(layers)
}

#[derive(Default)]
struct DataTree {
    directories: Vec<IndexedDirectory>,
    /// Path, mode and size.
    files: Vec<(String, u32, u64)>,
}

impl DataTree {
    fn walk(data: &Path) -> Result<Self, Error> {
        let mut found = Self::default();
        let mut waiting = vec![String::new()];
        while let Some(below) = waiting.pop() {
            let directory = data.join(&below);
            let failed = |error: io::Error| Error::io("list", &directory, error);
            for entry in fs_err::read_dir(&directory).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let refused = |what| Error::DataNotPortable { path: entry.path(), what };
                let name = entry.file_name().into_string().map_err(|_| refused("has a name that is not UTF-8"))?;
                let path = if below.is_empty() { name } else { format!("{below}/{name}") };
                let metadata = entry.metadata().map_err(|error| Error::io("look at", entry.path(), error))?;
                let mode = metadata.permissions().mode() & PERMISSIONS;
                if metadata.is_dir() {
                    waiting.push(path.clone());
                    found.directories.push(IndexedDirectory { path, mode });
                } else if metadata.is_file() {
                    found.files.push((path, mode, metadata.len()));
                } else {
                    return Err(refused("is neither a file nor a directory"));
                }
            }
        }
        found.directories.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        found.files.sort_unstable();
        Ok(found)
    }

    fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, _, size)| size).sum()
    }

    /// Refuses data whose index no pull would accept, before anything is sent.
    fn check_size(&self, data: &Path) -> Result<(), Error> {
        let chunks = self.bytes() / chunk_bytes(self.bytes()) as u64;
        let entry = |path: usize| path as u64 + INDEXED_ENTRY_BYTES;
        let files: u64 = self.files.iter().map(|(path, ..)| entry(path.len())).sum();
        let directories: u64 = self.directories.iter().map(|directory| entry(directory.path.len())).sum();
        let is_too_large = files + directories + chunks * INDEXED_CHUNK_BYTES > LARGEST_INDEX_BYTES;
        if is_too_large { Err(Error::DataTooLarge(data.into())) } else { Ok(()) }
    }

    /// Divides the files into a range for each layer. Without files there is one for the directories.
    fn layers(&self) -> Vec<Range<usize>> {
        let mut ranges = divide(&self.files, |(path, _, size)| (path.as_bytes(), *size));
        if ranges.is_empty() {
            ranges.push(Range::default());
        }
        ranges
    }
}

struct Push<'a> {
    data: &'a Path,
    spool: &'a Path,
    found: &'a DataTree,
    registry: &'a Registry<'a>,
}

impl Push<'_> {
    fn layer(&self, range: &Range<usize>) -> Result<(SentLayer, Vec<IndexedFile>), Error> {
        let failed = |error: io::Error| Error::io("write a layer of", self.data, error);
        let blob = Spool::new(Some(self.spool));
        let mut writer = LayerWriter::new(blob, chunk_bytes(self.found.bytes())).map_err(failed)?;
        if range.start == 0 {
            self.found.directories.iter().try_for_each(|directory| writer.directory(directory)).map_err(failed)?;
        }
        let mut parents = Parents::open(self.data)?;
        let mut files = Vec::new();
        for (path, mode, size) in &self.found.files[range.clone()] {
            self.registry.options.cancel.check()?;
            let contents = parents.open_file(path.as_bytes())?;
            let written = writer.file(path, *mode, *size, contents);
            let (offset, chunks) = written.map_err(|error| Error::io("send", self.data.join(path), error))?;
            files.push(IndexedFile { path: path.clone(), mode: *mode, layer: 0, offset, chunks });
            self.registry.options.progress.add(1, *size);
        }
        let layer = writer.finish().map_err(failed)?;
        Ok((send::send(self.registry, layer, BTreeMap::new())?, files))
    }

    fn index(&self, index: Index) -> Result<SentLayer, Error> {
        let failed = |error: io::Error| Error::io("send the index of", self.data, error);
        let text = serde_json::to_string(&index).map_err(|error| failed(error.into()))?;
        if text.len() as u64 > LARGEST_INDEX_BYTES {
            return Err(Error::DataTooLarge(self.data.into()));
        }
        drop(index);
        let written = layer::write_manifest(&text, (&[], &[]), Spool::new(Some(self.spool))).map_err(failed)?;
        let (Layer { blob, diff_id, .. }, at) = written;
        send::send(self.registry, (blob, diff_id), BTreeMap::from([(INDEX.to_owned(), at)]))
    }
}
