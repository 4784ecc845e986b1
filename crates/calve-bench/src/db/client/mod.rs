//! A session with a server that costs no process: the little of each engine's protocol that it takes to run one statement.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use calve_db::{Address, EngineKind, MysqlSession, PostgresSession, Record};

/// The first row of a statement; `None` when it gives no row, or NULL.
pub(super) type Value = Option<String>;

/// Lists the tables that are not the engine's own, a line for each.
const POSTGRES_TABLES: &str = "SELECT string_agg(c.oid::regclass::text, E'\\n' ORDER BY c.oid::regclass::text) FROM pg_class c JOIN \
    pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema')";
const MARIADB_TABLES: &str = "SELECT GROUP_CONCAT(CONCAT('`', REPLACE(table_schema, '`', '``'), '`.`', REPLACE(table_name, '`', '``'), '`') \
    ORDER BY table_schema, table_name SEPARATOR '\\n') FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND table_schema \
    NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema')";

/// Returns the engine of a server.
pub(super) fn engine(server: &Record) -> io::Result<EngineKind> {
    server.engine_kind().ok_or_else(|| unknown(&server.engine))
}

fn unknown(engine: &str) -> io::Error {
    io::Error::other(format!("the bench does not know the engine `{engine}`"))
}

pub(super) struct Session {
    protocol: Protocol,
    /// The server's first process, where the system tells.
    pub(super) server: Option<u32>,
}

enum Protocol {
    Postgres(PostgresSession<UnixStream>),
    Mysql(MysqlSession<UnixStream>),
}

/// No statement of the bench takes as long.
const PATIENCE: Duration = Duration::from_secs(120);

impl Session {
    /// Opens a session for the superuser, by the private socket.
    pub(super) fn open(server: &Record) -> io::Result<Self> {
        Self::open_database(server, &server.address.database)
    }

    /// Opens a session as [`Self::open`] does, with another database.
    pub(super) fn open_database(server: &Record, database: &str) -> io::Result<Self> {
        Self::connect(engine(server)?, &server.address, database)
    }

    /// Opens a session as [`Self::open`] does, with a server that has no record.
    pub(super) fn open_at(engine: EngineKind, address: &Address) -> io::Result<Self> {
        Self::connect(engine, address, &address.database)
    }

    fn connect(engine: EngineKind, address: &Address, database: &str) -> io::Result<Self> {
        let stream = UnixStream::connect(&address.socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let server = calve_db::first_process(&stream);
        let protocol = match engine {
            EngineKind::Postgres => Protocol::Postgres(PostgresSession::connect(stream, &address.user, database)?),
            EngineKind::Mariadb | EngineKind::Mysql => {
                let mut session = MysqlSession::connect(stream, &address.user)?;
                session.first_row(&format!("USE `{database}`"))?;
                Protocol::Mysql(session)
            }
            EngineKind::Redis | EngineKind::Valkey => {
                return Err(unknown(engine.into()));
            }
        };
        Ok(Self { protocol, server })
    }

    pub(super) fn is_postgres(&self) -> bool {
        matches!(self.protocol, Protocol::Postgres(_))
    }

    /// Runs one statement to its end.
    pub(super) fn run(&mut self, sql: &str) -> io::Result<Value> {
        match &mut self.protocol {
            Protocol::Postgres(session) => session.first_value(sql),
            Protocol::Mysql(session) => session.first_row(sql),
        }
    }

    /// Lists all tables, a line for each.
    pub(super) fn tables(&mut self) -> io::Result<Value> {
        match &mut self.protocol {
            Protocol::Postgres(session) => session.first_value(POSTGRES_TABLES),
            Protocol::Mysql(session) => {
                // MySQL would cut the list off.
                session.first_row("SET SESSION group_concat_max_len = 16777216")?;
                session.first_row(MARIADB_TABLES)
            }
        }
    }

    /// Returns the statement whose value changes with any row of a table.
    pub(super) fn checksum(&self, table: &str) -> String {
        match &self.protocol {
            Protocol::Postgres(_) => {
                format!("SELECT count(*) || ' ' || coalesce(sum(hashtextextended(t::text, 0)), 0) FROM {table} t")
            }
            Protocol::Mysql(_) => format!("CHECKSUM TABLE {table}"),
        }
    }
}
