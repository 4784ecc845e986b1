use std::io::Read as _;
use std::ops::Range;
use std::path::Path;

use calve_core::internal::ShownPath;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::keys::{Author, KEYS};
use crate::error::{Error, Result, failed};

/// A configuration is a page, not a book.
const LARGEST_BYTES: u64 = 256 * 1024;

fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let near = known.iter().map(|known| (strsim::levenshtein(&name.to_lowercase().replace('_', "-"), known), *known));
    near.filter(|(distance, known)| *distance <= 2 && *distance < known.len()).min().map(|(_, known)| known)
}

pub(super) fn read(path: &Path, author: Author) -> Result<Option<String>> {
    let Some(bytes) = read_bytes(path, author)? else { return Ok(None) };
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let bytes = error.into_bytes();
        let text = String::from_utf8_lossy(&bytes[..valid]).into_owned();
        ConfigText { path, text: &text, author }.error(valid..valid, "it is not UTF-8")
    })
}

/// Reads a regular file, if it exists. Follows only the user's links: a repository's could lead to any file of theirs.
pub(crate) fn read_bytes(path: &Path, author: Author) -> Result<Option<Vec<u8>>> {
    let invalid = |reason: &str| Error::Config { path: path.to_path_buf(), line: 1, column: 1, reason: reason.into() };
    let follow = if author == Author::User { OFlags::empty() } else { OFlags::NOFOLLOW };
    // Opening a FIFO would wait.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | follow;
    let opened = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(opened) => fs_err::File::from_parts(opened.into(), path),
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(Errno::LOOP) => return Err(invalid("it is a link, which a file of the repository may not be")),
        Err(Errno::NXIO) => return Err(invalid("it is not a regular file")),
        Err(errno) => return Err(failed("failed to open file", path, errno).into()),
    };
    if !opened.metadata()?.is_file() {
        return Err(invalid("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    opened.take(LARGEST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_BYTES {
        return Err(invalid("it is larger than 256 KiB"));
    }
    Ok(Some(bytes))
}

type Check = fn(&str) -> std::result::Result<(), String>;

pub(super) struct ConfigText<'t> {
    pub(super) path: &'t Path,
    pub(super) text: &'t str,
    pub(super) author: Author,
}

impl ConfigText<'_> {
    pub(super) fn error(&self, span: Range<usize>, reason: &str) -> Error {
        let (line, column) = self.line_and_column(span.start);
        let path = self.path.to_path_buf();
        Error::Config { path, line, column, reason: reason.lines().collect::<Vec<_>>().join(", ") }
    }

    pub(super) fn position(&self, span: Range<usize>) -> String {
        let (line, column) = self.line_and_column(span.start);
        format!("`{}`, line {line}, column {column}", ShownPath(self.path))
    }

    pub(super) fn unknown_table(&self, span: Range<usize>, name: &str) -> Error {
        let shown: String = name.chars().flat_map(char::escape_debug).collect();
        let owner = KEYS.iter().find(|(_, keys)| keys.contains(&name));
        let tables = KEYS.map(|(table, _)| table);
        let instead = match (owner, nearest(name, &tables)) {
            (Some((table, _)), _) => format!("it belongs below `[{table}]`"),
            (None, Some(near)) => format!("did you mean `[{near}]`?"),
            (None, None) => format!("there are: {}", tables.map(|table| format!("[{table}]")).join(", ")),
        };
        self.error(span, &format!("there is no `{shown}` at the top of the file; {instead}"))
    }

    pub(super) fn unknown_key(&self, span: Range<usize>, table: &str, key: &str) -> Error {
        let shown: String = key.chars().flat_map(char::escape_debug).collect();
        let keys = KEYS.iter().find(|(name, _)| *name == table).map_or(&[][..], |(_, keys)| keys);
        let owner = KEYS.iter().find(|(_, keys)| keys.contains(&key));
        let instead = match (owner, nearest(key, keys)) {
            (Some((table, _)), _) => format!("`[{table}]` has"),
            (None, Some(near)) => format!("did you mean `{near}`?"),
            (None, None) => format!("it has: {}", keys.join(", ")),
        };
        self.error(span, &format!("`[{table}]` has no `{shown}`; {instead}"))
    }

    /// Returns the line and the column of a byte, both from 1; columns count characters.
    fn line_and_column(&self, at: usize) -> (usize, usize) {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        let before = &self.text[..at];
        let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        (line, column)
    }

    pub(super) fn table<'v, 'd>(&self, value: &'v Spanned<DeValue<'d>>, name: &str) -> Result<&'v DeTable<'d>> {
        match value.get_ref() {
            DeValue::Table(table) => Ok(table),
            _ => Err(self.error(value.span(), &format!("`{name}` is a table: write `[{name}]` above its keys"))),
        }
    }

    pub(super) fn string(&self, value: &Spanned<DeValue<'_>>, name: &str) -> Result<String> {
        match value.get_ref() {
            DeValue::String(text) if text.contains('\0') => {
                Err(self.error(value.span(), &format!("`{name}` has a NUL character in it")))
            }
            DeValue::String(text) => Ok(text.to_string()),
            _ => Err(self.error(value.span(), &format!("`{name}` must be a quoted string"))),
        }
    }

    pub(super) fn number(&self, value: &Spanned<DeValue<'_>>, name: &str) -> Result<usize> {
        let number = match value.get_ref() {
            DeValue::Integer(number) => usize::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        number.ok_or_else(|| self.error(value.span(), &format!("`{name}` must be a whole number")))
    }

    pub(super) fn checked(&self, value: &Spanned<DeValue<'_>>, name: &str, check: Check) -> Result<String> {
        self.parsed(value, name, |text| check(text).map(|()| text.to_owned()))
    }

    pub(super) fn parsed<T>(
        &self,
        value: &Spanned<DeValue<'_>>,
        name: &str,
        parse: impl Fn(&str) -> std::result::Result<T, String>,
    ) -> Result<T> {
        parse(&self.string(value, name)?).map_err(|reason| self.error(value.span(), &reason))
    }

    pub(super) fn patterns(&self, value: &Spanned<DeValue<'_>>, name: &str, check: Check) -> Result<Vec<String>> {
        match value.get_ref() {
            DeValue::Array(values) => values.iter().map(|value| self.checked(value, name, check)).collect(),
            _ => Err(self.error(value.span(), &format!("`{name}` must be a list of strings: [\"a\", \"b\"]"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_or_too_large_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let refused = |path: &Path, author| read(path, author).unwrap_err().to_string();
        assert_eq!(read(&path, Author::Repository).unwrap(), None);
        for author in [Author::Repository, Author::User] {
            assert!(refused(folder.path(), author).contains("not a regular file"));
            // It has no writer: opening it would wait for ever.
            calve_testkit::Tree::new(folder.path()).fifo("file");
            assert!(refused(&path, author).contains("not a regular file"));
            fs_err::remove_file(&path).unwrap();
            let endless = fs_err::File::create(&path).unwrap();
            endless.set_len(1 << 40).unwrap();
            assert!(refused(&path, author).contains("larger than 256 KiB"));
            fs_err::write(&path, b"a = 1\n\xff").unwrap();
            assert!(refused(&path, author).contains("line 2, column 1: it is not UTF-8"));
            fs_err::remove_file(&path).unwrap();
        }
        let link = folder.path().join("link");
        fs_err::write(&path, "x").unwrap();
        fs_err::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(refused(&link, Author::Repository).contains("it is a link"));
        assert_eq!(read(&link, Author::User).unwrap().as_deref(), Some("x"));
    }
}
