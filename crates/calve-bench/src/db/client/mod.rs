//! A session with a server that costs no process: the little of each engine's protocol that it takes to run one statement.

mod mariadb;

use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use calve_db::{PostgresSession, Record};

/// A statement's first value; `None` when it gives no row, or NULL.
pub(super) type Value = Option<String>;

pub(super) enum Session {
    Postgres(PostgresSession<UnixStream>),
    Mariadb(mariadb::Session),
}

/// No statement of the bench takes as long.
const PATIENCE: Duration = Duration::from_secs(120);

impl Session {
    /// Of the superuser, by the private socket.
    pub(super) fn open(server: &Record) -> io::Result<Self> {
        Self::open_database(server, &server.address.database)
    }

    /// The same, with another database.
    pub(super) fn open_database(server: &Record, database: &str) -> io::Result<Self> {
        let address = &server.address;
        let stream = UnixStream::connect(&address.socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        match server.engine.as_str() {
            "postgres" => PostgresSession::connect(stream, &address.user, database).map(Self::Postgres),
            "mariadb" | "mysql" => mariadb::Session::open(stream, &address.user, database).map(Self::Mariadb),
            other => Err(io::Error::other(format!("the bench does not know the engine `{other}`"))),
        }
    }

    /// Runs one statement to its end.
    pub(super) fn run(&mut self, sql: &str) -> io::Result<Value> {
        match self {
            Self::Postgres(session) => session.first_value(sql),
            Self::Mariadb(session) => session.run(sql),
        }
    }
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the server's answer is not understood")
}
