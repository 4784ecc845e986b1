//! System V shared memory where a server has no namespace for it: what a killed one leaves stays until somebody removes it.
//!
//! Nothing that the server's account can write is asked which segment that is. The kernel tells who made one, and a server takes
//! its keys from its data directory's number.

use std::path::Path;

use rustix::fs::FileType;

use crate::directory::Directory;
use crate::engine::Engine;
use crate::sys::{self, Segment};

/// Has the kernel remove the memory of a server that has attached to it, as soon as nobody uses it any more. Whether there was any.
pub(crate) fn forget(engine: &dyn Engine, place: &Path, server: u32) -> bool {
    let found = of(engine, place, |segment| segment.creator == server && segment.attached > 0);
    found.iter().for_each(sys::remove_segment);
    !found.is_empty()
}

/// Removes the memory of a server that has ended: what it made, and what processes of its own made that are gone too.
pub(crate) fn remove(engine: &dyn Engine, place: &Path, server: Option<u32>) {
    let is_left = |segment: &Segment| segment.attached == 0 && sys::Watched::open(segment.creator, None).is_none();
    for segment in of(engine, place, |segment| Some(segment.creator) == server || is_left(segment)) {
        if let Some(name) = sys::read_segment(&segment).and_then(|head| engine.noted_memory(&head)) {
            sys::remove_shared(&segment, &name);
        }
        sys::remove_segment(&segment);
    }
}

/// The segments of the data directory's owner, with its keys.
fn of(engine: &dyn Engine, place: &Path, is_wanted: impl Fn(&Segment) -> bool) -> Vec<Segment> {
    let data = Directory::open(place).and_then(|place| place.stat("data"));
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
