//! System V shared memory of servers without a namespace for it: segments of a killed server stay until they are removed.
//!
//! To find these segments, Calve asks nothing that the server's account can write. The kernel says who made a segment, and a server
//! derives its keys from its data directory's inode number.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::FileType;

use crate::engine::Engine;
use crate::files::directory::Directory;
use crate::sys::{self, Segment};

/// Tells the kernel to remove the memory that a server has attached when its last user is gone. Returns whether there was any.
pub(crate) fn forget(engine: &dyn Engine, slot: &Path, server: u32) -> bool {
    let found = segments_of(engine, slot, |segment| segment.creator == server && segment.attached > 0);
    found.iter().for_each(sys::remove_segment);
    !found.is_empty()
}

/// How long processes may take to notice that the one that started them has ended.
const NOTICING: Duration = Duration::from_secs(1);

/// Removes the memory that an ended server, or ended processes of it, have made. Waits for a moment where processes that they have started
/// still use it.
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

/// Returns the segments of any key that an ended process made after the one of its data directory. Where initdb cannot use POSIX shared
/// memory, as without `/dev/shm`, its servers have theirs in a segment with a key by chance (dsm_impl.c).
fn made_with(first: &Segment) -> Vec<Segment> {
    // In another namespace for processes, creators have no number here: they cannot be told apart.
    if first.creator == 0 {
        return Vec::new();
    }
    let by = |segment: &Segment| (segment.creator, segment.owner, segment.maker);
    let is_later =
        |segment: &Segment| segment.key != first.key && by(segment) == by(first) && segment.made >= first.made;
    sys::segments().into_iter().filter(is_later).collect()
}

/// Returns the segments that belong to the data directory's owner and have its keys.
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
