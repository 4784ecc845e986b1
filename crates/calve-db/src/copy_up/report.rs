//! What the overlay of a server had copied that ended when nobody was there to be told. Kept until somebody is.

use std::path::Path;

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::{Copied, trace};
use crate::error::Result;
use crate::files::private;
use crate::registry::Home;

const ENDING: &str = ".copied.json";

/// The last of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// The server.
    pub name: String,
    /// Why it ended, as in "its owner ended".
    pub why: String,
    /// What its overlay had copied as a whole.
    pub copied: Vec<Copied>,
}

/// Keeps a report below `home`'s directory of logs. The server is gone in any case: failing is no reason to stop.
pub(crate) fn keep(logs: &Path, report: &Report) {
    if !report.copied.is_empty() {
        let _ = private::write_json(&logs.join(format!("{}{ENDING}", report.name)), report);
    }
}

/// The report of a server whose supervisor was killed, by what that had written down.
pub(crate) fn of_killed(place: &Path) -> Report {
    let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Report { name, why: "its supervisor was killed".into(), copied: trace::lines(place) }
}

/// The reports that nobody has seen yet. They are not kept any longer.
pub fn unreported(home: &Home) -> Result<Vec<Report>> {
    let mut found: Vec<Report> = Vec::new();
    for entry in fs::read_dir(home.logs()).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().ends_with(ENDING) {
            continue;
        }
        let text = fs::read(entry.path()).unwrap_or_default();
        // Of two processes that see it, one removes it.
        if fs::remove_file(entry.path()).is_ok() {
            found.extend(serde_json::from_slice::<Report>(&text));
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}
