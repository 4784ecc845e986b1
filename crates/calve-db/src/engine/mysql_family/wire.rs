//! The needed part of MySQL's Client/Server Protocol: "Connection Phase" without a password, and "Text Protocol".

use std::io::{self, BufReader, Read, Write};
use std::time::Duration;

use crate::engine::address::Address;
use crate::engine::connection::Connection;

pub(super) const USER: &str = "root";
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// A message in several packets would be longer than every answer to Calve.
const LONGEST_PACKET: usize = (1 << 24) - 2;
/// CLIENT_LONG_PASSWORD, CLIENT_PROTOCOL_41, CLIENT_TRANSACTIONS, CLIENT_SECURE_CONNECTION, CLIENT_PLUGIN_AUTH.
const CAPABILITIES: u32 = 1 | 1 << 9 | 1 << 13 | 1 << 15 | 1 << 19;
const UTF8MB4: u8 = 45;
const PLUGIN: &str = "mysql_native_password";
const COM_QUERY: u8 = 3;

const OK: u8 = 0;
const MORE_DATA: u8 = 1;
const LOCAL_FILE: u8 = 0xfb;
const END: u8 = 0xfe;
const ERROR: u8 = 0xff;

/// Logs in without a password. `None`: there is no server, or it refuses.
pub(super) fn open(server: &Address) -> Option<Session<Connection>> {
    Session::connect(Connection::open(server, PATIENCE)?, USER).ok()
}

#[derive(Debug)]
pub struct Session<S> {
    stream: BufReader<S>,
    number: u8,
}

impl<S: Read + Write> Session<S> {
    pub fn connect(stream: S, user: &str) -> io::Result<Self> {
        let mut session = Self { stream: BufReader::new(stream), number: 0 };
        session.packet()?;
        let mut login = CAPABILITIES.to_le_bytes().to_vec();
        login.extend_from_slice(&(LONGEST_PACKET as u32).to_le_bytes());
        login.push(UTF8MB4);
        login.extend_from_slice(&[0; 23]);
        login.extend_from_slice(user.as_bytes());
        // The end of the name, and an empty password.
        login.extend_from_slice(&[0, 0]);
        login.extend_from_slice(PLUGIN.as_bytes());
        login.push(0);
        session.send(&login)?;
        loop {
            let said = session.packet()?;
            match said.first() {
                Some(&OK) => return Ok(session),
                // A switch to another plugin, which also expects an empty password.
                Some(&END) => {
                    let is_native = said[1..].split(|byte| *byte == 0).next() == Some(PLUGIN.as_bytes());
                    session.send(if is_native { &[] } else { &[0] })?;
                }
                Some(&MORE_DATA) => {}
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }

    /// Returns the values of a statement's first row, joined by spaces. `None`: no row, or NULL.
    pub fn first_row(&mut self, sql: &str) -> io::Result<Option<String>> {
        let first = self.rows(sql)?.into_iter().next();
        Ok(first.and_then(|row| row.into_iter().collect::<Option<Vec<_>>>()).map(|values| values.join(" ")))
    }

    /// Runs a statement to its end.
    pub fn rows(&mut self, sql: &str) -> io::Result<Vec<Vec<Option<String>>>> {
        self.number = 0;
        self.send(&[&[COM_QUERY], sql.as_bytes()].concat())?;
        let head = self.packet()?;
        let columns = match head.first() {
            Some(&OK) => return Ok(Vec::new()),
            Some(&LOCAL_FILE) | None => return Err(io::ErrorKind::InvalidData.into()),
            _ => length(&mut &*head).ok_or(io::ErrorKind::InvalidData)?,
        };
        for _ in 0..columns {
            self.packet()?;
        }
        self.packet()?;
        let mut rows = Vec::new();
        loop {
            let packet = self.packet()?;
            if packet.first() == Some(&END) && packet.len() < 9 {
                return Ok(rows);
            }
            rows.push(row(&packet).ok_or(io::ErrorKind::InvalidData)?);
        }
    }

    /// Reads a packet, or the error that it reports.
    fn packet(&mut self) -> io::Result<Vec<u8>> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head)?;
        let length = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
        if length > LONGEST_PACKET {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.number = head[3].wrapping_add(1);
        let mut packet = vec![0; length];
        self.stream.read_exact(&mut packet)?;
        if packet.first() == Some(&ERROR) {
            // Skips the error number (two bytes) and the state (six).
            let said = packet.get(3..).unwrap_or_default();
            let said = if said.first() == Some(&b'#') { said.get(6..).unwrap_or_default() } else { said };
            return Err(io::Error::other(String::from_utf8_lossy(said).into_owned()));
        }
        Ok(packet)
    }

    fn send(&mut self, body: &[u8]) -> io::Result<()> {
        let length = u32::try_from(body.len()).ok().filter(|length| *length as usize <= LONGEST_PACKET);
        let [a, b, c, _] = length.ok_or(io::ErrorKind::InvalidInput)?.to_le_bytes();
        self.stream.get_mut().write_all(&[&[a, b, c, self.number], body].concat())
    }
}

/// Takes a length-encoded number: one byte, or two, three or eight after a marker byte.
fn length(from: &mut &[u8]) -> Option<usize> {
    let (first, rest) = from.split_first()?;
    let bytes = match first {
        0..=250 => 0,
        252 => 2,
        253 => 3,
        254 => 8,
        _ => return None,
    };
    let (number, rest) = rest.split_at_checked(bytes)?;
    *from = rest;
    if bytes == 0 {
        return Some(usize::from(*first));
    }
    let mut whole = [0; 8];
    whole[..bytes].copy_from_slice(number);
    usize::try_from(u64::from_le_bytes(whole)).ok()
}

/// Parses a row's values, of which `None` is NULL.
fn row(mut packet: &[u8]) -> Option<Vec<Option<String>>> {
    let mut row = Vec::new();
    while let Some(first) = packet.first() {
        if *first == LOCAL_FILE {
            // In a row, this is NULL.
            packet = &packet[1..];
            row.push(None);
            continue;
        }
        let length = length(&mut packet)?;
        let (value, rest) = packet.split_at_checked(length)?;
        packet = rest;
        row.push(Some(String::from_utf8_lossy(value).into_owned()));
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_taken_apart() {
        assert_eq!(row(b"\x02hi\xfb\0"), Some(vec![Some("hi".into()), None, Some(String::new())]));
        assert_eq!(row(b"\xfc\x03\0abc"), Some(vec![Some("abc".into())]));
        assert_eq!((row(b"\x05hi"), row(b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff")), (None, None));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn fuzz_mysql() {
        let greeting = b"\x04\0\0\0\x0a9.0\x02\0\0\x02\xfe\x61\x02\0\0\x02\0\0";
        let rows = b"\x01\0\0\x01\x01\x01\0\0\x02a\x01\0\0\x03\xfe\x03\0\0\x04\x02hi\x01\0\0\x05\xfe";
        let error = b"\x0c\0\0\x01\xff\x15\x04#28000denied";
        calve_testkit::fuzz(&[greeting, rows, error, &[&greeting[..], rows].concat()], |input| {
            let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    (&theirs).write_all(input).and_then(|()| theirs.shutdown(std::net::Shutdown::Write))
                });
                if let Ok(mut session) = Session::connect(ours, "root") {
                    drop(session.first_row("SELECT 1"));
                }
            });
            row(input);
        });
    }
}
