//! A request: its head, and its body with or without a length.

use std::io::{self, BufRead, BufReader, Read};

/// More is no request of git's.
const LONGEST_HEAD: usize = 64 << 10;
const MOST_HEADERS: usize = 64;

/// The head of a request.
#[derive(Debug, Clone)]
pub struct Head {
    /// `GET` or `POST`, for git.
    pub method: String,
    /// The target up to the question mark.
    pub path: String,
    pub(super) query: String,
    pub(super) keeps_open: bool,
    headers: Vec<(String, String)>,
}

impl Head {
    /// Returns the value of the last header of that name, which is in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Reads the next request on the connection; `None` when the client has closed it.
    pub(super) fn read(from: &mut CountingReader) -> io::Result<Option<Self>> {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\n") {
            let room = (LONGEST_HEAD - bytes.len()) as u64;
            if from.by_ref().take(room).read_until(b'\n', &mut bytes)? == 0 {
                return if bytes.is_empty() { Ok(None) } else { Err(io::ErrorKind::InvalidData.into()) };
            }
        }
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let invalid = |_| io::Error::from(io::ErrorKind::InvalidData);
        request.parse(&bytes).map_err(invalid)?;
        let target = request.path.unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let headers: Vec<(String, String)> = request
            .headers
            .iter()
            .map(|header| (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).trim().to_owned()))
            .collect();
        let mut head = Self {
            method: request.method.unwrap_or_default().to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            keeps_open: request.version == Some(1),
            headers,
        };
        head.keeps_open &= !head.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        Ok(Some(head))
    }

    /// Returns how the body's end is known.
    pub(super) fn body(&self) -> io::Result<Extent> {
        if self.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
            return Ok(Extent::Chunks { left: 0, begun: false });
        }
        match self.header("content-length") {
            None => Ok(Extent::Length(0)),
            Some(digits) => digits.parse().map(Extent::Length).map_err(|_| io::ErrorKind::InvalidData.into()),
        }
    }
}

/// The rest of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Length(u64),
    /// So many bytes of a chunk.
    Chunks {
        left: u64,
        begun: bool,
    },
    End,
}

/// The body of a request, to be read to its end.
pub(super) struct Body<'a> {
    pub(super) from: &'a mut CountingReader,
    pub(super) extent: Extent,
}

impl Body<'_> {
    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.from.by_ref().take(1024).read_until(b'\n', &mut line)?;
        Ok(String::from_utf8_lossy(&line).trim().to_owned())
    }

    /// Goes on to the next chunk that holds something, or to the end.
    fn next_chunk(&mut self, begun: bool) -> io::Result<()> {
        if begun && !self.line()?.is_empty() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let size = self.line()?;
        let digits = size.split(';').next().unwrap_or_default();
        let left = u64::from_str_radix(digits, 16).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        self.extent = Extent::Chunks { left, begun: true };
        if left == 0 {
            // Headers may follow, and an empty line ends them.
            for _ in 0..=MOST_HEADERS {
                if self.line()?.is_empty() {
                    self.extent = Extent::End;
                    return Ok(());
                }
            }
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(())
    }

    fn read_some(&mut self, left: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        match self.from.read(&mut buffer[..most])? {
            0 if most > 0 => Err(io::ErrorKind::UnexpectedEof.into()),
            length => Ok(length),
        }
    }
}

impl Read for Body<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.extent {
                Extent::End | Extent::Length(0) => return Ok(0),
                Extent::Length(left) => {
                    let length = self.read_some(left, buffer)?;
                    self.extent = Extent::Length(left - length as u64);
                    return Ok(length);
                }
                Extent::Chunks { left: 0, begun } => self.next_chunk(begun)?,
                Extent::Chunks { left, .. } => {
                    let length = self.read_some(left, buffer)?;
                    self.extent = Extent::Chunks { left: left - length as u64, begun: true };
                    return Ok(length);
                }
            }
        }
    }
}

/// The client's side of a connection, with a count of what was read of it.
pub(super) struct CountingReader {
    inner: BufReader<Box<dyn Read + Send>>,
    pub(super) bytes: u64,
}

impl CountingReader {
    pub(super) fn new(incoming: impl Read + Send + 'static) -> Self {
        Self { inner: BufReader::with_capacity(64 << 10, Box::new(incoming)), bytes: 0 }
    }
}

impl Read for CountingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.bytes += length as u64;
        Ok(length)
    }
}

impl BufRead for CountingReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, length: usize) {
        self.bytes += length as u64;
        self.inner.consume(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn fuzz_http() {
        let get = b"GET /a/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        let length = b"POST /a/git-upload-pack HTTP/1.1\r\nContent-Length: 4\r\n\r\n0000GET / HTTP/1.1\r\n\r\n";
        let chunks = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4;x=y\r\n0000\r\na\r\n0123456789\r\n0\r\nA: b\r\n\r\n";
        calve_testkit::fuzz(&[get, length, chunks], |input| {
            let mut from = CountingReader::new(io::Cursor::new(input.to_vec()));
            // As many requests as there are on one connection.
            while let Ok(Some(head)) = Head::read(&mut from) {
                let Ok(extent) = head.body() else { break };
                let mut body = Body { from: &mut from, extent };
                if io::copy(&mut body, &mut io::sink()).is_err() {
                    break;
                }
            }
            assert!(from.bytes <= input.len() as u64);
        });
    }

    // The bytes behind the last chunk were read for as long as the client went on.
    #[test]
    fn what_follows_the_last_chunk_has_an_end() {
        let endless =
            [b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n".to_vec(), b"A: b\r\n".repeat(1 << 16)]
                .concat();
        let mut from = CountingReader::new(io::Cursor::new(endless));
        let head = Head::read(&mut from).unwrap().unwrap();
        let mut body = Body { extent: head.body().unwrap(), from: &mut from };
        assert!(io::copy(&mut body, &mut io::sink()).is_err());
    }
}
