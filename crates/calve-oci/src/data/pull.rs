use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use calve_core::internal::NewEntries;
use calve_core::template::Templates;
use zstd::bulk::Decompressor;

use super::description::{DataDescription, INDEX};
use super::fetch::{MissingChunk, runs, together};
use super::index::{Chunk, Index, LARGEST_CHUNK_BYTES, LARGEST_INDEX_BYTES};
use crate::arrivals::Arrivals;
use crate::assemble::{Parents, check_room};
use crate::error::Error;
use crate::fetch::{Fetcher, GAP_BYTES, NEAR_BYTES, Run};
use crate::frames::{Hash, hash};
use crate::image::{ImageManifest, KEY, of_another_kind, read_image};
use crate::reference::Reference;
use crate::registry::{Registry, RegistryOptions};
use crate::spool::Spool;
use crate::work::each;
use crate::{layer, manifest};

/// Files from this size on are cloned from the previous version, and changed.
const CLONED_BYTES: u64 = 1 << 20;

/// A data directory's image, by the manifest that its tag had: later changes of the tag do not count.
pub struct DataImage<'a> {
    registry: Registry<'a>,
    arrivals: Arrivals,
    manifest: ImageManifest,
    pub digest: String,
    /// The image's own claims, unchecked.
    pub about: DataDescription,
}

#[derive(Debug, Clone, Copy)]
pub struct OldData<'a> {
    /// Its data directory, whose contents are checked before use.
    pub data: &'a Path,
    /// The index that [`DataImage::receive`] has written for it.
    pub index: &'a Path,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReceivedBytes {
    /// Without the image's own manifest.
    pub fetched_bytes: u64,
    /// Bytes from the previous version.
    pub reused_bytes: u64,
}

impl<'a> DataImage<'a> {
    /// Reads an image's manifest. Fetched parts are kept where file templates keep theirs.
    ///
    /// # Errors
    /// Fails with [`Error::OtherKind`] for a template of files, with [`Error::NotATemplate`] for anything else.
    pub fn open(templates: &Templates, reference: &'a Reference, options: &'a RegistryOptions) -> Result<Self, Error> {
        let registry = Registry::open(reference, options)?;
        let (bytes, digest) = registry.manifest(&reference.version)?;
        let manifest = read_image(reference, &bytes)?;
        let about = DataDescription::read(&manifest.annotations);
        let about = about.ok_or_else(|| of_another_kind(reference, &manifest, KEY))?;
        let arrivals = Arrivals::open(templates)?;
        Ok(Self { registry, arrivals, manifest, digest, about })
    }

    /// Makes the data in an empty directory, and writes the index for a later pull that reuses them. Every byte is
    /// checked. The files are this user's.
    ///
    /// # Errors
    /// Remove `data` then. The parts that have arrived are kept: the next pull continues from them.
    pub fn receive(self, data: &Path, index: &Path, old: Option<OldData<'_>>) -> Result<ReceivedBytes, Error> {
        let received = self.fill(data, index, old);
        self.arrivals.end(&received);
        received
    }

    fn fill(&self, data: &Path, index_path: &Path, old: Option<OldData<'_>>) -> Result<ReceivedBytes, Error> {
        let (index, compressed, index_bytes) = self.index()?;
        let old = old.and_then(Reuse::open);
        let mut parents = Parents::open(data)?;
        let is_new = |chunk: &&Chunk| old.as_ref().is_none_or(|old| !old.chunks.contains_key(&chunk.hash));
        let chunks = || index.files.iter().flat_map(|file| &file.chunks);
        let new: u64 = chunks().filter(is_new).map(|chunk| u64::from(chunk.size)).sum();
        // Local contents may be needed repeatedly. Zeros stay holes: those that matter fill the largest chunks.
        let largest = chunks().map(|chunk| chunk.size).max().unwrap_or_default();
        let zeros = hash(&vec![0; largest as usize]);
        let is_hole = |chunk: &&Chunk| chunk.size == largest && chunk.hash == zeros;
        let room_of = |index: &Index| {
            let mut room = NewEntries::in_directory(parents.root());
            for file in &index.files {
                let chunks = file.chunks.iter().filter(|chunk| !is_hole(chunk));
                room.add_file(chunks.fold(0_u64, |sum, chunk| sum.saturating_add(chunk.size.into())));
            }
            room
        };
        let mut needed = room_of(&index);
        index.directories.iter().for_each(|_| needed.add_directory());
        if let Some(old) = &old {
            needed.share_contents(&room_of(&old.index));
        }
        // The message names the grandparent: the parent is hidden.
        check_room((parents.root(), data), 2, &needed)?;
        let mut new_contents = NewEntries::in_directory(parents.root());
        new_contents.add_blocks(new);
        check_room((parents.root(), data), 2, &new_contents)?;
        let written = fs_err::write(index_path, &compressed);
        written.map_err(|error| Error::io("write", index_path, error))?;
        for directory in &index.directories {
            parents.make_directory(directory.path.as_bytes())?;
        }
        let (fetched, reused) = (AtomicU64::new(index_bytes), AtomicU64::new(0));
        let fill = Fill { image: self, data, index: &index, old: old.as_ref(), fetched: &fetched, reused: &reused };
        let numbers: Vec<usize> = (0..index.files.len()).collect();
        let missing = each(&numbers, self.registry.options.threads, |number| fill.file(*number))?;
        fill.fetch(missing.into_iter().flatten().collect())?;
        for file in &index.files {
            parents.set_mode(file.path.as_bytes(), file.mode)?;
        }
        for directory in index.directories.iter().rev() {
            parents.set_mode(directory.path.as_bytes(), directory.mode)?;
        }
        Ok(ReceivedBytes { fetched_bytes: fetched.into_inner(), reused_bytes: reused.into_inner() })
    }

    /// Returns the index, its bytes as they were sent, and how many bytes were fetched.
    fn index(&self) -> Result<(Index, Vec<u8>, u64), Error> {
        let refused = |what: &str| self.registry.reference.not_a_template(what);
        let layers = &self.manifest.layers;
        let found = layers.iter().find_map(|layer| Some((layer, layer.range(INDEX)?)));
        let (layer, at) = found.ok_or_else(|| refused("it has no index"))?;
        let listed = manifest::listed(&self.registry, &self.arrivals, (layer, &at), "index", LARGEST_INDEX_BYTES);
        let (text, compressed, fetched) = listed?;
        let index = Index::parse(&text).and_then(|index| index.check_layers(layers).map(|()| index));
        Ok((index.map_err(refused)?, compressed, fetched))
    }
}

struct Reuse<'a> {
    data: &'a Path,
    index: Index,
    /// By hash: the number of a file, and the place there.
    chunks: HashMap<Hash, (usize, u64)>,
    files: HashMap<String, usize>,
}

impl<'a> Reuse<'a> {
    /// Returns `None` if the older data cannot be used: everything is fetched then.
    fn open(old: OldData<'a>) -> Option<Self> {
        let compressed = fs_err::File::open(old.index).ok()?;
        let index = Index::parse(&layer::read_manifest(compressed, LARGEST_INDEX_BYTES).ok()?).ok()?;
        let (mut chunks, mut files) = (HashMap::new(), HashMap::new());
        for (number, file) in index.files.iter().enumerate() {
            files.insert(file.path.clone(), number);
            chunks.extend(file.placed().map(|(chunk, at, _)| (chunk.hash, (number, at))));
        }
        Some(Self { data: old.data, index, chunks, files })
    }
}

struct Fill<'a> {
    image: &'a DataImage<'a>,
    data: &'a Path,
    index: &'a Index,
    old: Option<&'a Reuse<'a>>,
    fetched: &'a AtomicU64,
    reused: &'a AtomicU64,
}

impl Fill<'_> {
    /// Makes a file of the chunks that are here. Returns the missing ones.
    fn file(&self, number: usize) -> Result<Vec<MissingChunk>, Error> {
        let file = &self.index.files[number];
        let mut parents = Parents::open(self.data)?;
        let path = file.path.as_bytes();
        let before = self.old.and_then(|old| Some((old.data, *old.files.get(&file.path)?)));
        let cloned = before.filter(|_| file.size() >= CLONED_BYTES);
        let cloned = cloned.filter(|(data, _)| self.clone_file(data, &file.path)).map(|(_, number)| number);
        let made = match cloned {
            Some(_) => {
                parents.set_mode(path, 0o600)?;
                parents.open_for_writing(path)?
            }
            None => parents.new_file(path)?,
        };
        let is_hole = cloned.is_none();
        let failed = |error: io::Error| Error::io("write", self.data.join(&file.path), error);
        made.set_len(file.size()).map_err(failed)?;
        let mut taken = self.old.map(ChunkTaker::open).transpose()?;
        let mut missing = Vec::new();
        for (chunk, at, start) in file.placed() {
            self.image.registry.options.cancel.check()?;
            let found = taken.as_mut().and_then(|taken| taken.find(&chunk, cloned.map(|number| (number, at))));
            match found {
                Some(LocalChunk::InPlace) => {}
                Some(LocalChunk::Elsewhere(contents)) => put(&made, contents, at, is_hole).map_err(failed)?,
                None => {
                    missing.push(MissingChunk { file: number, at, is_hole, layer: file.layer, start, chunk });
                    continue;
                }
            }
            self.reused.fetch_add(chunk.size.into(), Ordering::Relaxed);
            self.image.registry.options.progress.add(0, chunk.size.into());
        }
        self.image.registry.options.progress.add(1, 0);
        Ok(missing)
    }

    /// Clones a file of the previous version. If that fails, the file is made anew.
    fn clone_file(&self, old: &Path, path: &str) -> bool {
        let cancel = self.image.registry.options.cancel.clone();
        let options = calve_core::CloneOptions { cancel, ..Default::default() };
        calve_core::clone_tree(&old.join(path), &self.data.join(path), &options).is_ok()
    }

    fn fetch(&self, mut missing: Vec<MissingChunk>) -> Result<(), Error> {
        missing.sort_unstable_by_key(|chunk| (chunk.layer, chunk.start));
        let DataImage { registry, arrivals, manifest, .. } = self.image;
        let threads = registry.options.threads;
        let receive = |run: &Run<'_, MissingChunk>, part: &mut Spool| self.write(run.parts, run.bytes.start, part);
        let fetcher = Fetcher { registry, arrivals, threads, fetched: self.fetched, receive: &receive };
        let layer = |parts: &[MissingChunk]| parts.first().map_or(0, |first| first.layer);
        let run = |parts| Run { blob: &manifest.layers[layer(parts)], bytes: together(parts), parts };
        let runs = |gap| runs(&missing, gap).into_iter().map(run).collect::<Vec<_>>();
        if fetcher.fetch(&runs(NEAR_BYTES), || Some(runs(GAP_BYTES)))? {
            return Ok(());
        }
        let layers: Vec<_> = missing.chunk_by(|a, b| a.layer == b.layer).collect();
        each(&layers, threads, |chunks| {
            let mut blob = fetcher.blob(&manifest.layers[layer(chunks)])?;
            match self.write(chunks, 0, &mut blob)? {
                true => Ok(()),
                false => Err(registry.wrong("a layer whose chunks have other hashes than the index says")),
            }
        })
        .map(drop)
    }

    /// Writes the chunks in a part of a layer from `start` on. Returns false at the first that differs from the index.
    fn write(&self, chunks: &[MissingChunk], start: u64, part: &mut Spool) -> Result<bool, Error> {
        let unreadable = part.unreadable();
        let mut parents = Parents::open(self.data)?;
        let mut decompressor = Decompressor::new().map_err(&unreadable)?;
        let (mut compressed, mut contents) = (Vec::new(), Vec::with_capacity(LARGEST_CHUNK_BYTES as usize));
        let mut open: Option<(usize, File)> = None;
        let mut reader = part.reader()?;
        let mut at = start;
        for MissingChunk { file, at: place, is_hole, start, chunk, .. } in chunks {
            self.image.registry.options.cancel.check()?;
            io::copy(&mut (&mut reader).take(start - at), &mut io::sink()).map_err(&unreadable)?;
            compressed.resize(chunk.compressed as usize, 0);
            reader.read_exact(&mut compressed).map_err(&unreadable)?;
            at = start + u64::from(chunk.compressed);
            // The buffer's capacity is the limit, whatever the frame says.
            contents.clear();
            let is_read = decompressor.decompress_to_buffer(&compressed, &mut contents).is_ok();
            if !is_read || !is_chunk(chunk, &contents) {
                return Ok(false);
            }
            let path = &self.index.files[*file].path;
            let made = match &mut open {
                Some((number, made)) if number == file => made,
                other => &mut other.insert((*file, parents.open_for_writing(path.as_bytes())?)).1,
            };
            let written = put(made, &contents, *place, *is_hole);
            written.map_err(|error| Error::io("write", self.data.join(path), error))?;
            self.image.registry.options.progress.add(0, chunk.size.into());
        }
        Ok(true)
    }
}

fn is_chunk(chunk: &Chunk, contents: &[u8]) -> bool {
    contents.len() == chunk.size as usize && hash(contents) == chunk.hash
}

/// Zeros stay a hole where one is.
fn put(file: &File, contents: &[u8], at: u64, is_hole: bool) -> io::Result<()> {
    if is_hole && contents.iter().all(|byte| *byte == 0) {
        return Ok(());
    }
    file.write_all_at(contents, at)
}

enum LocalChunk<'t> {
    /// Cloned with the file.
    InPlace,
    Elsewhere(&'t [u8]),
}

/// Reader of chunks of the previous version. The last file used stays open.
struct ChunkTaker<'a> {
    old: &'a Reuse<'a>,
    parents: Parents,
    open: Option<(usize, File)>,
    contents: Vec<u8>,
}

impl<'a> ChunkTaker<'a> {
    fn open(old: &'a Reuse<'a>) -> Result<Self, Error> {
        Ok(Self { old, parents: Parents::open(old.data)?, open: None, contents: Vec::new() })
    }

    /// Finds and checks the contents of a chunk. `cloned` is their place if the file was cloned and they did not move.
    fn find(&mut self, chunk: &Chunk, cloned: Option<(usize, u64)>) -> Option<LocalChunk<'_>> {
        let known = self.old.chunks.get(&chunk.hash)?;
        // Contents may be at several places. The clone's needs no writing, and is checked like any other.
        if cloned.is_some_and(|place| self.is_at(chunk, place)) {
            return Some(LocalChunk::InPlace);
        }
        self.is_at(chunk, *known).then_some(LocalChunk::Elsewhere(&self.contents))
    }

    fn is_at(&mut self, chunk: &Chunk, (number, at): (usize, u64)) -> bool {
        let path = self.old.index.files[number].path.as_bytes();
        if self.open.as_ref().is_none_or(|(open, _)| *open != number) {
            self.open = self.parents.open_file(path).ok().map(|file| (number, file));
        }
        let Some((_, file)) = &self.open else { return false };
        self.contents.resize(chunk.size as usize, 0);
        file.read_exact_at(&mut self.contents, at).is_ok() && is_chunk(chunk, &self.contents)
    }
}
