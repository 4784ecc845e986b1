//! What a file system's calls cost, measured in a hidden directory that goes away again.

mod calls;
mod choice;
mod order;
mod tree;
mod trial;

use std::path::Path;
use std::time::Instant;

use crate::error::Error;
use crate::identify::identity_of;
use crate::measurement::{MeasureOptions, Measurement};
use crate::probe::place_of;
use crate::progress::{Cancel, Progress};
use crate::tree::delete::Deletion;
use crate::tree::lock::Purpose;
use crate::tree::place::Place;
use crate::tree::pool::thread_count;
use crate::tree::staging::Staging;
use crate::tree::sweep::sweep;

use trial::Trial;

/// What is asked to be free before anything is made: small files take whole blocks, and some file systems more at first.
const ROOM_BYTES: u64 = 256 << 20;
const ROOM_INODES: u64 = MOST_FILES as u64 + 5_000;
/// The most files that are made.
const MOST_FILES: usize = 50_000;

/// Measures the file system that clones to `dst` are made on: in `dst` where it is a directory, otherwise beside it.
///
/// Everything is made in a hidden directory there, which is removed before this returns, whatever happens; when the process is
/// killed, the next clone or measurement in that place removes it. At most [`crate::MEASURE_WRITES_AT_MOST_BYTES`] are written.
///
/// # Errors
/// Where nothing can be made: [`Error::Io`], [`Error::NoRoom`]. [`Error::Interrupted`] when cancelled.
pub fn measure(dst: &Path, options: &MeasureOptions) -> Result<Measurement, Error> {
    let (place, _) = place_of(dst)?;
    sweep_killed(&place, &options.cancel)?;
    let started = Instant::now();
    let room = crate::tree::room::Room { bytes: ROOM_BYTES, inodes: ROOM_INODES };
    crate::tree::room::check_room(&room, place.parent(), place.parent_path())?;
    let mut staging = Staging::reserve(&place)?;
    staging.make_directory()?;
    let measured = Trial::begin(&staging, started, options)?.run()?;
    drop(staging);
    if options.cancel.is_cancelled() {
        return Err(Error::Interrupted);
    }
    Ok(Measurement { elapsed: started.elapsed(), place: identity_of(place.parent()), ..measured })
}

/// What a killed run left may hold the room that is needed now.
fn sweep_killed(place: &Place, cancel: &Cancel) -> Result<(), Error> {
    let deletion = Deletion { threads: thread_count(None), progress: &Progress::default(), cancel, last: None };
    match sweep(place.parent(), place.parent_path(), Purpose::Staging, &deletion) {
        Err(Error::Interrupted) => Err(Error::Interrupted),
        _ => Ok(()),
    }
}
