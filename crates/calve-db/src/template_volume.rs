//! Data of templates in volumes of a Docker engine that does not see this machine's files.
//!
//! A template has a copy there, which is filled once, written down in the home, and kept until the template is gone. Each note has a lock of
//! its own, so filling one volume does not block the others.

use std::fs::File;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use calve_core::{CancelToken, Strategy};
use fs_err as fs;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::container::{Container, Image, Volume};
use crate::error::{Error, Result};
use crate::files::private::{self, CLOSED};
use crate::operation::Operation;
use crate::registry;
use crate::template;

/// The directory of the notes about templates' volumes.
const NOTES: &str = "volumes";
/// The extensions of a volume's files there: its note, and its lock, exclusive to fill the volume and shared to read the note.
const NOTE: &str = "json";
const LOCK: &str = "lock";
/// How often a lock that somebody holds is tried.
const TRY_EVERY: Duration = Duration::from_millis(50);

/// Clones a volume by reflinks, or prints why they are not available, and copies it. `$0` is `reflink`, `copy`, or `any`: the first that
/// works.
const CLONE: &str = r#"export LC_ALL=C
if [ "$0" != copy ]; then
    if said=$(cp -a --reflink=always /template/. /calve/ 2>&1); then echo reflink; exit; fi
    case $said in
        *"ot supported"* | *"ross-device"* | *"nappropriate ioctl"* | *"ot a tty"* | *"nvalid argument"* | *"nrecognized option"*) ;;
        *) echo "$said" >&2; exit 1 ;;
    esac
    rm -rf /calve/*
fi
[ "$0" = reflink ] || cp -a /template/. /calve/ || exit
echo copy
echo "$said""#;

/// Tries what a server does on an overlay. In some user namespaces files can be written to, but nothing of the lower directory can be removed
/// and made again.
const TRY: &str = r#"[ -d /calve/data ] && rm -r /calve/tmp && mkdir /calve/tmp && : >/calve/tmp/tried && exit
echo 'its directories cannot be replaced' >&2
exit 1"#;

/// The exit codes of [`TRY`], and those of Docker's client when the engine could not start a container.
const TRIED: RangeInclusive<i32> = 1..=2;
const NOT_STARTED: RangeInclusive<i32> = 125..=127;
/// The engine's words for a volume that it cannot mount.
const MOUNT_FAILED: [&str; 2] = ["failed to mount", "while mounting"];

/// How the engine has cloned a volume.
pub(crate) struct VolumeClone {
    pub(crate) strategy: Strategy,
    /// The better strategies, and why not.
    pub(crate) refused: Vec<(Strategy, String)>,
    pub(crate) took: Duration,
}

/// A volume with the data of a template.
#[derive(Debug, Serialize, Deserialize)]
struct TemplateVolume {
    image: Image,
    name: String,
    home: PathBuf,
    /// The template, and its state that the data is from.
    place: PathBuf,
    identity: String,
    /// Set when it is filled.
    filled: Option<Filled>,
}

/// The facts about a volume that is filled.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Filled {
    /// Its directory, as the engine sees it.
    directory: String,
    /// Why no overlay can be mounted on it, if none can.
    no_overlay: Option<String>,
}

/// The state of a volume, according to its note.
enum Noted {
    Nothing,
    /// It was not filled to its end, or is gone.
    Unfilled(TemplateVolume),
    Filled(TemplateVolume, Filled),
}

/// Makes the volume of a container, a clone of the data of the template in `place`, whose lock is `lock`. Returns `None` if another template
/// has its place now.
pub(crate) fn clone_volume(
    container: &Container,
    place: &Path,
    lock: &File,
    strategy: Option<Strategy>,
    cancel: &CancelToken,
) -> Result<Option<VolumeClone>> {
    let Some((template, filled)) = TemplateVolume::of(container, place, lock, cancel)? else { return Ok(None) };
    let started = Instant::now();
    let unfit = |strategy, reason: &str| Error::Strategy { strategy, reason: reason.to_owned() };
    let mut refused = Vec::new();
    let way = match (strategy, filled.no_overlay) {
        (None | Some(Strategy::Overlay), None) => {
            container.volume().make_overlay(&template.name, &filled.directory)?;
            return Ok(Some(VolumeClone { strategy: Strategy::Overlay, refused, took: started.elapsed() }));
        }
        (Some(Strategy::Overlay), Some(reason)) => return Err(unfit(Strategy::Overlay, &reason)),
        (None, Some(reason)) => {
            refused.push((Strategy::Overlay, reason));
            "any"
        }
        (Some(strategy @ (Strategy::Reflink | Strategy::Copy)), _) => strategy.name(),
        (Some(strategy), _) => return Err(unfit(strategy, "Docker's engine knows overlays, reflinks and copies")),
    };
    let volume = container.volume();
    volume.make()?;
    let printed = volume.run(Some(&template.volume()), CLONE, way, cancel)?;
    let (how, said) = printed.split_once('\n').unwrap_or_default();
    let strategy = if how == Strategy::Reflink.name() { Strategy::Reflink } else { Strategy::Copy };
    let said = said.trim().lines().last().unwrap_or_default();
    match way {
        "reflink" if strategy == Strategy::Copy => return Err(unfit(Strategy::Reflink, said)),
        "any" if strategy == Strategy::Copy => refused.push((Strategy::Reflink, said.to_owned())),
        _ => {}
    }
    Ok(Some(VolumeClone { strategy, refused, took: started.elapsed() }))
}

impl TemplateVolume {
    /// Returns the volume of a template for the servers of a container's home, and what is known of it. Fills it first, if need be. Returns
    /// `None` if `lock` is not that of the template in `place` any more.
    fn of(container: &Container, place: &Path, lock: &File, cancel: &CancelToken) -> Result<Option<(Self, Filled)>> {
        let home = container.home().to_path_buf();
        let template = template::read(place);
        if !registry::is_lock_of(lock, place) {
            return Ok(None);
        }
        let identity = template.ok_or_else(|| template::missing(place))?.identity();
        let hash = blake3::hash(format!("{}\0{identity}", home.display()).as_bytes()).to_hex();
        let name = format!("calve-template-{}", &hash[..24]);
        let notes = home.join(NOTES);
        private::make_directory(&notes, CLOSED)?;
        let note = notes.join(&name).with_extension(NOTE);
        {
            let _shared = lock_of(&note, FlockOperation::NonBlockingLockShared, cancel)?;
            if let Noted::Filled(volume, filled) = Self::noted(&note)? {
                return Ok(Some((volume, filled)));
            }
        }
        let _alone = lock_of(&note, FlockOperation::NonBlockingLockExclusive, cancel)?;
        match Self::noted(&note)? {
            Noted::Filled(volume, filled) => return Ok(Some((volume, filled))),
            // Somebody may have been killed who was filling it.
            Noted::Unfilled(volume) => volume.volume().remove_late()?,
            Noted::Nothing => {}
        }
        let image = container.image.clone();
        let mut volume = Self { image, name, home, place: place.to_path_buf(), identity, filled: None };
        private::write_json(&note, &volume)?;
        let filled = volume.fill(cancel)?;
        if !registry::is_lock_of(lock, place) {
            // The data may be another template's. Unfilled, it goes with the next sweep.
            return Ok(None);
        }
        volume.filled = Some(filled.clone());
        private::write_json(&note, &volume)?;
        Ok(Some((volume, filled)))
    }

    fn volume(&self) -> Volume<'_> {
        Volume::of_template(&self.image, &self.name, &self.home, &self.identity)
    }

    /// Returns the state of a note's volume. Fails if it is unknown: the volume may be the lower layer of running servers, and must not be
    /// filled again.
    fn noted(note: &Path) -> Result<Noted> {
        let failed = |error| Error::io(Operation::Read, note, error);
        let text = match fs::read(note) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Noted::Nothing),
            read => read.map_err(failed)?,
        };
        let volume: Self = serde_json::from_slice(&text).map_err(|error| failed(error.into()))?;
        let there = if volume.filled.is_some() { volume.volume().find()? } else { None };
        Ok(match (volume.filled.clone(), there) {
            (Some(filled), Some(directory)) => Noted::Filled(volume, Filled { directory, ..filled }),
            // Somebody may have removed it.
            _ => Noted::Unfilled(volume),
        })
    }

    fn fill(&self, cancel: &CancelToken) -> Result<Filled> {
        let volume = self.volume();
        volume.fill(&self.place.join("data"), cancel)?;
        let directory = volume.directory()?;
        let trial = volume.beside("trial");
        let made = trial.make_overlay(&self.name, &directory);
        let tried = made.as_ref().map_or(Ok(String::new()), |()| trial.run(None, TRY, "", cancel));
        trial.remove()?;
        made?;
        let is_of_mount = |said: &str| MOUNT_FAILED.iter().any(|words| said.contains(words));
        let no_overlay = match tried {
            Ok(_) => None,
            Err(Error::Runtime { code: Some(code), said, .. })
                if TRIED.contains(&code) || NOT_STARTED.contains(&code) && is_of_mount(&said) =>
            {
                Some(said.lines().next().unwrap_or_default().to_owned())
            }
            // Any other failure says nothing of overlays.
            Err(error) => return Err(error),
        };
        Ok(Filled { directory, no_overlay })
    }

    /// Returns whether its template may be there as it was, or servers may still need it. An unreadable document counts as wanted: the volume
    /// may be the lower layer of servers that run.
    fn is_wanted(&self) -> bool {
        let may_be_it = |place: &Path| match template::read(place) {
            Some(found) => found.identity() == self.identity,
            None => !template::is_absent(place),
        };
        // Servers share the lock.
        let may_be_held = |place: &Path| match registry::open_lock(place) {
            Ok(lock) => rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err(),
            Err(Error::Io { source, .. }) => source.kind() != std::io::ErrorKind::NotFound,
            Err(_) => true,
        };
        // Listed last: a template that is just being replaced is in one of the two places.
        may_be_it(&self.place)
            || match self.place.parent().map(template::replaced) {
                Some(Ok(replaced)) => replaced.iter().any(|place| may_be_it(place) && may_be_held(place)),
                _ => true,
            }
    }
}

/// Removes the volumes of templates and marks that are gone, and half-filled ones. Returns the names of those that could not be removed,
/// and why: the next sweep tries again.
pub(crate) fn sweep(home: &Path) -> Vec<(String, Error)> {
    let (mut kept, mut hangs) = (Vec::new(), false);
    let Ok(entries) = fs::read_dir(home.join(NOTES)) else { return kept };
    let locks = entries.flatten().map(|entry| entry.path()).filter(|path| path.extension() == Some(LOCK.as_ref()));
    for path in locks {
        let note = path.with_extension(NOTE);
        if !is_left(&note) {
            continue;
        }
        // Its holder fills the volume, or is about to use it.
        let Ok(lock) = private::open(&path) else { continue };
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err()
            || !registry::is_lock_at(&lock, &path)
            // It may have been filled until then.
            || !is_left(&note)
        {
            continue;
        }
        let volume = read(&note);
        let name = volume.as_ref().map(|it| it.name.clone()).unwrap_or_default();
        let removed = volume.map_or(Ok(()), |it| match &it.filled {
            _ if hangs => Err(it.image.unasked()),
            Some(_) => it.volume().remove(),
            None => it.volume().remove_late(),
        });
        match removed {
            Ok(()) => {
                // The lock last: a process that waits for it sees that it is gone, and takes a new one.
                for path in [note, path] {
                    let _ = fs::remove_file(path);
                }
            }
            Err(error) => {
                // Each question to an engine that hangs takes as long.
                hangs |= matches!(error, Error::Runtime { code: None, .. });
                kept.push((name, error));
            }
        }
    }
    kept
}

/// Returns whether a note's volume is not needed, or there is no note. A note that cannot be read is kept.
fn is_left(note: &Path) -> bool {
    match read(note) {
        Some(volume) => volume.filled.is_none() || !volume.is_wanted(),
        None => !note.exists(),
    }
}

fn read(note: &Path) -> Option<TemplateVolume> {
    serde_json::from_slice(&fs::read(note).ok()?).ok()
}

/// Takes the lock of a note by an operation that does not block, for as long as somebody wants the server that waits for it.
fn lock_of(note: &Path, operation: FlockOperation, cancel: &CancelToken) -> Result<File> {
    let path = note.with_extension(LOCK);
    loop {
        let lock = private::open(&path)?;
        match rustix::fs::flock(&lock, operation) {
            Ok(()) if registry::is_lock_at(&lock, &path) => return Ok(lock),
            // A sweep has just removed it, or somebody has it, or there was a signal.
            Ok(()) | Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Err(errno) => return Err(Error::io(Operation::Lock, &path, errno)),
        }
        if cancel.is_cancelled() {
            return Err(Error::Interrupted);
        }
        std::thread::sleep(TRY_EVERY);
    }
}
