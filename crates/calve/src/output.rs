//! What is printed, and where: results on stdout, prose on stderr.

use std::io::{self, IsTerminal, Write};

use serde_json::Value;

use crate::failure::Failure;

/// One line, or a few, for people.
pub(crate) fn say(text: &str) {
    // Nobody is left to tell when stderr is gone.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

pub(crate) fn error(text: &str, hint: Option<&str>) {
    let (red, cyan, reset) = if coloured() { ("\x1b[1;31m", "\x1b[1;36m", "\x1b[0m") } else { ("", "", "") };
    say(&format!("{red}error:{reset} {text}"));
    if let Some(hint) = hint {
        say(&format!("{cyan}hint:{reset} {hint}"));
    }
}

/// A terminal that wants colours (no-color.org).
fn coloured() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// One JSON document on stdout.
pub(crate) fn json(document: &Value) -> Result<(), Failure> {
    result(&format!("{document:#}\n"))
}

/// The result of a command, on stdout.
pub(crate) fn result(text: &str) -> Result<(), Failure> {
    write(text.as_bytes())
}

/// A path alone on stdout, byte for byte, for a program to read.
#[cfg(unix)]
pub(crate) fn path(path: &std::path::Path) -> Result<(), Failure> {
    write(&[crate::sys::path_bytes(path), b"\n"].concat())
}

fn write(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        // Who reads it has seen enough, as `head` does: that is no failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(Failure::Output),
    }
}

/// 1234567 as "1,234,567".
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// "1 entry", "2,000 entries".
pub(crate) fn entries(number: u64) -> String {
    format!("{} {}", count(number), if number == 1 { "entry" } else { "entries" })
}

/// A size in units of 1,000, as disks are sold and as `du --si` prints.
pub(crate) fn size(bytes: u64) -> String {
    let units = ["kB", "MB", "GB", "TB", "PB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", units[unit])
}

pub(crate) fn duration(elapsed: std::time::Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    if seconds < 1.0 { format!("{:.1} ms", seconds * 1000.0) } else { format!("{seconds:.2} s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(
            ["0", "999", "1,000", "1,234,567"],
            [0, 999, 1000, 1_234_567].map(count).each_ref().map(|s| s.as_str())
        );
        assert_eq!(
            ["0 B", "999 B", "1.0 kB", "1.0 MB", "1.2 GB"],
            [0, 999, 1000, 999_990, 1_234_000_000].map(size).each_ref().map(|s| s.as_str())
        );
    }
}
