//! A session without a client process, by as much of each engine's protocol as one statement takes.

use std::io;
use std::time::Duration;

use calve_db::{Address, EngineKind, MysqlSession, PostgresSession, Server};

pub(super) fn engine(server: &Server) -> io::Result<EngineKind> {
    server.engine.parse().map_err(|_| unknown(&server.engine))
}

fn unknown(engine: &str) -> io::Error {
    io::Error::other(format!("the bench does not know the engine `{engine}`"))
}

type Ask = Box<dyn FnMut(&str) -> io::Result<Option<String>>>;

pub(super) struct Session {
    ask: Ask,
    /// The server's first process, if the system names it.
    pub(super) server: Option<u32>,
}

/// No statement of the bench takes as long.
const PATIENCE: Duration = Duration::from_secs(120);

impl Session {
    /// Opens a session for the superuser, by the private socket.
    pub(super) fn open(server: &Server) -> io::Result<Self> {
        Self::open_at(engine(server)?, &server.address)
    }

    /// Opens a session like [`Self::open`], with a server that has no record.
    pub(super) fn open_at(engine: EngineKind, address: &Address) -> io::Result<Self> {
        let stream = address.connect()?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let server = calve_db::first_process(&stream);
        let ask: Ask = match engine {
            EngineKind::Postgres => {
                let mut session = PostgresSession::connect(stream, &address.user, &address.database)?;
                Box::new(move |sql| Ok(session.rows(sql, 1)?.pop()))
            }
            EngineKind::Mariadb | EngineKind::Mysql => {
                let mut session = MysqlSession::connect(stream, &address.user)?;
                session.first_row(&format!("USE `{}`", address.database))?;
                Box::new(move |sql| session.first_row(sql))
            }
            engine => return Err(unknown(engine.into())),
        };
        Ok(Self { ask, server })
    }

    /// Returns the first row of a statement. `None` for no row, or NULL.
    pub(super) fn run(&mut self, sql: &str) -> io::Result<Option<String>> {
        (self.ask)(sql)
    }
}
