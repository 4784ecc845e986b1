//! `calve db template push` and `calve db template pull`.

use calve_testkit::require_program;
use serde_json::Value;

use super::server::Server;
use super::template as file_template;
use crate::program::{Calve, calve};
use crate::spot::{Spot, names};

pub(super) const POSTGRES: &str = "postgres";
pub(super) const MARIADB: &str = "mariadb";
pub(super) const REDIS: &str = "redis";

/// A registry, and homes of several machines.
pub(super) struct Machines {
    pub(super) server: Server,
    pub(super) spot: Spot,
    engine: &'static str,
}

impl Machines {
    /// One with a template `shop`, which is not pushed. `None` is a skip.
    pub(super) fn new(engine: &'static str, fill: &str) -> Option<Self> {
        Self::on(Spot::anywhere(), engine, fill)
    }

    pub(super) fn on(spot: Spot, engine: &'static str, fill: &str) -> Option<Self> {
        let programs = match engine {
            POSTGRES => ["postgres", "psql"],
            MARIADB => ["mariadbd", "mariadb"],
            _ => ["redis-server", "redis-cli"],
        };
        if !programs.iter().all(|program| require_program(program)) {
            return None;
        }
        let server = Server::new()?;
        // Servers of root's run as another user, who must get through.
        rustix::fs::chmod(&*spot, 0o755.into()).unwrap();
        let machines = Self { server, spot, engine };
        machines.create(&["shop"], fill);
        Some(machines)
    }

    /// `calve db template create WORDS`, at home.
    pub(super) fn create(&self, words: &[&str], fill: &str) {
        let create = ["template", "create", "-q", "--engine", self.engine];
        self.db("home", &[&create, words, &["--"]].concat()).args(client(self.engine, fill)).succeeds();
    }

    /// `calve db WORDS`, on a machine of that name.
    pub(super) fn db(&self, home: &str, words: &[&str]) -> Calve {
        let nobody = self.spot.join("nobody");
        let command = calve(["db"].iter().chain(words)).within(&self.spot).env("CALVE_HOME", self.spot.join(home));
        command.env("HOME", &nobody).env("XDG_CONFIG_HOME", &nobody).env("XDG_RUNTIME_DIR", &nobody)
    }

    pub(super) fn push(&self) -> Calve {
        let reference = format!("{}/shop", self.server.host);
        self.db("home", &["template", "push", "--plain-http", "--json", "shop", &reference])
    }

    pub(super) fn pull(&self, home: &str) -> Calve {
        self.db(home, &["template", "pull", "--plain-http", "--json", &format!("{}/shop", self.server.host)])
    }

    /// Asks a server on a clone of the template.
    #[track_caller]
    pub(super) fn ask(&self, home: &str, query: &str) -> String {
        let asked = self.db(home, &["run", "-q", "shop", "--"]).args(client(self.engine, query)).succeeds();
        asked.stdout.trim_end().to_owned()
    }

    /// The templates on that machine, without what hidden parts there may be of others.
    #[track_caller]
    pub(super) fn templates(&self, home: &str) -> Vec<Value> {
        let listed = self.db(home, &["template", "list", "--json"]).succeeds().json();
        let servers = names(self.spot.join(home).join("db/servers"));
        assert!(!servers.iter().any(|name| name.starts_with(".building")), "{servers:?}");
        listed["templates"].as_array().unwrap().clone()
    }
}

/// A client of the engine that finds its server by the environment.
fn client(engine: &str, query: &str) -> Vec<String> {
    let words: &[&str] = match engine {
        POSTGRES => &["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-c", query],
        MARIADB => &["mariadb", "-BN", "-e", query],
        _ => &["sh", "-c", "redis-cli -s \"$REDIS_SOCKET\" $0", query],
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Some megabytes that hardly compress, in pages that are filled in order.
const ROWS: &str = "CREATE TABLE t (a int, b text); \
    INSERT INTO t SELECT n, md5(n::text) || md5((-n)::text) FROM generate_series(1, 40000) n";

#[test]
fn a_database_is_the_same_after_a_push_and_a_pull() {
    let Some(machines) = Machines::new(POSTGRES, ROWS) else { return };
    let pushed = machines.push().succeeds().json();
    assert_eq!(pushed["sent_bytes"], pushed["image_bytes"]);
    let pulled = machines.pull("other").succeeds().json();
    let here = &machines.templates("home")[0];
    for field in ["name", "engine", "version", "key", "files", "bytes"] {
        assert_eq!(pulled[field], here[field], "{field}");
    }
    assert_eq!((&pulled["reused_bytes"], &pulled["up_to_date"]), (&0.into(), &false.into()));
    let sum = "SELECT count(*), sum(hashtext(t::text)) FROM t";
    assert_eq!(machines.ask("other", sum), machines.ask("home", sum));
    // Neither of them again.
    assert_eq!(machines.push().succeeds().json()["sent_bytes"], 0);
    let again = machines.pull("other").succeeds().says(&["is up to date"]).json();
    assert_eq!((&again["up_to_date"], &again["fetched_bytes"]), (&true.into(), &0.into()));
    // Neither kind of template is taken for the other.
    let reference = format!("{}/shop", machines.server.host);
    file_template(&machines.spot, "other", &["pull", "--plain-http", &reference])
        .fails(1)
        .says(&["it is one of a database, for `calve db template pull`"]);
}

#[test]
fn every_engine_travels() {
    let rows = "CREATE TABLE test.t (a int PRIMARY KEY); INSERT INTO test.t VALUES (1), (2), (3)";
    for (engine, fill, query, answer) in [
        (MARIADB, rows, "SELECT count(*), sum(a) FROM test.t", "3\t6"),
        (REDIS, "SET greeting hello", "GET greeting", "hello"),
    ] {
        let Some(machines) = Machines::new(engine, fill) else { return };
        machines.push().succeeds();
        machines.pull("other").succeeds();
        assert_eq!(machines.ask("other", query), answer);
    }
}
