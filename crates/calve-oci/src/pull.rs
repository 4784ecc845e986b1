//! Receiving a template.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use calve_core::{
    CheckedFiles, HeldTemplate, PortableKind, PortableTemplate, ReceivedTemplate, SweptTemplates, Template,
    TemplateError, TemplateOptions, Templates,
};

use crate::arrivals::Arrivals;
use crate::assemble::{Parents, check_room};
use crate::connection::ConnectionOptions;
use crate::error::Error;
use crate::frames::{self, Frame, OTHER_HASH};
use crate::image::{self, Descriptor, FRAMES, ImageManifest, KEY, RANGE};
use crate::operation::Operation;
use crate::reference::{Reference, Transport};
use crate::registry::Registry;
use crate::spool::Spool;
use crate::work::each;
use crate::{layer, manifest};

/// How a template is to be received.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PullOptions {
    /// Where to keep it, threads, progress and the token that ends it early.
    pub template: TemplateOptions,
    /// How the registry is reached.
    pub connection: ConnectionOptions,
}

/// A template that was received, or that was there.
#[derive(Debug)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the other names say it")]
pub struct PullReport {
    pub template: Template,
    /// The digest of the image.
    pub digest: String,
    /// The key of what travels: equal templates have the same on every machine.
    pub key: String,
    /// The size of what was fetched of the image's layers and of the template's manifest. That of the image's own manifest is not in it.
    pub fetched_bytes: u64,
    /// The size of the files that were taken from the template's version that was here before.
    pub reused_bytes: u64,
    /// True if the template was as the image is, so that nothing was made.
    pub is_up_to_date: bool,
    /// The fate of the version that it replaced.
    pub swept: SweptTemplates,
}

/// Receives a template from a registry. It appears under its name when it is complete, checked, and on the disk. A template of that name is
/// replaced if it was pulled from the same repository.
///
/// # Errors
/// Fails with [`Error::NameTaken`] if it was not. Of the template nothing is left then; the parts of the image that have arrived are kept for the next
/// pull, which goes on from there.
pub fn pull(
    templates: &Templates,
    reference: &Reference,
    name: &str,
    options: &PullOptions,
) -> Result<PullReport, Error> {
    let old = old(templates, reference, name)?;
    let registry = options.connection.open(reference, &options.template.cancel)?;
    let (bytes, digest) = options.connection.allowed_manifest(&registry, reference)?;
    let manifest = image::read_image(reference, &bytes)?;
    if !manifest.annotations.contains_key(KEY) {
        let reference = reference.to_string();
        return Err(match image::is_of_database(&manifest.annotations) {
            true => Error::OtherKind { reference, is_database: true },
            false => Error::NotATemplate { reference, what: "it is an image of something else".into() },
        });
    }
    let arrivals = Arrivals::open(templates)?;
    let image = Image { registry: &registry, arrivals: &arrivals, manifest: &manifest, digest: &digest };
    let pulled = receive(templates, reference, (name, old), &image, options);
    // A wrong image would be wrong again. After other errors the next pull goes on.
    if matches!(pulled, Ok(_) | Err(Error::BadAnswer { .. } | Error::NotATemplate { .. })) {
        arrivals.clear();
    }
    pulled
}

/// An image whose manifest was read. Whatever its tag stands for later is another one.
struct Image<'a> {
    registry: &'a Registry<'a>,
    arrivals: &'a Arrivals,
    manifest: &'a ImageManifest,
    digest: &'a str,
}

fn receive(
    templates: &Templates,
    reference: &Reference,
    (name, old): (&str, Option<Template>),
    image: &Image<'_>,
    options: &PullOptions,
) -> Result<PullReport, Error> {
    let Image { registry, arrivals, manifest, digest } = image;
    let (reuse, known) = Reuse::of(templates, old.as_ref()).unzip();
    let (sent, manifest_bytes) = manifest::fetch(reference, (registry, arrivals), manifest, known)?;
    let key = sent.key();
    let pulled = |template, is_up_to_date, swept| PullReport {
        template,
        digest: (*digest).to_owned(),
        key: key.clone(),
        fetched_bytes: manifest_bytes,
        reused_bytes: 0,
        is_up_to_date,
        swept,
    };
    if let (Some(old), true) = (&old, reuse.as_ref().is_some_and(|reuse| reuse.key == key)) {
        return Ok(pulled(old.clone(), true, SweptTemplates::default()));
    }
    let layers = ranges(reference, manifest, &sent)?;
    let fetched = AtomicU64::new(0);
    let reused = AtomicU64::new(0);
    let pull = Pull { sent: &sent, registry, arrivals, reuse, fetched: &fetched, reused: &reused, options };
    let origin = PathBuf::from(format!("{ORIGIN}{reference}"));
    let made = templates.receive(name, &origin, (&sent, old.as_ref()), &options.template, |root, checked| {
        pull.fill(root, &layers, checked)
    });
    let ReceivedTemplate { template, swept, .. } = match made {
        Ok(received) => received,
        Err(error) => {
            return made_meanwhile(templates, name, &key, error)
                .map(|template| pulled(template, true, SweptTemplates::default()));
        }
    };
    let (fetched, reused) = (fetched.into_inner(), reused.into_inner());
    Ok(PullReport { fetched_bytes: manifest_bytes + fetched, reused_bytes: reused, ..pulled(template, false, swept) })
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

/// Returns the template that another pull has made meanwhile, if it is the same one: two that pull the same at once are both content.
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
        if layer.size > 2 * layer::largest(template, range, range) {
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
    /// Returns also the manifest. `None` if there is none, or if it cannot be used: then everything is fetched.
    fn of(templates: &Templates, old: Option<&Template>) -> Option<(Self, String)> {
        let held = templates.hold(&old?.name).ok()?;
        let template = templates.portable(&held).ok()?;
        let key = template.key();
        let file = |entry: calve_core::PortableEntry| match entry.kind {
            PortableKind::File { size, hash } if size > 0 => Some((hash, entry.path)),
            _ => None,
        };
        let files = template.entries.into_iter().filter_map(file).collect();
        Some((Self { held, key, files }, template.text))
    }
}

/// Takes the contents of an entry.
type ContentsReceiver<'r> = dyn FnMut(usize, &mut dyn Read) -> Result<(), Error> + 'r;

fn unreadable(error: std::io::Error) -> Error {
    Error::io(Operation::ReadPart, "", error)
}

/// Returns whether a part of a blob has these frames.
fn are_right(frames: &[Frame], part: &mut Spool) -> Result<bool, Error> {
    let mut reader = part.reader()?;
    for frame in frames {
        if !frame.check(&mut reader).map_err(unreadable)? {
            return Ok(false);
        }
    }
    Ok(true)
}

struct Pull<'a> {
    sent: &'a PortableTemplate,
    registry: &'a Registry<'a>,
    arrivals: &'a Arrivals,
    reuse: Option<Reuse>,
    fetched: &'a AtomicU64,
    reused: &'a AtomicU64,
    options: &'a PullOptions,
}

impl Pull<'_> {
    /// Makes the tree in an empty directory.
    fn fill(self, root: &Path, layers: &[(&Descriptor, Range<usize>)], checked: &CheckedFiles) -> Result<(), Error> {
        if self.reuse.is_none() {
            check_room(root, 1, self.sent.bytes())?;
        }
        let mut parents = Parents::open(root)?;
        parents.make_directories(self.sent)?;
        each(layers, self.options.template.threads, |(layer, range)| self.layer(root, (layer, range), checked))?;
        parents.finish(self.sent)
    }

    fn layer(
        &self,
        root: &Path,
        (layer, range): (&Descriptor, &Range<usize>),
        checked: &CheckedFiles,
    ) -> Result<(), Error> {
        let mut parents = Parents::open(root)?;
        let missing = self.reuse_files(&mut parents, range, checked)?;
        if missing.contains(&true) {
            let is_missing = |index: usize| missing[index - range.start];
            let mut receive = |index: usize, contents: &mut dyn Read| match is_missing(index) {
                true => parents.make_file((index, &self.sent.entries[index]), contents, checked),
                false => Ok(()),
            };
            if !self.frames(layer, range, &is_missing, &mut receive)? {
                let mut blob = self.registry.blob(layer, self.arrivals.spool(layer, &(0..layer.size))?)?;
                self.fetched.fetch_add(blob.fetched(), Ordering::Relaxed);
                self.read(range, range, blob.reader()?, &mut receive)?;
            }
        }
        let (entries, bytes) = image::amount(self.sent, range);
        self.options.template.progress.add(entries, bytes);
        Ok(())
    }

    /// Fetches the frames that have missing files. Returns whether it did: it does not if most of them have, or if the registry has no parts.
    fn frames(
        &self,
        layer: &Descriptor,
        range: &Range<usize>,
        is_missing: &dyn Fn(usize) -> bool,
        receive: &mut ContentsReceiver<'_>,
    ) -> Result<bool, Error> {
        let parsed = layer.annotations.get(FRAMES).and_then(|text| frames::parse(text, range.start, layer.size));
        let is_good = |frames: &Vec<Frame>| frames.last().is_some_and(|last| last.has.end == range.end);
        let Some(frames) = parsed.filter(is_good) else { return Ok(false) };
        self.arrivals.fetch_frames(
            (self.registry, layer),
            (&frames, 0),
            &|frame| frame.has.clone().any(is_missing),
            &mut |run, bytes, spool| self.run(layer, range, (run, bytes), spool, receive),
        )
    }

    /// Fetches the rest of these frames, checks them, and makes their files. Returns false if the registry has no parts.
    fn run(
        &self,
        layer: &Descriptor,
        range: &Range<usize>,
        (frames, bytes): (&[Frame], &Range<u64>),
        spool: Spool,
        receive: &mut ContentsReceiver<'_>,
    ) -> Result<bool, Error> {
        let is_right = &mut |part: &mut Spool| are_right(frames, part);
        let part = self.registry.checked_part(layer, bytes, spool, is_right, OTHER_HASH)?;
        let Some(mut part) = part else { return Ok(false) };
        self.fetched.fetch_add(part.fetched(), Ordering::Relaxed);
        let mut reader = part.reader()?;
        for frame in frames {
            let mut compressed = (&mut reader).take(frame.size());
            self.read(range, &frame.has, &mut compressed, receive)?;
            std::io::copy(&mut compressed, &mut std::io::sink()).map_err(unreadable)?;
        }
        Ok(true)
    }

    fn read(
        &self,
        range: &Range<usize>,
        part: &Range<usize>,
        compressed: impl Read,
        receive: &mut ContentsReceiver<'_>,
    ) -> Result<(), Error> {
        layer::read(self.sent, range, part, compressed, receive, |what| self.registry.wrong(what))
    }

    /// Makes the files whose contents are here. Returns for each entry whether it is a file that is missing.
    fn reuse_files(
        &self,
        parents: &mut Parents,
        range: &Range<usize>,
        checked: &CheckedFiles,
    ) -> Result<Vec<bool>, Error> {
        let mut old = self.reuse.as_ref().map(|reuse| Parents::open(&reuse.held.tree)).transpose()?;
        let mut missing = Vec::with_capacity(range.len());
        for (number, entry) in range.clone().zip(&self.sent.entries[range.clone()]) {
            self.registry.still_wanted()?;
            let PortableKind::File { size, hash } = entry.kind else {
                missing.push(false);
                continue;
            };
            let is_made = match (&mut old, &self.reuse) {
                _ if size == 0 => parents.make_file((number, entry), &mut std::io::empty(), checked).map(|()| true)?,
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
