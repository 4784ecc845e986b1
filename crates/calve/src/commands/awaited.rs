//! A `calve` that is started before it is known what for: by the packages for Python and Node, whose calls need not wait for its start.
//!
//! It reads its command line from standard input, as one JSON list, and is from then on like any other.

use std::ffi::OsString;
use std::io::{BufRead as _, stdin};
use std::time::Duration;

use crate::sys;

/// The only argument of the program that asks for this.
const ASKED: &str = "__await";
/// How long it waits: a package may have forgotten it.
const PATIENCE: Duration = Duration::from_secs(60);
/// How it ends without a command line. It has done nothing then.
pub(crate) const UNUSED: u8 = 125;

/// Returns the command line: that of this process, or what it is to read. `None`: there will be none.
pub(crate) fn command_line() -> Option<Vec<OsString>> {
    let own: Vec<OsString> = std::env::args_os().collect();
    if own.get(1..) != Some(&[OsString::from(ASKED)]) {
        return Some(own);
    }
    if !sys::has_input_within(PATIENCE) {
        return None;
    }
    // To the end of the line, or of the input: somebody else may have that open too.
    let mut text = Vec::new();
    stdin().lock().read_until(b'\n', &mut text).ok()?;
    // A list that is cut off, by the end of its writer, is none.
    let words: Vec<String> = serde_json::from_slice(&text).ok()?;
    Some(own.into_iter().take(1).chain(words.into_iter().map(OsString::from)).collect())
}
