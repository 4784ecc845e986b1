//! MariaDB: the client/server protocol with a password that is empty, and its text query.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use super::{Value, broken};

pub(crate) struct Session {
    stream: UnixStream,
    sequence: u8,
}

/// `CLIENT_CONNECT_WITH_DB`, `CLIENT_PROTOCOL_41`, `CLIENT_SECURE_CONNECTION`, `CLIENT_PLUGIN_AUTH`.
const CAPABILITIES: u32 = 0x8 | 0x200 | 0x8000 | 0x8_0000;
const UTF8MB4: u8 = 45;
const COM_QUERY: u8 = 3;
const OK: u8 = 0x00;
const NULL: u8 = 0xfb;
const END: u8 = 0xfe;
const ERROR: u8 = 0xff;

impl Session {
    pub(super) fn open(stream: UnixStream, user: &str, database: &str) -> io::Result<Self> {
        let mut session = Self { stream, sequence: 0 };
        refused(&session.receive()?)?;
        let mut answer = CAPABILITIES.to_le_bytes().to_vec();
        answer.extend_from_slice(&0x0100_0000_u32.to_le_bytes());
        answer.push(UTF8MB4);
        answer.extend_from_slice(&[0; 23]);
        answer.extend_from_slice(user.as_bytes());
        // The end of the name, and an answer to the challenge that is empty, as the password is.
        answer.extend_from_slice(&[0, 0]);
        answer.extend_from_slice(database.as_bytes());
        answer.extend_from_slice(b"\0mysql_native_password\0");
        session.send(&answer)?;
        let mut said = session.receive()?;
        if said.first() == Some(&END) {
            session.send(&[])?;
            said = session.receive()?;
        }
        refused(&said)?;
        Ok(session)
    }

    pub(super) fn run(&mut self, sql: &str) -> io::Result<Value> {
        self.sequence = 0;
        let mut query = vec![COM_QUERY];
        query.extend_from_slice(sql.as_bytes());
        self.send(&query)?;
        let said = self.receive()?;
        refused(&said)?;
        if said.first() == Some(&OK) {
            return Ok(None);
        }
        loop {
            let column = self.receive()?;
            refused(&column)?;
            if is_end(&column) {
                break;
            }
        }
        let mut first = None;
        loop {
            let row = self.receive()?;
            refused(&row)?;
            if is_end(&row) {
                return Ok(first);
            }
            first = first.or_else(|| value(&row));
        }
    }

    fn send(&mut self, body: &[u8]) -> io::Result<()> {
        let length = u32::try_from(body.len()).map_err(|_| broken())?.to_le_bytes();
        let mut packet = vec![length[0], length[1], length[2], self.sequence];
        packet.extend_from_slice(body);
        self.stream.write_all(&packet)
    }

    fn receive(&mut self) -> io::Result<Vec<u8>> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head)?;
        self.sequence = head[3].wrapping_add(1);
        let mut body = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
        self.stream.read_exact(&mut body)?;
        Ok(body)
    }
}

fn is_end(packet: &[u8]) -> bool {
    packet.first() == Some(&END) && packet.len() < 9
}

/// An error: its mark, a number, `#` and the five characters of a state, and text.
fn refused(packet: &[u8]) -> io::Result<()> {
    if packet.first() != Some(&ERROR) {
        return Ok(());
    }
    let text = packet.get(3..).unwrap_or_default();
    let text = if text.first() == Some(&b'#') { text.get(6..).unwrap_or_default() } else { text };
    Err(io::Error::other(String::from_utf8_lossy(text).into_owned()))
}

/// The columns of a row, with a space between them: for each a length of one, three or four bytes, and its bytes. `None` if one is NULL.
fn value(row: &[u8]) -> Value {
    let (mut columns, mut rest) = (Vec::new(), row);
    while let Some(first) = rest.first() {
        let (start, length) = match *first {
            NULL => return None,
            0xfc => (3, u32::from_le_bytes([*rest.get(1)?, *rest.get(2)?, 0, 0])),
            0xfd => (4, u32::from_le_bytes([*rest.get(1)?, *rest.get(2)?, *rest.get(3)?, 0])),
            short => (1, u32::from(short)),
        };
        let end = start + length as usize;
        columns.push(String::from_utf8_lossy(rest.get(start..end)?));
        rest = rest.get(end..)?;
    }
    Some(columns.join(" "))
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn fuzz_bench_mariadb() {
        let rows = b"\x01\0\0\x01\x01\x05\0\0\x02\x03def\0\x05\0\0\x03\xfe\0\0\x02\0\x03\0\0\x04\x02hi\x05\0\0\x05\xfe\0\0\x02\0";
        let error = b"\x0a\0\0\x01\xff\x15\x04#28000no";
        calve_testkit::fuzz(&[rows, error, b"\x07\0\0\x01\0\0\0\x02\0\0\0"], |input| {
            let (ours, theirs) = UnixStream::pair().unwrap();
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    (&theirs).write_all(input).and_then(|()| theirs.shutdown(std::net::Shutdown::Write))
                });
                drop(Session { stream: ours, sequence: 0 }.run("SELECT 1"));
            });
            drop(value(input));
            drop(refused(input));
        });
    }
}
