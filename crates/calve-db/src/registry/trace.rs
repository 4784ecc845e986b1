//! Following the copies that the overlay of a server makes.

use std::path::{Path, PathBuf};

use crate::copy_up::{CopiedFile, Lines};
use crate::error::Result;
use crate::registry::{self, Home};

/// The copies that the overlay of a server makes, in the order in which they end.
#[derive(Debug)]
pub struct Trace {
    place: PathBuf,
    lines: Lines,
}

impl Trace {
    /// Returns the trace of the server of that name.
    pub fn of_server(home: &Home, name: &str) -> Result<Self> {
        let record = registry::find(home, name)?;
        Ok(Self::of(&registry::place_of(home, &record.name)))
    }

    pub(crate) fn of(place: &Path) -> Self {
        Self { place: place.to_path_buf(), lines: Lines::of(place) }
    }

    /// Returns the copies since the last call.
    pub fn more(&mut self) -> Vec<CopiedFile> {
        self.lines.more()
    }

    /// Returns whether the server is gone, so that there will be no more.
    pub fn is_over(&self) -> bool {
        !registry::is_held(&self.place)
    }
}
