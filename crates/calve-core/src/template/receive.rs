//! Receives templates from other machines.

use std::collections::HashMap;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::Stat;

use super::create::{TemplateOptions, freeze};
use super::manifest::{Manifest, shown};
use super::name;
use super::portable::{PortabilityObstacle, PortableKind, PortableTemplate, portable_lines};
use super::record::{TREE, Template};
use super::store::{self, ReservedVersion, SweptTemplates, open_tree};
use super::templates::{HeldTemplate, Templates};
use crate::error::{Error, IoContext, TemplateError};
use crate::strategy::make_snapshotable_directory;
use crate::sys;
use crate::tree::location::canonical;
use crate::tree::pool::joined;
use crate::tree::stable::Moment;
use crate::vocabulary::hidden_name::templates_directory;
use crate::vocabulary::operation::Operation;
use crate::vocabulary::strategy::Strategy;

const SYNC_EVERY: Duration = Duration::from_secs(1);

/// Files whose contents were verified while they were written, so that they need not be read again.
#[derive(Debug, Default)]
pub struct CheckedFiles {
    /// The entry's index and the file's change time, which shows a later change unless it is in the same clock tick.
    by_inode: Mutex<HashMap<u64, (usize, Moment)>>,
}

impl CheckedFiles {
    /// Records that an open file has the contents of the entry with this index. It must not change afterwards.
    pub fn add(&self, file: BorrowedFd<'_>, entry: usize) -> std::io::Result<()> {
        let stat = rustix::fs::fstat(file)?;
        let checked = (entry, Moment::of_change(&stat));
        self.by_inode.lock().unwrap_or_else(PoisonError::into_inner).insert(stat.st_ino, checked);
        Ok(())
    }

    fn hash(&self, stat: &Stat, sent: &PortableTemplate) -> Option<blake3::Hash> {
        let by_inode = self.by_inode.lock().unwrap_or_else(PoisonError::into_inner);
        let (entry, _) = by_inode.get(&stat.st_ino).filter(|(_, changed)| *changed == Moment::of_change(stat))?;
        match sent.entries.get(*entry)?.kind {
            PortableKind::File { size, hash } if stat.st_size.unsigned_abs() == size => Some(hash.into()),
            _ => None,
        }
    }
}

impl Templates {
    /// Returns the portable part of a template. Fails with [`TemplateError::NotPortable`] if an entry would change who
    /// may do what on another machine.
    pub fn portable(&self, template: &HeldTemplate) -> Result<PortableTemplate, Error> {
        let not_portable = |refused: PortabilityObstacle| TemplateError::NotPortable {
            name: template.name.clone(),
            path: shown(&refused.path),
            what: refused.what,
        };
        Ok(PortableTemplate::of_manifest(&store::read_manifest(template)?).map_err(not_portable)?)
    }

    /// Makes a template of the empty directory that `fill` fills, once it is on the disk and equals `sent` in all that
    /// travels. Replaces `old` if that still has the name. Returns it with the fate of the replaced version.
    ///
    /// # Errors
    /// Fails as `fill` does, with [`TemplateError::NotAsSent`] if the tree differs, and with [`TemplateError::Exists`]
    /// if the name is taken and there is no `old`. Leaves nothing behind.
    pub fn receive<E: From<Error>>(
        &self,
        name: &str,
        origin: &Path,
        (sent, old): (&PortableTemplate, Option<&Template>),
        options: &TemplateOptions,
        fill: impl FnOnce(&Path, &CheckedFiles) -> Result<(), E>,
    ) -> Result<(Template, SweptTemplates), E> {
        name::check(name).map_err(Error::from)?;
        let directory = || {
            let at = options.at.as_deref().map(|at| Ok::<_, Error>(canonical(at)?.join(templates_directory())));
            Ok(at.transpose()?.unwrap_or_else(|| self.store.trees()))
        };
        let (template, (), swept) = self.make_version(name, old, directory, |reserved| {
            build(reserved, origin, sent, options, fill).map(|template| (template, ()))
        })?;
        Ok((template, swept))
    }
}

fn build<E: From<Error>>(
    reserved: &ReservedVersion,
    origin: &Path,
    sent: &PortableTemplate,
    options: &TemplateOptions,
    fill: impl FnOnce(&Path, &CheckedFiles) -> Result<(), E>,
) -> Result<Template, E> {
    let tree = reserved.directory.join(TREE);
    make_snapshotable_directory(&tree)?;
    let opened = open_tree(&tree)?;
    let sync = || sys::sync_file_system(opened.as_fd()).io(Operation::Sync, &tree);
    let checked = CheckedFiles::default();
    let (filled, synced) = sync_during(opened.as_fd(), || fill(&tree, &checked));
    filled?;
    synced.io(Operation::Sync, &tree)?;
    options.cancel.check()?;
    let known = |stat: &Stat| checked.hash(stat, sent);
    let (synced, frozen) = std::thread::scope(|scope| {
        let synced = scope.spawn(sync);
        let frozen = freeze(reserved, (origin, &[], Strategy::Copy), Some(&known), options);
        (joined(synced), frozen)
    });
    let (template, manifest) = frozen?;
    synced?;
    compare(&reserved.name, &manifest, sent)?;
    Ok(template)
}

/// Runs `write` and syncs its file system every second, so that little is left for the caller's last sync. Returns also
/// the first error of a sync, because the kernel reports it only once.
pub fn sync_during<T>(file_system: BorrowedFd<'_>, write: impl FnOnce() -> T) -> (T, std::io::Result<()>) {
    std::thread::scope(|scope| {
        let (end, ended) = mpsc::channel::<()>();
        let synced = scope.spawn(move || {
            while ended.recv_timeout(SYNC_EVERY) == Err(RecvTimeoutError::Timeout) {
                sys::sync_file_system(file_system)?;
            }
            Ok(())
        });
        let written = write();
        drop(end);
        (written, joined(synced))
    })
}

fn compare(name: &str, found: &Manifest, sent: &PortableTemplate) -> Result<(), Error> {
    let not_as_sent = |path: &[u8]| TemplateError::NotAsSent { name: name.into(), path: shown(path) };
    // The file system added an attribute.
    let in_the_way = |refused: PortabilityObstacle| not_as_sent(&refused.path);
    let mut entries = sent.entries.iter();
    for line in portable_lines(&found.text).map_err(in_the_way)? {
        let line = line.map_err(in_the_way)?;
        let entry = entries.next().ok_or_else(|| not_as_sent(b""))?;
        if sent.text[entry.line.clone()] != line {
            return Err(not_as_sent(&entry.path).into());
        }
    }
    entries.next().map_or(Ok(()), |entry| Err(not_as_sent(&entry.path).into()))
}
