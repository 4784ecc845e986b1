//! The needed part of PostgreSQL's Frontend/Backend Protocol 3.0 ("Message Formats"): a login, and single queries.

use std::io::{self, Read, Write};
use std::time::Duration;

use crate::engine::Refusal;
use crate::engine::address::Address;
use crate::engine::connection::Connection;

/// The server's error when it is still starting (`cannot_connect_now`).
const STARTING: &str = "57P03";
/// AuthenticationOk: the server asks for nothing more.
const LOGGED_IN: u32 = 0;

/// Every answer to Calve is shorter.
const LONGEST_MESSAGE: usize = 16 << 20;

pub(super) const NAME: &str = "calve";

#[derive(Debug)]
pub struct Session<S>(S);

impl Session<Connection> {
    /// Logs in as the superuser. The private socket asks for no password.
    pub(super) fn open(server: &Address, database: &str, patience: Duration) -> Result<Self, Refusal> {
        let connection = Connection::open(server, patience).ok_or(Refusal::NotYet)?;
        Self::over(connection, &server.user, database)
    }
}

impl<S: Read + Write> Session<S> {
    pub fn connect(stream: S, user: &str, database: &str) -> io::Result<Self> {
        Self::over(stream, user, database).map_err(|refusal| match refusal {
            Refusal::NotYet => io::ErrorKind::ConnectionRefused.into(),
            Refusal::Said(said) => io::Error::other(said),
        })
    }

    fn over(stream: S, user: &str, database: &str) -> Result<Self, Refusal> {
        let mut session = Self(stream);
        let mut body = 196_608_u32.to_be_bytes().to_vec();
        for word in ["user", user, "database", database, "application_name", NAME] {
            body.extend_from_slice(word.as_bytes());
            body.push(0);
        }
        body.push(0);
        let length = u32::try_from(body.len() + 4).unwrap_or(u32::MAX);
        let sent = session.0.write_all(&length.to_be_bytes()).and_then(|()| session.0.write_all(&body));
        sent.map_err(|_| Refusal::NotYet)?;
        match session.until_ready(0) {
            Ok(Ok(_)) => Ok(session),
            Ok(Err(error)) if error.code == STARTING => Err(Refusal::NotYet),
            Ok(Err(error)) => Err(Refusal::Said(error.message)),
            Err(_) => Err(Refusal::NotYet),
        }
    }

    /// Runs a query and returns the first column of its rows.
    pub(super) fn query(&mut self, sql: &str) -> Result<Vec<String>, String> {
        self.rows(sql, usize::MAX).map_err(|error| error.to_string())
    }

    /// Runs a statement to its end. Returns the first values of at most `most` rows, without NULLs.
    pub fn rows(&mut self, sql: &str, most: usize) -> io::Result<Vec<String>> {
        self.send(b'Q', sql)?;
        self.until_ready(most)?.map_err(|said| io::Error::other(said.message))
    }

    fn send(&mut self, kind: u8, text: &str) -> io::Result<()> {
        let mut message = vec![kind];
        message.extend_from_slice(&u32::try_from(text.len() + 5).unwrap_or(u32::MAX).to_be_bytes());
        message.extend_from_slice(text.as_bytes());
        message.push(0);
        self.0.write_all(&message)
    }

    /// Reads until the server waits for the next query. An error at login ends the connection instead.
    fn until_ready(&mut self, most: usize) -> io::Result<Result<Vec<String>, ServerError>> {
        let mut rows = Vec::new();
        let mut failed = None;
        loop {
            let mut head = [0; 5];
            match self.0.read_exact(&mut head) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && failed.is_some() => break,
                other => other?,
            }
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
            let length = length.checked_sub(4).filter(|length| *length <= LONGEST_MESSAGE);
            let mut body = vec![0; length.ok_or(io::ErrorKind::InvalidData)?];
            self.0.read_exact(&mut body)?;
            match head[0] {
                b'Z' => break,
                b'E' => failed = Some(ServerError::parse(&body)),
                b'D' if rows.len() < most => rows.extend(first_column(&body)),
                b'R' => match body.first_chunk().copied().map(u32::from_be_bytes) {
                    Some(LOGGED_IN) => {}
                    _ => {
                        let message = "it asks for a login that Calve does not support".to_owned();
                        return Ok(Err(ServerError { code: String::new(), message }));
                    }
                },
                _ => {}
            }
        }
        Ok(failed.map_or(Ok(rows), Err))
    }
}

#[derive(Debug)]
struct ServerError {
    code: String,
    message: String,
}

impl ServerError {
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

/// Parses the first column of a `DataRow`: the number of columns, then each column with its length before it.
fn first_column(body: &[u8]) -> Option<String> {
    let length = usize::try_from(i32::from_be_bytes(*body.get(2..6)?.first_chunk()?)).ok()?;
    Some(String::from_utf8_lossy(body.get(6..6 + length)?).into_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn over(stream: UnixStream) -> Session<Connection> {
        Session(Connection::over(stream, Duration::from_secs(60)))
    }

    #[test]
    fn rows_and_errors_are_read() {
        assert_eq!(first_column(b"\0\x01\0\0\0\x02hi"), Some("hi".to_owned()));
        assert_eq!(first_column(b"\0\x01\xff\xff\xff\xff"), None);
        let said = ServerError::parse(b"SFATAL\0C57P03\0Mthe database system is starting up\0\0");
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
                drop(over(ours).until_ready(usize::MAX));
            });
            first_column(input);
            ServerError::parse(input);
        });
    }

    // A server that never stops sending rows would fill the memory.
    #[test]
    fn an_answer_without_an_end_is_refused() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let row = [b"D\0\x01\0\x0a\0\x01\0\0\xff\xff".as_slice(), &[b'x'; 0xffff]].concat();
                while (&theirs).write_all(&row).is_ok() {}
            });
            assert_eq!(over(ours).until_ready(usize::MAX).unwrap_err().kind(), io::ErrorKind::InvalidData);
        });
    }

    // Four bytes would make the program ask for four gigabytes.
    #[test]
    fn a_message_of_gigabytes_is_refused() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (&theirs).write_all(b"D\xff\xff\xff\xff").unwrap();
        assert_eq!(Session(ours).until_ready(1).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
