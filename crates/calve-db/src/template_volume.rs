//! Data of templates in volumes of a Docker engine that does not see this machine's files.
//!
//! A template has a copy there, which is filled once, written down in the home, and kept until the template is gone.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use calve_core::Strategy;
use fs_err as fs;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::container::{Container, Image, Volume};
use crate::error::{Error, Result};
use crate::files::private::{self, CLOSED};
use crate::operation::Operation;
use crate::registry;
use crate::template;

/// The directory of the notes about templates' volumes.
const NOTES: &str = "volumes";
/// Held by whoever fills a volume, and shared by those who look whether one is filled.
const LOCK: &str = ".lock";

/// Clones a volume by a reflink of each file, or prints why not and copies it. `$0` is the one way to take, if there is one.
const CLONE: &str = r#"if [ "$0" != copy ]; then
    if said=$(cp -a --reflink=always /template/. /calve/ 2>&1); then echo reflink; exit; fi
    rm -rf /calve/*
fi
[ "$0" = reflink ] || cp -a /template/. /calve/ || exit
echo copy
echo "$said""#;

/// Tries what a server does on an overlay.
const TRY: &str = "[ -d /calve/data ] && : >/calve/tmp/tried";

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

#[derive(Debug, Serialize, Deserialize)]
struct Filled {
    /// Its directory, as the engine sees it.
    directory: String,
    /// Why no overlay can be mounted on it, if none can.
    no_overlay: Option<String>,
}

/// Makes the volume of a container, a clone of the data of the template in `place`.
pub(crate) fn clone_volume(container: &Container, place: &Path, strategy: Option<Strategy>) -> Result<VolumeClone> {
    let template = TemplateVolume::of(container, place)?;
    let started = Instant::now();
    let (directory, no_overlay) =
        template.filled.as_ref().map_or(("", None), |filled| (filled.directory.as_str(), filled.no_overlay.clone()));
    let unfit = |strategy, reason: &str| Error::Strategy { strategy, reason: reason.to_owned() };
    let mut refused = Vec::new();
    let way = match (strategy, no_overlay) {
        (None | Some(Strategy::Overlay), None) => {
            container.volume().make_overlay(&template.name, directory)?;
            return Ok(VolumeClone { strategy: Strategy::Overlay, refused, took: started.elapsed() });
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
    let printed = volume.run(Some(&template.name), CLONE, way)?;
    let (how, said) = printed.split_once('\n').unwrap_or_default();
    let strategy = if how == Strategy::Reflink.name() { Strategy::Reflink } else { Strategy::Copy };
    let said = said.trim().lines().last().unwrap_or_default();
    match way {
        "reflink" if strategy == Strategy::Copy => return Err(unfit(Strategy::Reflink, said)),
        "any" if strategy == Strategy::Copy => refused.push((Strategy::Reflink, said.to_owned())),
        _ => {}
    }
    Ok(VolumeClone { strategy, refused, took: started.elapsed() })
}

impl TemplateVolume {
    /// Returns the volume of a template for the servers of a container's home. Fills it first, if need be.
    fn of(container: &Container, place: &Path) -> Result<Self> {
        let home = container.home().to_path_buf();
        let identity = template::read(place).map(|template| template.identity()).unwrap_or_default();
        let hash = blake3::hash(format!("{}\0{identity}", home.display()).as_bytes()).to_hex();
        let name = format!("calve-template-{}", &hash[..24]);
        let notes = home.join(NOTES);
        private::make_directory(&notes, CLOSED)?;
        let note = notes.join(format!("{name}.json"));
        let lock = private::open(&notes.join(LOCK))?;
        for operation in [FlockOperation::LockShared, FlockOperation::LockExclusive] {
            registry::wait_for(&lock, operation).map_err(|errno| Error::io(Operation::Lock, &notes, errno))?;
            if let Some(volume) = read(&note).filter(Self::is_there) {
                return Ok(volume);
            }
        }
        let image = container.image.clone();
        let mut volume = Self { image, name, home, place: place.to_path_buf(), identity, filled: None };
        private::write_json(&note, &volume)?;
        volume.filled = Some(volume.fill()?);
        private::write_json(&note, &volume)?;
        Ok(volume)
    }

    fn volume(&self) -> Volume<'_> {
        Volume::of_template(&self.image, &self.name, &self.home, &self.identity)
    }

    /// Returns whether it is filled, and nobody has removed it since.
    fn is_there(&self) -> bool {
        let Some(filled) = &self.filled else { return false };
        self.volume().directory().is_ok_and(|directory| directory == filled.directory)
    }

    fn fill(&self) -> Result<Filled> {
        let volume = self.volume();
        // Somebody may have been killed who was filling it.
        volume.remove()?;
        volume.fill(&self.place.join("data"))?;
        let directory = volume.directory()?;
        let trial = volume.beside("trial");
        let tried = trial.make_overlay(&self.name, &directory).and_then(|()| trial.run(None, TRY, ""));
        trial.remove()?;
        let no_overlay = match tried {
            Ok(_) => None,
            Err(Error::Runtime { said, .. }) => Some(said.lines().next().unwrap_or_default().to_owned()),
            Err(error) => return Err(error),
        };
        Ok(Filled { directory, no_overlay })
    }

    /// Returns whether its template is there as it was, or servers still need it.
    fn is_wanted(&self) -> bool {
        let is_it = |place: &Path| template::read(place).is_some_and(|found| found.identity() == self.identity);
        let is_held = |place: &Path| {
            let lock = registry::open_lock(place).ok();
            lock.is_some_and(|lock| rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err())
        };
        let replaced = self.place.parent().map(template::replaced).and_then(Result::ok).unwrap_or_default();
        is_it(&self.place) || replaced.iter().any(|place| is_it(place) && is_held(place))
    }
}

/// Removes the volumes of templates and marks that are gone, and those that nobody fills any more. Where an engine does not answer, they wait
/// for the next time.
pub(crate) fn sweep(home: &Path) {
    let Ok(notes) = fs::read_dir(home.join(NOTES)) else { return };
    let is_left = |volume: &TemplateVolume| volume.filled.is_none() || !volume.is_wanted();
    for note in notes.flatten().map(|entry| entry.path()).filter(|note| read(note).is_some_and(|it| is_left(&it))) {
        let Ok(lock) = private::open(&home.join(NOTES).join(LOCK)) else { return };
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return;
        }
        // It may have been filled until then.
        if let Some(volume) = read(&note).filter(is_left)
            && volume.volume().remove().is_ok()
        {
            let _ = fs::remove_file(&note);
        }
    }
}

fn read(note: &Path) -> Option<TemplateVolume> {
    serde_json::from_slice(&fs::read(note).ok()?).ok()
}
