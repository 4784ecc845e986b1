//! Describes the files that overlays copy as a whole.

use calve_core::ShownPath;
use calve_db::Record;
use calve_receipt::human;

use crate::output;

/// The largest are named.
const NAMED: usize = 5;

/// Announces the copies that will make somebody wait.
pub(super) fn announce(server: &Record) {
    let files = &server.copy_up;
    if files.is_empty() || output::is_quiet() {
        return;
    }
    let bytes = files.iter().map(|file| file.bytes).sum();
    output::say(&format!(
        "an overlay without reflinks copies a file as a whole when the server first opens it. Large files: {}, {}",
        human::count(files.len() as u64),
        human::size(bytes)
    ));
    for file in files.iter().take(NAMED) {
        output::say(&format!("  {}  {}", ShownPath(&file.path), human::size(file.bytes)));
    }
}
