//! The little of PostgreSQL's protocol that is needed: logging in without a password, and one query at a time
//! (Frontend/Backend Protocol 3.0, chapter "Message Formats").

use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use crate::engine::connection::Connection;

/// What the server says when it is still starting (`cannot_connect_now`).
const STARTING: &str = "57P03";

/// How much an answer may take, with all its messages: Calve asks for a few names.
const LONGEST_ANSWER: usize = 1 << 20;

/// What a session of Calve's own is called.
pub(super) const NAME: &str = "calve";

/// A session of the superuser.
pub(super) struct Session(Connection);

/// Why there is none.
#[derive(Debug)]
pub(super) enum Refused {
    /// Nobody listens, or the server is not ready for it.
    NotYet,
    /// The server's own words.
    Said(String),
}

impl Session {
    pub(super) fn open(socket: &Path, user: &str, database: &str, patience: Duration) -> Result<Self, Refused> {
        let mut session = Self(Connection::open(socket, patience).ok_or(Refused::NotYet)?);
        let mut body = 196_608_u32.to_be_bytes().to_vec();
        for word in ["user", user, "database", database, "application_name", NAME] {
            body.extend_from_slice(word.as_bytes());
            body.push(0);
        }
        body.push(0);
        let length = u32::try_from(body.len() + 4).unwrap_or(u32::MAX);
        let sent = session.0.write_all(&length.to_be_bytes()).and_then(|()| session.0.write_all(&body));
        sent.map_err(|_| Refused::NotYet)?;
        match session.until_ready() {
            Ok(Ok(_)) => Ok(session),
            Ok(Err(error)) if error.code == STARTING => Err(Refused::NotYet),
            Ok(Err(error)) => Err(Refused::Said(error.message)),
            Err(_) => Err(Refused::NotYet),
        }
    }

    /// Runs a query and gives the first column of its rows.
    pub(super) fn query(&mut self, sql: &str) -> Result<Vec<String>, String> {
        let mut message = vec![b'Q'];
        message.extend_from_slice(&u32::try_from(sql.len() + 5).unwrap_or(u32::MAX).to_be_bytes());
        message.extend_from_slice(sql.as_bytes());
        message.push(0);
        self.0.write_all(&message).map_err(|error| error.to_string())?;
        match self.until_ready() {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(said)) => Err(said.message),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Reads until the server waits for the next query. An error at login ends the connection instead.
    fn until_ready(&mut self) -> io::Result<Result<Vec<String>, Said>> {
        let mut rows = Vec::new();
        let mut failed = None;
        let mut left = LONGEST_ANSWER;
        loop {
            let mut head = [0; 5];
            match self.0.read_exact(&mut head) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && failed.is_some() => break,
                other => other?,
            }
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
            left = left.checked_sub(length).filter(|_| length >= 4).ok_or(io::ErrorKind::InvalidData)?;
            let mut body = vec![0; length - 4];
            self.0.read_exact(&mut body)?;
            match head[0] {
                b'Z' => break,
                b'E' => failed = Some(Said::parse(&body)),
                b'D' => rows.extend(first_column(&body)),
                // Anything but "no password needed".
                b'R' if body.first_chunk() != Some(&0_u32.to_be_bytes()) => {
                    let message = "it asks for a password on its private socket".to_owned();
                    return Ok(Err(Said { code: String::new(), message }));
                }
                _ => {}
            }
        }
        Ok(failed.map_or(Ok(rows), Err))
    }
}

#[derive(Debug)]
struct Said {
    code: String,
    message: String,
}

impl Said {
    fn parse(body: &[u8]) -> Self {
        let mut said = Self { code: String::new(), message: String::new() };
        for field in body.split(|byte| *byte == 0).filter(|field| !field.is_empty()) {
            let text = String::from_utf8_lossy(&field[1..]).into_owned();
            match field[0] {
                b'C' => said.code = text,
                b'M' => said.message = text,
                _ => {}
            }
        }
        said
    }
}

/// `DataRow`: the number of columns, then each with its length before it.
fn first_column(body: &[u8]) -> Option<String> {
    let length = usize::try_from(i32::from_be_bytes(*body.get(2..6)?.first_chunk()?)).ok()?;
    Some(String::from_utf8_lossy(body.get(6..6 + length)?).into_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn over(stream: UnixStream) -> Session {
        Session(Connection::over(stream, Duration::from_secs(60)))
    }

    #[test]
    fn rows_and_errors_are_read() {
        assert_eq!(first_column(b"\0\x01\0\0\0\x02hi"), Some("hi".to_owned()));
        assert_eq!(first_column(b"\0\x01\xff\xff\xff\xff"), None);
        let said = Said::parse(b"SFATAL\0C57P03\0Mthe database system is starting up\0\0");
        assert_eq!((said.code.as_str(), said.message.as_str()), (STARTING, "the database system is starting up"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn fuzz_postgres() {
        let login = b"R\0\0\0\x08\0\0\0\0S\0\0\0\x0da\0bcdefg\0Z\0\0\0\x05I";
        let row = b"T\0\0\0\x06\0\x01D\0\0\0\x0c\0\x01\0\0\0\x02hiC\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";
        let error = b"E\0\0\0\x1aSFATAL\0C57P03\0Mstarting\0\0Z\0\0\0\x05I";
        calve_testkit::fuzz(&[login, row, error], |input| {
            let (ours, theirs) = UnixStream::pair().unwrap();
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    (&theirs).write_all(input).and_then(|()| theirs.shutdown(std::net::Shutdown::Write))
                });
                drop(over(ours).until_ready());
            });
            first_column(input);
            Said::parse(input);
        });
    }

    /// A server that never stops to send rows would fill the memory.
    #[test]
    fn an_answer_without_an_end_is_refused() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let row = [b"D\0\x01\0\x0a\0\x01\0\0\xff\xff".as_slice(), &[b'x'; 0xffff]].concat();
                while (&theirs).write_all(&row).is_ok() {}
            });
            assert_eq!(over(ours).until_ready().unwrap_err().kind(), io::ErrorKind::InvalidData);
        });
    }
}
