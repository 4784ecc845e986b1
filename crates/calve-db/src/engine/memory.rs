//! System V shared memory of servers without a namespace for it: a killed server's segments stay until removed.
//!
//! Calve finds them by nothing that the server's account can write: the kernel records a segment's creator, and a
//! server derives its keys from its data directory's inode number.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::FileType;

use crate::engine::Engine;
use crate::files::directory::Directory;
use crate::sys::{self, Segment};

/// Makes the kernel remove a server's attached memory with its last user. Returns whether there was any.
pub(crate) fn forget(engine: &dyn Engine, slot: &Path, server: u32) -> bool {
    let found = segments_of(engine, slot, |segment| segment.creator == server && segment.attached > 0);
    found.iter().for_each(sys::remove_segment);
    !found.is_empty()
}

/// How long processes may take to notice the end of their parent.
const NOTICING: Duration = Duration::from_secs(1);

/// Removes the memory of an ended server and its ended processes. Waits briefly while their descendants still use it.
pub(crate) fn remove(engine: &dyn Engine, slot: &Path, server: Option<u32>) {
    let is_ended = |segment: &Segment| {
        Some(segment.creator) == server || sys::ProcessHandle::open(segment.creator, None).is_none()
    };
    let started = Instant::now();
    loop {
        let (used, left): (Vec<_>, Vec<_>) = segments_of(engine, slot, is_ended)
            .into_iter()
            .partition(|segment| segment.attached > 0 && Some(segment.creator) != server);
        for segment in left {
            if let Some(name) = sys::read_segment(&segment).and_then(|head| engine.noted_memory(&head)) {
                sys::remove_shared(&segment, &name);
            }
            made_with(&segment).iter().for_each(sys::remove_segment);
            sys::remove_segment(&segment);
        }
        if used.is_empty() || started.elapsed() >= NOTICING {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the segments that the same creator made later, with any key. Without POSIX shared memory (no `/dev/shm`),
/// initdb's servers keep theirs in a segment with a random key (dsm_impl.c).
fn made_with(first: &Segment) -> Vec<Segment> {
    // Creators in another PID namespace have no number here, so they cannot be told apart.
    if first.creator == 0 {
        return Vec::new();
    }
    let by = |segment: &Segment| (segment.creator, segment.owner, segment.maker);
    let is_later =
        |segment: &Segment| segment.key != first.key && by(segment) == by(first) && segment.made >= first.made;
    sys::segments().into_iter().filter(is_later).collect()
}

fn segments_of(engine: &dyn Engine, slot: &Path, is_wanted: impl Fn(&Segment) -> bool) -> Vec<Segment> {
    let data = Directory::open(slot).and_then(|slot| slot.stat("data"));
    let Ok(Some(data)) = data else { return Vec::new() };
    let keys = engine.memory_keys(data.st_ino);
    let is_directory = FileType::from_raw_mode(data.st_mode) == FileType::Directory;
    if keys.is_empty() || !is_directory || data.st_uid == 0 {
        return Vec::new();
    }
    let is_theirs =
        |segment: &Segment| (segment.owner, segment.maker) == (data.st_uid, data.st_uid) && keys.contains(&segment.key);
    sys::segments().into_iter().filter(|segment| is_theirs(segment) && is_wanted(segment)).collect()
}
