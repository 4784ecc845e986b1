//! What `calve probe --measure` found out, kept for the clones that follow: one small file for each file system.
//!
//! A file is believed when this user made it, nobody else can change it, and it is of this machine, kernel, file system and mount,
//! and not too old. Whatever else is found there is left alone and the built-in numbers are used, which is never wrong, only
//! slower.

mod document;
mod table;

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use calve_core::{Measurement, PlaceIdentity};
use fs_err as fs;

use crate::{home, sys};

pub(crate) use document::document;
pub(crate) use table::table;

const FOLDER: &str = "measured";
/// Programs and disks change more often than kernels do.
const KEPT_FOR: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// A file is about 2 kB.
const LARGEST_BYTES: u64 = 64 * 1024;

/// A measurement, and when it was made.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Measured {
    /// Seconds since 1970.
    pub(crate) at_unix_s: u64,
    pub(crate) measurement: Measurement,
}

impl Measured {
    pub(crate) fn now(measurement: Measurement) -> Self {
        Self { at_unix_s: unix_now(), measurement }
    }

    pub(crate) fn age(&self) -> Duration {
        Duration::from_secs(unix_now().saturating_sub(self.at_unix_s))
    }
}

/// What is kept for a place: `None` when it was never measured, and why what is there is of no use.
pub(crate) fn load(place: &PlaceIdentity) -> Result<Option<Measured>, String> {
    let Ok(path) = path(place) else { return Ok(None) };
    let text = match read_trusted(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let measured = document::parse(&text).ok_or("the file is damaged")?;
    fits(&measured, place)?;
    Ok(Some(measured))
}

/// What holds for the file system that clones to `dst` are made on. Whatever stands in the way is no reason not to clone.
pub(crate) fn for_place(dst: &Path) -> Option<Measurement> {
    // Who has never measured pays one call for this.
    if !home::directory().ok()?.join(FOLDER).is_dir() {
        return None;
    }
    let place = calve_core::identify(dst).ok()?;
    load(&place).ok()?.map(|measured| measured.measurement)
}

/// Whether it holds for `place`, now.
fn fits(measured: &Measured, place: &PlaceIdentity) -> Result<(), String> {
    let then = &measured.measurement.place;
    if then.machine != place.machine {
        return Err("it was made on another machine".into());
    }
    if then.kernel != place.kernel {
        return Err(format!("it was made under another kernel, {}", then.kernel));
    }
    if then.processors != place.processors {
        return Err(format!("it was made with another number of processors, {}", then.processors));
    }
    if then != place {
        return Err("it was made of another file system or mount".into());
    }
    if measured.age() > KEPT_FOR || measured.at_unix_s > unix_now() + 60 {
        return Err("it is too old".into());
    }
    Ok(())
}

/// Reads a file that only this user can have written.
fn read_trusted(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    sys::open_own_file(path)?.take(LARGEST_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// Keeps a measurement. Says why it could not be kept.
pub(crate) fn store(measured: &Measured) -> Result<(), String> {
    let path = path(&measured.measurement.place)?;
    let Some(folder) = path.parent() else { return Err("CALVE_HOME has no name".into()) };
    make_folder(folder)
        .and_then(|()| write(&path, folder, &document::kept(measured)))
        .map_err(|error| error.to_string())?;
    forget_old(folder);
    Ok(())
}

fn make_folder(folder: &Path) -> io::Result<()> {
    sys::make_private_folder(folder).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot create `{}`: {error}", calve_core::Shown(folder)))
    })
}

/// Complete or not at all, for whoever reads at the same time.
fn write(path: &Path, folder: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let staged = folder.join(name);
    let written = sys::create_private_file(&staged)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&staged, path));
    if written.is_err() {
        let _ = fs::remove_file(&staged);
    }
    written
}

/// File systems that are gone leave their files behind.
fn forget_old(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let old = |found: std::fs::Metadata| {
            found.is_file() && found.modified().is_ok_and(|at| at.elapsed().is_ok_and(|age| age > KEPT_FOR))
        };
        // The directory may be somebody's who keeps other things in it.
        if is_own_name(&entry.file_name().to_string_lossy()) && entry.metadata().is_ok_and(old) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Sixteen digits and `.json`, and while it is written a process id after that.
fn is_own_name(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some((word, rest)) = name.split_once(".json") else { return false };
    word.len() == 16
        && word.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        && (rest.is_empty() || rest.strip_prefix('.').is_some_and(digits))
}

/// The name tells file systems and mounts apart. Machine and kernel are in the file, so that a stale one is replaced.
fn path(place: &PlaceIdentity) -> Result<PathBuf, &'static str> {
    let words = format!("{}\n{}\n{}", place.file_system, place.volume, place.mount_options);
    Ok(home::directory()?.join(FOLDER).join(format!("{:016x}.json", fingerprint(words.as_bytes()))))
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo): short, stable over versions, no secret.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::is_own_name;

    #[test]
    fn only_names_of_its_own_are_forgotten() {
        for own in ["0123456789abcdef.json", "0123456789abcdef.json.4711"] {
            assert!(is_own_name(own), "{own}");
        }
        for foreign in
            ["thesis.csv", "0123456789abcdef.json.bak", "0123456789ABCDEF.json", "123.json", "0123456789abcdef"]
        {
            assert!(!is_own_name(foreign), "{foreign}");
        }
    }
}
