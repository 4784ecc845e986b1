//! Reading changes no data of MariaDB and MySQL, which have no position: their rows are counted.

use std::path::Path;
use std::process::Child;

use calve_testkit::matrix;

use super::services::{MARIADB, MYSQL, Shop};
use super::services_written::{HINT, kill_server};
use crate::spot::eventually;

/// One statement of each kind, among them some that write to tables of engines without transactions, or to none.
const WRITING_MYSQL: &[&str] = &[
    "INSERT INTO t VALUES (9)",
    "UPDATE t SET a = 9 WHERE a = 3",
    "DELETE FROM t WHERE a = 3",
    "TRUNCATE t",
    "ALTER TABLE t COMMENT = 'other'",
    "CREATE TABLE u (a int)",
    "CREATE DATABASE u",
    "CREATE USER u@localhost",
    "CREATE VIEW u AS SELECT 1",
    "INSERT INTO files VALUES (9)",
    "UPDATE files SET a = 9",
    "DELETE FROM files",
    "INSERT INTO lines_of VALUES (9)",
    "UPDATE lines_of SET a = 9",
];

const READING_MYSQL: &[&str] = &[
    "SELECT * FROM t, files, lines_of",
    "SELECT SUM(data_length) FROM information_schema.tables",
    "SHOW TABLE STATUS; CHECK TABLE t; FLUSH TABLES",
    "SELECT a, COUNT(*) FROM t GROUP BY a WITH ROLLUP",
    "BEGIN; SELECT * FROM t FOR UPDATE; COMMIT",
];

#[test]
fn reading_changes_nothing_on_mariadb_and_mysql() {
    for engine in matrix([MARIADB, MYSQL]) {
        let Some(shop) = Shop::new(engine) else { continue };
        reads_and_writes(&shop);
    }
}

fn reads_and_writes(shop: &Shop) {
    let tables =
        "CREATE TABLE files (a int, KEY (a)) ENGINE = MyISAM; CREATE TABLE lines_of (a int NOT NULL) ENGINE = CSV";
    let rows = "INSERT INTO files VALUES (1); INSERT INTO lines_of VALUES (1)";
    // A clone of an open MyISAM table would be repaired by its first reader.
    shop.sql(&shop.repo.path, &format!("{tables}; {rows}; FLUSH TABLES"));
    let read = shop.repo.added("read");
    for _ in 0..3 {
        shop.within(&read, &["up", "-q"]).succeeds();
        READING_MYSQL.iter().for_each(|statement| _ = shop.sql(&read, statement));
        shop.remove(&read, &["-n"]).succeeds();
        shop.within(&read, &["down", "-q"]).succeeds();
        shop.remove(&read, &["-n"]).succeeds();
    }
    // A clone of it has nothing either.
    shop.repo.adding("third").args(["--data-from", "read"]).succeeds();
    let third = shop.repo.spot.join("proj.third");
    shop.rows(&third);
    shop.remove(&third, &[]).succeeds();
    connected_to_the_end(shop, &read);
    // A server whose counters were set back, or that runs events, does not know.
    for sql in ["FLUSH STATUS", "SET GLOBAL event_scheduler = ON"] {
        let unknown = shop.repo.added(&format!("unknown-{}", sql.len()));
        shop.rows(&unknown);
        std::thread::sleep(std::time::Duration::from_secs(1));
        shop.sql(&unknown, sql);
        shop.remove(&unknown, &["-n"]).fails(1).says(&[HINT]);
        shop.within(&unknown, &["down", "-q"]).succeeds();
        shop.remove(&unknown, &[]).fails(1).says(&[HINT]);
    }
    // The count of a server that was killed is unknown, also after the next one.
    let killed = shop.repo.added("killed");
    shop.rows(&killed);
    kill_server(shop, &killed);
    for _ in 0..2 {
        shop.remove(&killed, &["-n"]).fails(1).says(&[HINT]);
        shop.rows(&killed);
        shop.within(&killed, &["down", "-q"]).succeeds();
    }
    for (number, statement) in matrix(WRITING_MYSQL.iter().copied()).enumerate() {
        let written = shop.repo.added(&format!("written-{number}"));
        // A run that only reads comes before and after the one that writes.
        for sql in ["SELECT 1", statement, "SELECT 1"] {
            shop.sql(&written, sql);
            if sql == statement {
                shop.remove(&written, &["-n"]).fails(1).says(&[HINT]);
            }
            shop.within(&written, &["down", "-q"]).succeeds();
        }
        shop.remove(&written, &[]).fails(1).says(&[HINT]);
        shop.remove(&written, &["--lose-data"]).succeeds();
    }
}

/// Clients that stay connected change nothing, in or between statements, unless they have written.
fn connected_to_the_end(shop: &Shop, read: &Path) {
    shop.rows(read);
    let idle = shop.session(read, "BEGIN; SELECT * FROM t");
    let sleeping = shop.client(read, "SELECT SLEEP(100)").start();
    eventually("the client sleeps", || shop.sql(read, "SHOW PROCESSLIST").contains("User sleep"));
    shop.within(read, &["down", "-q"]).succeeds();
    sleeping.wait();
    leave([idle]);
    shop.remove(read, &["-n"]).succeeds();
    shop.rows(read);
    let pool: [_; 8] = std::array::from_fn(|_| shop.session(read, "SELECT * FROM t"));
    shop.remove(read, &["-n"]).succeeds();
    shop.within(read, &["reset", "-q"]).succeeds();
    leave(pool);
    shop.rows(read);
    let pool: [_; 8] = std::array::from_fn(|_| shop.session(read, "BEGIN; SELECT * FROM t"));
    shop.remove(read, &["-n"]).succeeds();
    shop.remove(read, &[]).succeeds();
    leave(pool);
    // Rows of a transaction that is open at the end are rolled back. They count, like all that was written.
    for commands in [&["down", "-q"][..], &["reset"]] {
        let open = shop.repo.added(&format!("open-{}", commands[0]));
        shop.rows(&open);
        let sessions = ["SELECT * FROM t", "BEGIN; INSERT INTO t VALUES (9)"].map(|sql| shop.session(&open, sql));
        shop.remove(&open, &["-n"]).fails(1).says(&[HINT]);
        let ended = shop.within(&open, commands).run();
        assert_eq!(ended.status.success(), commands[0] == "down", "{}", ended.stderr);
        leave(sessions);
        shop.remove(&open, &["-n"]).fails(1).says(&[HINT]);
        assert_eq!(shop.rows(&open), [1, 2, 3]);
        shop.remove(&open, &[]).fails(1).says(&[HINT]);
    }
}

fn leave(sessions: impl IntoIterator<Item = Child>) {
    for mut session in sessions {
        session.kill().unwrap();
        session.wait().unwrap();
    }
}
