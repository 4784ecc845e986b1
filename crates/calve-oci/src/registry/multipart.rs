//! Reading an answer of several parts (`multipart/byteranges`, RFC 9110, section 14.6).

use std::io::{self, BufRead, BufReader, Read, Take};
use std::ops::Range;

/// A line is a boundary or a header. Longer ones are not read.
const LONGEST_LINE: u64 = 1024;

pub(super) fn boundary(content_type: &str) -> Option<&str> {
    let (kind, parameters) = content_type.split_once(';')?;
    let is_multipart = kind.trim().eq_ignore_ascii_case("multipart/byteranges");
    let named = parameters.split(';').find_map(|parameter| parameter.trim().strip_prefix("boundary="))?;
    let named = named.trim_matches('"');
    (is_multipart && !named.is_empty()).then_some(named)
}

pub(super) struct Parts<R> {
    /// Ends with the present part.
    reader: Take<BufReader<R>>,
    delimiter: String,
}

impl<R: Read> Parts<R> {
    pub(super) fn new(answer: R, boundary: &str) -> Self {
        Self { reader: BufReader::new(answer).take(0), delimiter: format!("--{boundary}") }
    }

    /// Goes to the next part. Returns its range, or `None` behind the last one.
    pub(super) fn next(&mut self) -> io::Result<Option<Range<u64>>> {
        io::copy(&mut self.reader, &mut io::sink())?;
        // An empty line may follow a part's contents, or precede the first boundary.
        let mut line = self.line()?;
        while line.is_empty() {
            line = self.line()?;
        }
        if line != self.delimiter {
            return Ok(None);
        }
        let mut bytes = None;
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-range")
            {
                bytes = content_range(value.trim());
            }
        }
        let bytes = bytes.ok_or(io::ErrorKind::InvalidData)?;
        self.reader.set_limit(bytes.end - bytes.start);
        Ok(Some(bytes))
    }

    pub(super) fn contents(&mut self) -> &mut impl Read {
        &mut self.reader
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.reader.get_mut().take(LONGEST_LINE).read_line(&mut line)?;
        let ended = line.strip_suffix('\n').ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(ended.strip_suffix('\r').unwrap_or(ended).to_owned())
    }
}

/// Parses `bytes FIRST-LAST/SIZE`.
pub(super) fn content_range(value: &str) -> Option<Range<u64>> {
    let (first, rest) = value.strip_prefix("bytes ")?.split_once('-')?;
    let (last, _) = rest.split_once('/')?;
    let (first, last) = (first.trim().parse::<u64>().ok()?, last.trim().parse::<u64>().ok()?);
    let end = last.checked_add(1)?;
    (first < end).then_some(first..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all parts, until one cannot be read.
    fn read(answer: &str) -> Vec<(Range<u64>, String)> {
        let mut parts = Parts::new(answer.as_bytes(), "x");
        let mut all = Vec::new();
        while let Ok(Some(bytes)) = parts.next() {
            let mut contents = String::new();
            if parts.contents().read_to_string(&mut contents).is_err() {
                break;
            }
            all.push((bytes, contents));
        }
        all
    }

    #[test]
    fn parts_are_read_as_servers_write_them() {
        let part = |range: &str, contents: &str| {
            format!("--x\r\nContent-Type: a/b\r\ncontent-range: bytes {range}/99\r\n\r\n{contents}\r\n")
        };
        let both = vec![(0..3, "abc".to_owned()), (10..12, "--".to_owned())];
        let good = part("0-2", "abc") + &part("10-11", "--");
        assert_eq!(read(&format!("{good}--x--\r\n")), both);
        // Apache begins with an empty line.
        assert_eq!(read(&format!("\r\n{good}--x--\r\n")), both);
        for bad in [
            String::new(),
            "--x".into(),
            "--y\r\n".into(),
            "--x\r\nContent-Type: a/b\r\n\r\nabc".into(),
            "--x\r\n".to_owned() + &"a".repeat(5_000),
            part("2-0", "abc"),
            part("-5", "abc"),
            part("0-18446744073709551615", "abc"),
            part("0-x", "abc"),
        ] {
            assert_eq!(read(&bad), [], "{bad}");
        }
        assert_eq!(read(&part("0-9", "abc")), [(0..10, "abc\r\n".to_owned())]);
    }

    #[test]
    fn the_boundary_is_in_the_type() {
        for (value, expected) in [
            ("multipart/byteranges; boundary=abc", Some("abc")),
            ("Multipart/Byteranges;boundary=\"abc\"", Some("abc")),
            ("multipart/byteranges; boundary=", None),
            ("multipart/mixed; boundary=abc", None),
            ("application/octet-stream", None),
        ] {
            assert_eq!(boundary(value), expected, "{value}");
        }
    }
}
