//! Words of a shell's command line.

use std::path::Path;

/// Returns a path as a word to paste into a command line.
pub fn word(path: &Path) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%".contains(c);
    let start = if path.as_os_str().as_encoded_bytes().starts_with(b"-") { "./" } else { "" };
    match path.to_str().filter(|text| !text.contains(char::is_control)) {
        Some(text) if !text.is_empty() && text.chars().all(is_plain) => format!("{start}{text}"),
        Some(text) => format!("'{start}{}'", text.replace('\'', r"'\''")),
        None => ansi_c(&[start.as_bytes(), path.as_os_str().as_encoded_bytes()].concat()),
    }
}

/// Quotes bytes as `$'…'`, for control characters and bytes that are not text.
pub fn ansi_c(bytes: &[u8]) -> String {
    let escaped = |c: char| match c {
        '\n' => r"\n".to_owned(),
        '\'' | '\\' => format!("\\{c}"),
        c if c.is_control() => c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("\\{byte:03o}")).collect(),
        c => c.to_string(),
    };
    let chunk = |chunk: std::str::Utf8Chunk<'_>| {
        let invalid = chunk.invalid().iter().map(|byte| format!("\\{byte:03o}"));
        chunk.valid().chars().map(escaped).chain(invalid).collect::<String>()
    };
    format!("$'{}'", bytes.utf8_chunks().map(chunk).collect::<String>())
}
