//! PostgreSQL: Frontend/Backend Protocol 3.0, its simple query.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use super::{Value, broken};

pub(crate) struct Session(UnixStream);

/// More than any message of a bench has.
const LONGEST: usize = 16 << 20;

impl Session {
    pub(super) fn open(stream: UnixStream, user: &str, database: &str) -> io::Result<Self> {
        let mut session = Self(stream);
        let mut body = 196_608_u32.to_be_bytes().to_vec();
        for word in ["user", user, "database", database, ""] {
            body.extend_from_slice(word.as_bytes());
            body.push(0);
        }
        session.send(None, &body)?;
        session.until_ready()?;
        Ok(session)
    }

    pub(super) fn run(&mut self, sql: &str) -> io::Result<Value> {
        let mut body = sql.as_bytes().to_vec();
        body.push(0);
        self.send(Some(b'Q'), &body)?;
        self.until_ready()
    }

    fn send(&mut self, kind: Option<u8>, body: &[u8]) -> io::Result<()> {
        let length = u32::try_from(body.len() + 4).map_err(|_| broken())?;
        let mut message: Vec<u8> = kind.into_iter().collect();
        message.extend_from_slice(&length.to_be_bytes());
        message.extend_from_slice(body);
        self.0.write_all(&message)
    }

    /// The first value of the first row, or the first error.
    fn until_ready(&mut self) -> io::Result<Value> {
        let mut first = None;
        let mut failed = None;
        loop {
            let mut head = [0; 5];
            if let Err(error) = self.0.read_exact(&mut head) {
                // A server that refuses a session says why and closes it.
                return Err(failed.unwrap_or(error));
            }
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
            let length = length.checked_sub(4).filter(|length| *length <= LONGEST).ok_or_else(broken)?;
            let mut body = vec![0; length];
            self.0.read_exact(&mut body)?;
            match head[0] {
                b'Z' => return failed.map_or(Ok(first), Err),
                b'E' => failed = Some(io::Error::other(message(&body))),
                b'D' if first.is_none() => first = value(&body),
                _ => {}
            }
        }
    }
}

/// The fields of an error: a letter and text each.
fn message(body: &[u8]) -> String {
    let fields = body.split(|byte| *byte == 0);
    let text = fields.filter_map(|field| field.strip_prefix(b"M")).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// Of a row: the number of columns, then length and bytes of each.
fn value(body: &[u8]) -> Value {
    let length = i32::from_be_bytes(body.get(2..6)?.try_into().ok()?);
    let end = 6 + usize::try_from(length).ok()?;
    Some(String::from_utf8_lossy(body.get(6..end)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn fuzz_bench_postgres() {
        let row = b"R\0\0\0\x08\0\0\0\0D\0\0\0\x0c\0\x01\0\0\0\x02hiC\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";
        let error = b"E\0\0\0\x1aSFATAL\0C57P03\0Mstarting\0\0Z\0\0\0\x05I";
        calve_testkit::fuzz(&[row, error], |input| {
            let (ours, theirs) = UnixStream::pair().unwrap();
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    (&theirs).write_all(input).and_then(|()| theirs.shutdown(std::net::Shutdown::Write))
                });
                drop(Session(ours).until_ready());
            });
            value(input);
            message(input);
        });
    }

    /// Four bytes made it ask for four gigabytes.
    #[test]
    fn a_message_of_gigabytes_is_refused() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (&theirs).write_all(b"D\xff\xff\xff\xff").unwrap();
        assert_eq!(Session(ours).until_ready().unwrap_err().kind(), broken().kind());
    }
}
