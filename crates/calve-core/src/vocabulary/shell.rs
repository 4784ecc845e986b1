//! Words of a shell's command line.

/// Quotes bytes as `$'…'`, for characters that no terminal shows and bytes that are no text.
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
