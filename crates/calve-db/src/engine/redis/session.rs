//! Commands to a server, in its protocol (RESP, <https://redis.io/docs/latest/develop/reference/protocol-spec/>).

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::time::Duration;

use crate::engine::Refusal;
use crate::engine::address::Address;
use crate::engine::connection::Connection;

/// Every answer to Calve is shorter.
const LONGEST_TEXT: usize = 1 << 20;

pub(super) struct Session {
    stream: BufReader<Connection>,
}

impl Session {
    pub(super) fn open(address: &Address, patience: Duration) -> Result<Self, Refusal> {
        let connection = Connection::open(address, patience).ok_or(Refusal::NotYet)?;
        let mut session = Self { stream: BufReader::new(connection) };
        if let Some(password) = &address.password {
            session.ask(&["AUTH", password])?;
        }
        Ok(session)
    }

    pub(super) fn ask(&mut self, words: &[&str]) -> Result<String, Refusal> {
        self.send(words)?;
        self.answer()?.ok_or(Refusal::NotYet)
    }

    /// Sends a command that ends the server, which then gives no answer.
    pub(super) fn end(&mut self, words: &[&str]) -> Result<(), Refusal> {
        self.send(words)?;
        self.answer().map(|_| ())
    }

    /// Returns a field of a section of `INFO`, or an empty text.
    pub(super) fn info(&mut self, section: &str, field: &str) -> Result<String, Refusal> {
        let text = self.ask(&["INFO", section])?;
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        Ok(lines.find(|(name, _)| *name == field).map(|(_, value)| value.to_owned()).unwrap_or_default())
    }

    fn send(&mut self, words: &[&str]) -> Result<(), Refusal> {
        let mut message = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            message.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
        }
        self.stream.get_mut().write_all(&message).map_err(|_| Refusal::NotYet)
    }

    /// Reads an answer. `None`: the server has closed the connection.
    fn answer(&mut self) -> Result<Option<String>, Refusal> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) => return Ok(None),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return Ok(None),
            read => drop(read.map_err(|_| Refusal::NotYet)?),
        }
        let line = line.trim_end();
        let unknown = || Refusal::Said(format!("an answer that is not understood: {}", line.as_bytes().escape_ascii()));
        match line.split_at_checked(1) {
            Some(("+" | ":", text)) => Ok(Some(text.to_owned())),
            Some(("-", error)) if error.starts_with("LOADING") => Err(Refusal::NotYet),
            Some(("-", error)) => Err(Refusal::Said(error.to_owned())),
            Some(("$", "-1")) => Ok(Some(String::new())),
            Some(("$", length)) => {
                let length = length.parse::<usize>().ok().filter(|length| *length <= LONGEST_TEXT);
                let mut text = vec![0; length.ok_or_else(unknown)? + 2];
                self.stream.read_exact(&mut text).map_err(|_| Refusal::NotYet)?;
                text.truncate(text.len() - 2);
                Ok(Some(String::from_utf8_lossy(&text).into_owned()))
            }
            _ => Err(unknown()),
        }
    }
}
