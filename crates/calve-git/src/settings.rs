/// Parses the output of `git config -z --list`: `name\nvalue\0`, or a name alone if no value is set.
pub(crate) fn settings_of(printed: &[u8]) -> impl Iterator<Item = (String, String)> + '_ {
    printed.split(|&byte| byte == 0).filter(|record| !record.is_empty()).map(|record| {
        let text = String::from_utf8_lossy(record);
        let (name, value) = text.split_once('\n').unwrap_or((&text, ""));
        (name.to_owned(), value.to_owned())
    })
}

pub(crate) fn is_true(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "true" | "yes" | "on" | "1" | "")
}

/// The setting for the storage format of references and their logs.
pub(crate) const REFERENCE_FORMAT: &str = "extensions.refstorage";
pub(crate) const FILES: &str = "files";

pub(crate) fn keeps_files(settings: &[(String, String)]) -> bool {
    settings.iter().all(|(name, value)| name != REFERENCE_FORMAT || value == FILES)
}
