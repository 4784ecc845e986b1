//! A server's log, which the server can make as long as it likes.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use crate::error::{AtPath as _, Error, Result};
use crate::files::directory::Directory;

const LOG: &str = "log";
/// A disk with less room than this is full.
pub(crate) const LITTLE: u64 = 1 << 20;
/// The limit for reading a log's beginning, and for its end.
const MOST_OF_A_LOG: u64 = 16 << 20;
/// The lines of a log to show after a failure.
const LOG_LINES: usize = 12;
/// The bytes of a log to show on request, and to keep after a server's end.
const LAST_BYTES: u64 = 64 << 10;
/// Words in lines that tell a cause.
const REASONS: [&str; 4] = ["ERROR", "FATAL", "PANIC", FULL];
const FULL: &str = "No space left";

pub(crate) fn path(slot: &Path) -> PathBuf {
    slot.join(LOG)
}

/// Opens a server's log, and keeps that file whatever takes its name.
pub(crate) fn open(slot: &Path) -> Result<File> {
    let log = Directory::open(slot)?.file(LOG)?;
    log.ok_or(std::io::ErrorKind::NotFound).at("open", path(slot))
}

/// Returns the log, or the beginning and the end of a very long one.
pub(crate) fn read(mut log: &File) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    log.rewind()?;
    log.take(MOST_OF_A_LOG).read_to_end(&mut text)?;
    let length = log.metadata()?.len();
    log.seek(SeekFrom::Start(length.saturating_sub(MOST_OF_A_LOG).max(text.len() as u64)))?;
    log.take(MOST_OF_A_LOG).read_to_end(&mut text)?;
    Ok(text)
}

pub(crate) fn contents(slot: &Path) -> Vec<u8> {
    open(slot).ok().and_then(|log| read(&log).ok()).unwrap_or_default()
}

/// Returns the last lines, led by earlier ones on an error or a full disk that they lack: MySQL says much after those.
pub(crate) fn tail(slot: &Path) -> String {
    tail_of(&String::from_utf8_lossy(&contents(slot)))
}

fn tail_of(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let (before, last) = lines.split_at(lines.len().saturating_sub(LOG_LINES));
    let tells = |line: &&&str| REASONS.iter().any(|reason| line.contains(reason));
    let mut reasons: Vec<&str> = Vec::new();
    if last.iter().find(tells).is_none() {
        reasons = before.iter().rev().filter(tells).take(LOG_LINES / 2).copied().collect();
        reasons.reverse();
    }
    if !reasons.iter().chain(last).any(|line| line.contains(FULL)) {
        reasons.extend(before.iter().rev().find(|line| line.contains(FULL)));
    }
    // MariaDB gives only the number.
    if ["error 28", "rror: 28", "code: 28"].iter().any(|number| text.contains(number)) {
        reasons.push("(28 is: No space left on device)");
    }
    let plain = |line: &&str| line.chars().filter(|c| !c.is_control()).collect::<String>() + "\n";
    reasons.iter().chain(last).map(plain).collect()
}

/// Adds the log to a failed server's error: it says more than an exit code.
pub(crate) fn added_to(error: Error, slot: &Path) -> Error {
    match error {
        Error::ServerFailed { how, full: known, .. } => {
            let log = tail(slot);
            Error::ServerFailed { how, full: known.or_else(|| full(slot, &log)), log }
        }
        other => other,
    }
}

/// Returns the slot if its disk is full: a program said so, or there was no room even for that.
pub(crate) fn full(slot: &Path, said: &str) -> Option<PathBuf> {
    (said.contains("No space left on device") || has_less_room(slot, LITTLE)).then(|| slot.to_path_buf())
}

/// Returns whether the server's account has less room than this. It cannot use the space reserved for root.
pub(crate) fn has_less_room(slot: &Path, bytes: u64) -> bool {
    rustix::fs::statvfs(slot).is_ok_and(|room| room.f_bavail.saturating_mul(room.f_frsize) < bytes)
}

/// Returns the last lines, without a cut one.
pub(crate) fn last_lines(slot: &Path) -> String {
    let read = |mut log: File| -> std::io::Result<Vec<u8>> {
        let begin = log.metadata()?.len().saturating_sub(LAST_BYTES);
        log.seek(SeekFrom::Start(begin))?;
        let mut text = Vec::new();
        log.take(LAST_BYTES).read_to_end(&mut text)?;
        let cut = if begin == 0 { None } else { text.iter().position(|byte| *byte == b'\n') };
        Ok(text.split_off(cut.map_or(0, |at| at + 1)))
    };
    let text = open(slot).ok().and_then(|log| read(log).ok()).unwrap_or_default();
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_however_much_is_said_after_it() {
        let full = "[ERROR] Error number 28 means 'No space left on device'\n";
        let after = "[ERROR] Cannot resize redo log file\n".repeat(LOG_LINES);
        let tail = tail_of(&format!("begins\n{full}{after}"));
        assert_eq!(tail, format!("{full}{after}"));
        let tail = tail_of(&format!("{after}{full}"));
        assert_eq!(tail.matches(FULL).count(), 1, "{tail}");
        assert_eq!(tail.lines().count(), LOG_LINES);
    }
}
