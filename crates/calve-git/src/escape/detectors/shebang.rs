//! Scripts in `bin` directories that name another tree, mostly as their interpreter.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::directory::read;
use crate::escape::detectors::texts::{is_activate, is_script_folder};
use crate::escape::entry::{EntryName, WalkEntry};
use crate::escape::report::{Explanation, Finding, ReferenceKind};
use crate::escape::trees::{Language, Mention, Trees};

/// Launchers and shims are small.
const SCRIPT_BYTES: u64 = 64 * 1024;

/// The kernel reads 256 bytes (128 before Linux 5.1), the last of which ends the line.
const LINE_BYTES: usize = 127;

pub(super) fn wants(entry: &EntryName<'_>) -> bool {
    entry.is_file() && is_script_folder(entry) && !is_activate(entry)
}

pub(super) fn look(entry: &WalkEntry<'_>, trees: &Trees, found: &mut Vec<Finding>) {
    let Some(script) = read(entry.directory, entry.name(), SCRIPT_BYTES) else { return };
    if !script.starts_with(b"#!") {
        return;
    }
    let Some(named) = trees.named(&script, Language::Shell) else { return };
    let (kind, path, Mention { names, moved }) = (ReferenceKind::Shebang, entry.path(), named);
    found.push(match moved.map(runnable) {
        Some(None) => Finding::reported(kind, path, names, Explanation::LineTooLong),
        moved => Finding::text(kind, path, Mention { names, moved: moved.flatten() }),
    });
}

/// Shortens a first line that the kernel would cut: the shell starts Python, as pip writes it. `None` if impossible.
fn runnable(script: Vec<u8>) -> Option<Vec<u8>> {
    let end = script.iter().position(|&byte| byte == b'\n').unwrap_or(script.len());
    if end <= LINE_BYTES {
        return Some(script);
    }
    let (interpreter, arguments) = python(&script[2..end])?;
    let rest = script.get(end + 1..).unwrap_or_default();
    // Python looks for the encoding in the first two lines.
    let second = rest.split_inclusive(|&byte| byte == b'\n').next().filter(|line| declares_encoding(line));
    let second = second.unwrap_or_default();
    let mut longer = [b"#!/bin/sh\n", second, b"'''exec' \"", interpreter, b"\""].concat();
    for argument in arguments {
        longer.extend([b" ", argument].concat());
    }
    longer.extend_from_slice(b" \"$0\" \"$@\"\n' '''\n");
    longer.extend_from_slice(&rest[second.len()..]);
    Some(longer)
}

fn python(line: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let is_plain = |word: &&[u8]| word.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_./=,:+@%".contains(byte));
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    // The kernel passes everything after the program as one argument.
    let mut most = 1;
    let mut interpreter = words.next()?;
    if interpreter.ends_with(b"/env") {
        (most, interpreter) = (0, words.next()?);
        if interpreter == b"-S" {
            (most, interpreter) = (usize::MAX, words.next()?);
        }
    }
    let name = Path::new(OsStr::from_bytes(interpreter)).file_name()?;
    let arguments: Vec<&[u8]> = words.collect();
    let fits = name.as_bytes().starts_with(b"python") && arguments.len() <= most && arguments.iter().all(is_plain);
    fits.then_some((interpreter, arguments))
}

/// Returns whether Python reads a script's encoding from this line (PEP 263).
fn declares_encoding(line: &[u8]) -> bool {
    let after = memchr::memmem::find(line, b"coding").and_then(|at| line.get(at + "coding".len()));
    line.trim_ascii_start().starts_with(b"#") && after.is_some_and(|byte| b":=".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_the_kernel_would_cut_goes_by_way_of_the_shell() {
        let short = b"#!/a/bin/python3\nimport sys\n".to_vec();
        assert_eq!(runnable(short.clone()), Some(short));
        let long = format!("/{}/bin/python3", "x".repeat(150));
        let script = |text: String| runnable(text.into_bytes()).map(|script| String::from_utf8(script).unwrap());
        let exec = |arguments: &str| format!("'''exec' \"{long}\"{arguments} \"$0\" \"$@\"\n' '''\n");
        for (line, arguments) in [
            (long.clone(), ""),
            (format!(" {long} -I"), " -I"),
            (format!("/usr/bin/env {long}"), ""),
            (format!("/usr/bin/env -S {long} -I -W ignore"), " -I -W ignore"),
        ] {
            let expected = format!("#!/bin/sh\n{}print(1)\n", exec(arguments));
            assert_eq!(script(format!("#!{line}\nprint(1)\n")), Some(expected), "{line}");
        }
        for second in ["# -*- coding: latin-1 -*-\n", " # vim: set fileencoding=latin-1 :\n"] {
            let expected = format!("#!/bin/sh\n{second}{}print(1)\n", exec(""));
            assert_eq!(script(format!("#!{long}\n{second}print(1)\n")), Some(expected));
        }
        let comment = "# coding is fun\n";
        assert_eq!(script(format!("#!{long}\n{comment}")), Some(format!("#!/bin/sh\n{}{comment}", exec(""))));
        assert_eq!(script(format!("#!{long}")), Some(format!("#!/bin/sh\n{}", exec(""))));
        let ruby = format!("/{}/bin/ruby", "x".repeat(150));
        for line in [ruby, format!("{long} -I -B"), format!("/usr/bin/env {long} -I"), format!("{long} -c'x'")] {
            assert_eq!(script(format!("#!{line}\n")), None, "{line}");
        }
    }
}
