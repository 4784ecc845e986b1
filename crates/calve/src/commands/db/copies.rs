//! Describes the files that overlays copy as a whole.

use calve_core::internal::ShownPath;
use calve_db::Server;
use calve_receipt::human;

use crate::output;

/// The largest are named.
const NAMED: usize = 5;

/// Announces the copies that will make somebody wait.
pub(super) fn announce(server: &Server) {
    let files = &server.launch.copied_on_first_open;
    if files.is_empty() {
        return;
    }
    let bytes = files.iter().map(|file| file.bytes).sum();
    output::note(&format!(
        "an overlay without reflinks copies a file as a whole when the server first opens it. Large files: {}, {}",
        human::count(files.len() as u64),
        human::size(bytes)
    ));
    for file in files.iter().take(NAMED) {
        output::note(&format!("  {}  {}", ShownPath(&file.path), human::size(file.bytes)));
    }
}
