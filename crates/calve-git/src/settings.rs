//! git's settings, as it prints them.

/// Returns the names and values that `git config -z --list` prints: `name\nvalue\0`, or a name alone where no value is set.
pub(crate) fn settings_of(printed: &[u8]) -> impl Iterator<Item = (String, String)> + '_ {
    printed.split(|&byte| byte == 0).filter(|record| !record.is_empty()).map(|record| {
        let text = String::from_utf8_lossy(record);
        let (name, value) = text.split_once('\n').unwrap_or((&text, ""));
        (name.to_owned(), value.to_owned())
    })
}
