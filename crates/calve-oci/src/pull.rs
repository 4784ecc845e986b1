use std::collections::HashMap;
use std::io::Read;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use calve_core::error::TemplateError;
use calve_core::internal::{CheckedFiles, NewEntries, PortableEntry, PortableKind, PortableTemplate};
use calve_core::template::{HeldTemplate, SweptTemplates, Template, TemplateOptions, Templates};

use crate::arrivals::Arrivals;
use crate::assemble::{Parents, check_room, room_of};
use crate::data::ReceivedBytes;
use crate::error::Error;
use crate::fetch::{Fetcher, Run};
use crate::frames::{self, Frame};
use crate::image::{self, Descriptor, ENGINE, FRAMES, KEY};
use crate::manifest::{FetchedTemplate, Image};
use crate::reference::Reference;
use crate::registry::{Registry, RegistryOptions};
use crate::revision::Listing;
use crate::spool::Spool;
use crate::work::each;
use crate::{layer, manifest, newest};

#[derive(Debug)]
pub struct PullReport {
    pub template: Template,
    pub digest: String,
    /// Key of the portable contents: equal templates have the same one on every machine.
    pub key: String,
    pub received: ReceivedBytes,
    /// True if the template already matched the image, so nothing was made.
    pub is_up_to_date: bool,
    /// Fate of the version that it replaced.
    pub swept: SweptTemplates,
}

/// Receives a template from a registry. It appears under its name once it is complete, checked and on the disk, and
/// replaces a template of that name from the same repository.
///
/// # Errors
/// Fails with [`Error::NameTaken`] if the one of that name is from elsewhere. A failed pull leaves no template, only
/// the parts that have arrived: the next pull continues from them.
pub fn pull(
    templates: &Templates,
    reference: &Reference,
    name: &str,
    options: &RegistryOptions,
) -> Result<PullReport, Error> {
    let old = old(templates, reference, name)?;
    let registry = Registry::open(reference, options)?;
    let (bytes, digest) = registry.manifest(&reference.version)?;
    let manifest = image::read_image(reference, &bytes)?;
    if !manifest.annotations.contains_key(KEY) {
        return Err(image::of_another_kind(reference, &manifest, ENGINE));
    }
    let arrivals = Arrivals::open(templates)?;
    let image = Image { registry: &registry, arrivals: &arrivals, manifest: &manifest };
    let pulled = receive(templates, &image, (name, old), &digest);
    arrivals.end(&pulled);
    let pulled = pulled?;
    // Without the note, a push to a new tag sends more, and its report says so.
    let _ = newest::note(templates, reference, &digest);
    Ok(pulled)
}

fn receive(
    templates: &Templates,
    image: &Image<'_>,
    (name, old): (&str, Option<Template>),
    digest: &str,
) -> Result<PullReport, Error> {
    let (reuse, known) = Reuse::from_template(templates, old.as_ref()).unzip();
    let known = reuse.as_ref().map(|reuse| &*reuse.key).zip(known);
    let mut sent = manifest::fetch(image, known)?;
    let same = reuse.as_ref().filter(|reuse| reuse.key == sent.key);
    let TemplateOptions { threads, cancel, at, .. } = image.registry.options;
    let place = old.as_ref().and_then(|old| old.at.as_ref());
    let is_at = |at: &PathBuf| fs_err::canonicalize(at).is_ok_and(|at| place == Some(&at));
    let is_here = match same.map(|reuse| reuse.held.check_entries(*threads, cancel)) {
        Some(Err(calve_core::Error::Template(TemplateError::Changed { .. }))) => Some(false),
        checked => checked.transpose()?.map(|()| at.as_ref().is_none_or(is_at)),
    };
    if is_here == Some(false) {
        // It was changed, or is to be elsewhere. The listings were left out, as if nothing had to be made.
        sent = manifest::fetch(image, None)?;
    }
    let up_to_date = |template| PullReport {
        template,
        digest: digest.to_owned(),
        key: sent.key.clone(),
        received: ReceivedBytes { fetched_bytes: sent.fetched_bytes, reused_bytes: 0 },
        is_up_to_date: true,
        swept: SweptTemplates::default(),
    };
    if let (Some(old), Some(true)) = (&old, is_here) {
        return Ok(up_to_date(old.clone()));
    }
    let fetched = AtomicU64::new(sent.fetched_bytes);
    let reused = AtomicU64::new(0);
    let origin = PathBuf::from(format!("{ORIGIN}{}", image.registry.reference));
    let (versions, options) = ((&*sent.template, old.as_ref()), image.registry.options);
    let made = templates.receive(name, &origin, versions, options, |root, checked| {
        // The previous version is released once the tree is filled: the comparison takes the most memory.
        let reuse = reuse;
        let (reuse, fetched, reused) = (reuse.as_ref(), &fetched, &reused);
        Pull { image, sent: &sent, root, checked, reuse, fetched, reused }.fill()
    });
    let (template, swept) = match made {
        Ok(received) => received,
        Err(error) => return made_meanwhile(templates, name, &sent.key, error).map(up_to_date),
    };
    let received = ReceivedBytes { fetched_bytes: fetched.into_inner(), reused_bytes: reused.into_inner() };
    Ok(PullReport { received, is_up_to_date: false, swept, ..up_to_date(template) })
}

const ORIGIN: &str = "oci:";

pub fn origin(template: &Template) -> Option<&str> {
    template.source.to_str()?.strip_prefix(ORIGIN)
}

fn old(templates: &Templates, reference: &Reference, name: &str) -> Result<Option<Template>, Error> {
    let old = match templates.find(name) {
        Err(calve_core::Error::Template(TemplateError::Unknown(_))) => return Ok(None),
        found => found?,
    };
    reference.check_replaces(name, origin(&old))?;
    Ok(Some(old))
}

/// Returns the template that a concurrent pull has made, if it is the same one: both pulls succeed then.
fn made_meanwhile(templates: &Templates, name: &str, key: &str, error: Error) -> Result<Template, Error> {
    use calve_core::Error::Template as Failed;
    if let Error::Core(Failed(TemplateError::Exists(_) | TemplateError::Superseded(_))) = &error {
        let held = templates.hold(name)?;
        if templates.portable(&held)?.key() == key {
            return Ok((*held).clone());
        }
        return Err(calve_core::Error::from(TemplateError::Superseded(name.to_owned())).into());
    }
    Err(error)
}

struct Reuse {
    held: HeldTemplate,
    key: String,
    files: HashMap<[u8; 32], Vec<u8>>,
    /// Includes repeated contents, which `files` has once.
    sizes: Vec<u64>,
}

impl Reuse {
    /// Returns also the manifest. Without a usable old template (`None`), everything is fetched.
    fn from_template(templates: &Templates, old: Option<&Template>) -> Option<(Self, Arc<PortableTemplate>)> {
        let held = templates.hold(&old?.name).ok()?;
        let template = templates.portable(&held).ok()?;
        let key = template.key();
        let (mut files, mut sizes) = (HashMap::new(), Vec::new());
        for PortableEntry { path, kind, .. } in &template.entries {
            let PortableKind::File { size, hash } = *kind else { continue };
            sizes.push(size);
            if size > 0 {
                files.insert(hash, path.clone());
            }
        }
        Some((Self { held, key, files, sizes }, Arc::new(template)))
    }
}

/// Entries of one layer. Without a layer, the targets are entries that only layers with unknown entries have.
#[derive(Clone, Copy)]
struct Share<'a> {
    layer: Option<&'a Descriptor>,
    entries: &'a PortableTemplate,
    range: &'a Range<usize>,
    /// The number in the template of each of `entries`.
    targets: &'a [Option<usize>],
}

fn are_right(frames: &[Frame], part: &mut Spool) -> Result<bool, Error> {
    let unreadable = part.unreadable();
    let mut reader = part.reader()?;
    for frame in frames {
        if !frame.check(&mut reader).map_err(&unreadable)? {
            return Ok(false);
        }
    }
    Ok(true)
}

#[derive(Clone, Copy)]
struct Pull<'a> {
    image: &'a Image<'a>,
    sent: &'a FetchedTemplate<'a>,
    root: &'a Path,
    checked: &'a CheckedFiles,
    reuse: Option<&'a Reuse>,
    fetched: &'a AtomicU64,
    reused: &'a AtomicU64,
}

impl Pull<'_> {
    fn fill(self) -> Result<(), Error> {
        let template = &*self.sent.template;
        let mut parents = Parents::open(self.root)?;
        let mut needed = room_of(parents.root(), template);
        if let Some(reuse) = self.reuse {
            // A new version may share the blocks of these files.
            let mut here = NewEntries::in_directory(parents.root());
            reuse.sizes.iter().for_each(|&size| here.add_file(size));
            needed.share_contents(&here);
        }
        check_room((parents.root(), self.root), 1, &needed)?;
        parents.make_directories(template)?;
        let missing = self.fill_listings(&self.sent.listings)?;
        if !missing.is_empty() {
            self.fill_missing(&missing)?;
        }
        parents.finish(template)
    }

    /// Makes the files of these entries. Returns the numbers of those that are neither here nor in a known layer.
    fn fill_listings(self, listings: &[Listing<'_>]) -> Result<Vec<usize>, Error> {
        // The last revision first: its layers have the new files, and are fetched while local files are copied.
        let shares = listings.iter().rev().flat_map(|Listing { layers, entries, targets }| {
            layers.iter().map(move |(layer, range)| Share { layer: *layer, entries, range, targets })
        });
        let shares: Vec<_> = shares.collect();
        let missing = each(&shares, self.image.registry.options.threads, |share| self.share(*share))?;
        Ok(missing.into_iter().flatten().collect())
    }

    /// Fetches files that the damaged local version lacks. All manifests are needed to find them in the layers.
    fn fill_missing(self, missing: &[usize]) -> Result<(), Error> {
        let mut sent = manifest::fetch(self.image, None)?;
        self.fetched.fetch_add(sent.fetched_bytes, Ordering::Relaxed);
        let mut is_missing = vec![false; self.sent.template.entries.len()];
        missing.iter().for_each(|&number| is_missing[number] = true);
        for target in sent.listings.iter_mut().flat_map(|listing| &mut listing.targets) {
            *target = target.filter(|&number| is_missing[number]);
        }
        Self { reuse: None, ..self }.fill_listings(&sent.listings).map(drop)
    }

    fn share(self, share: Share<'_>) -> Result<Vec<usize>, Error> {
        let missing = self.reuse_files(share)?;
        let mut rest = Vec::new();
        match share.layer {
            Some(layer) if missing.iter().any(Option::is_some) => self.fetch(layer, share, &missing)?,
            _ => rest.extend(missing.into_iter().flatten()),
        }
        let entries = share.range.clone().filter_map(|index| share.targets[index]);
        let (entries, bytes) = image::amount(entries.map(|number| &self.sent.template.entries[number]));
        self.image.registry.options.progress.add(entries, bytes);
        Ok(rest)
    }

    /// Fetches a layer's missing files: their frames, or all of it if most are missing or the registry ignores ranges.
    fn fetch(self, layer: &Descriptor, share: Share<'_>, missing: &[Option<usize>]) -> Result<(), Error> {
        let Image { registry, arrivals, .. } = *self.image;
        let receive = |run: &Run<'_, Frame>, part: &mut Spool| {
            if !are_right(run.parts, part)? {
                return Ok(false);
            }
            let mut parents = Parents::open(self.root)?;
            let unreadable = part.unreadable();
            let mut reader = part.reader()?;
            for frame in run.parts {
                let mut compressed = (&mut reader).take(frame.size());
                self.read(&mut parents, (share, missing, &frame.has), &mut compressed)?;
                std::io::copy(&mut compressed, &mut std::io::sink()).map_err(&unreadable)?;
            }
            Ok(true)
        };
        // Each layer has a thread.
        let threads = NonZeroUsize::new(1);
        let fetcher = Fetcher { registry, arrivals, threads, fetched: self.fetched, receive: &receive };
        let frames = layer.annotations.get(FRAMES);
        let frames = frames.and_then(|text| frames::parse(text, share.range.start, layer.size));
        let is_good = |frames: &Vec<Frame>| frames.last().is_some_and(|last| last.has.end == share.range.end);
        let is_missing = |frame: &Frame| frame.has.clone().any(|index| missing[index - share.range.start].is_some());
        if let Some(frames) = frames.filter(is_good)
            && fetcher.fetch_frames(layer, (&frames, 0), &is_missing)?
        {
            return Ok(());
        }
        let mut parents = Parents::open(self.root)?;
        self.read(&mut parents, (share, missing, share.range), fetcher.blob(layer)?.reader()?)
    }

    fn read(
        self,
        parents: &mut Parents,
        (share, missing, part): (Share<'_>, &[Option<usize>], &Range<usize>),
        compressed: impl Read,
    ) -> Result<(), Error> {
        let receive = |index: usize, contents: &mut dyn Read| match missing[index - share.range.start] {
            Some(number) => parents.make_file((number, &self.sent.template.entries[number]), contents, self.checked),
            None => Ok(()),
        };
        let wrong = |what: &str| self.image.registry.wrong(what);
        layer::read(share.entries, share.range, part, compressed, receive, wrong)
    }

    /// Makes the files whose contents are here. Returns, for each entry, the number in the template of a missing file.
    fn reuse_files(self, share: Share<'_>) -> Result<Vec<Option<usize>>, Error> {
        let mut parents = Parents::open(self.root)?;
        let old = self.reuse.map(|reuse| Parents::open(&reuse.held.tree)).transpose()?;
        let mut old = old.zip(self.reuse);
        let mut missing = vec![None; share.range.len()];
        for (missing, target) in missing.iter_mut().zip(&share.targets[share.range.clone()]) {
            self.image.registry.options.cancel.check()?;
            let Some(number) = *target else { continue };
            let entry = &self.sent.template.entries[number];
            let PortableKind::File { size, hash } = entry.kind else { continue };
            if size == 0 {
                parents.make_file((number, entry), &mut std::io::empty(), self.checked)?;
                continue;
            }
            let file = old.as_mut().and_then(|(old, reuse)| old.open_file(reuse.files.get(&hash)?).ok());
            match file.map(|file| parents.make_file_of(entry, file)).transpose()? {
                Some(true) => _ = self.reused.fetch_add(size, Ordering::Relaxed),
                _ => *missing = Some(number),
            }
        }
        Ok(missing)
    }
}
