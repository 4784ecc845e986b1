//! The engines, and the same deeds in the language of each.

use std::ffi::OsString;

use calve_testkit::{few_rounds, require_program};

use self::Engine::{Mariadb, Mysql, Postgres, Redis, Valkey};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    Postgres,
    Mariadb,
    Mysql,
    Redis,
    Valkey,
}

impl Engine {
    /// The SQL databases that are here. Hardly any distribution has MySQL, and the others can be tested without it.
    pub(crate) fn all() -> Vec<Self> {
        let has_mysql = require_program(MYSQL_CLIENT);
        [Postgres, Mariadb, Mysql].into_iter().filter(|engine| *engine != Mysql || has_mysql).collect()
    }

    /// Redis and Valkey. Few distributions have the second one.
    pub(crate) fn key_value() -> Vec<Self> {
        let has_valkey = require_program(VALKEY_SERVER);
        [Redis, Valkey].into_iter().filter(|engine| *engine != Valkey || has_valkey).collect()
    }

    /// All that are here.
    pub(crate) fn every() -> Vec<Self> {
        [Self::all(), Self::key_value()].concat()
    }

    /// One of each kind: MySQL and Valkey share all code with these, but for their names, settings and versions.
    pub(crate) fn families() -> [Self; 3] {
        [Postgres, Mariadb, Redis]
    }

    /// All that are here; with few rounds one of each kind.
    pub(crate) fn kinds() -> Vec<Self> {
        if few_rounds() { Self::families().to_vec() } else { Self::every() }
    }

    /// The same of the SQL databases.
    pub(crate) fn kinds_of_sql() -> Vec<Self> {
        Self::kinds().into_iter().filter(|engine| engine.is_sql()).collect()
    }

    pub(crate) fn is_sql(self) -> bool {
        !matches!(self, Redis | Valkey)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Postgres => "postgres",
            Mariadb => "mariadb",
            Mysql => "mysql",
            Redis => "redis",
            Valkey => "valkey",
        }
    }

    /// The client's command line that runs one statement, which is a script in Lua for Redis and Valkey, and prints bare values.
    pub(crate) fn client(self, sql: &str) -> Vec<OsString> {
        let words: &[&str] = match self {
            Postgres => &["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-c", sql],
            Mariadb => &["mariadb", "-BN", "-e", sql],
            Mysql => &[MYSQL_CLIENT, "-BN", "-e", sql],
            // It knows no variable for the socket.
            Redis | Valkey => &["sh", "-c", REDIS_CLIENT, sql],
        };
        words.iter().map(OsString::from).collect()
    }

    /// A thousand rows in `t`.
    pub(crate) fn fill(self) -> &'static str {
        match self {
            Postgres => "CREATE TABLE t (a int); INSERT INTO t SELECT generate_series(1, 1000)",
            Mariadb => "CREATE TABLE t (a int) ENGINE=InnoDB; INSERT INTO t SELECT seq FROM seq_1_to_1000",
            Mysql => {
                "CREATE TABLE t (a int); SET cte_max_recursion_depth = 1000; \
                 INSERT INTO t WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 1000) SELECT n FROM s"
            }
            Redis | Valkey => "for i = 1, 1000 do redis.call('RPUSH', 't', i) end",
        }
    }

    /// Returns how many rows `t` has.
    pub(crate) fn count(self) -> &'static str {
        if self.is_sql() { "SELECT count(*) FROM t" } else { "return redis.call('LLEN', 't')" }
    }

    /// Leaves the rows 1 to 10.
    pub(crate) fn shrink(self) -> &'static str {
        if self.is_sql() { "DELETE FROM t WHERE a > 10" } else { "redis.call('LTRIM', 't', 0, 9)" }
    }

    /// One more row.
    pub(crate) fn add(self) -> &'static str {
        if self.is_sql() { "INSERT INTO t VALUES (0)" } else { "redis.call('RPUSH', 't', 0)" }
    }
}

const REDIS_CLIENT: &str =
    "if [ -n \"$REDIS_SOCKET\" ]; then set -- -s \"$REDIS_SOCKET\"; else set -- -u \"$REDIS_URL\"; fi
exec redis-cli -e \"$@\" EVAL \"$0\" 0";

/// Where scripts/install/from-sid has it. The `mysql` in PATH is MariaDB's.
const MYSQL_CLIENT: &str = "/usr/local/mysql/bin/mysql";
/// The same for Valkey.
const VALKEY_SERVER: &str = "/usr/local/valkey/bin/valkey-server";

/// Puts 40 MB that cannot be compressed into Redis or Valkey.
pub(crate) const MUCH: &str = "head -c 40000000 /dev/urandom | redis-cli -e -s \"$REDIS_SOCKET\" -x SET big";
