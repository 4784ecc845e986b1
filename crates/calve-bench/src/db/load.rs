//! Writing for some seconds, by the engine's usual program for that: how many transactions, and how long the longest took.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use calve_core::CancelToken;
use calve_db::Address;

use super::client::Session;
use crate::{process, programs};

/// Connections of the load.
const CLIENTS: u32 = 4;

/// One second of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Second {
    pub(super) transactions: f64,
    pub(super) worst_ms: f64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct LoadResult {
    pub(super) per_second: f64,
    pub(super) worst_ms: f64,
    pub(super) timeline: Vec<Second>,
}

/// A program that makes it, and what it writes to.
pub(super) struct LoadProgram {
    pub(super) name: &'static str,
    path: PathBuf,
    kind: Kind,
    pub(super) duration: Duration,
}

enum Kind {
    /// Whether its tables are in the template.
    Pgbench { there: bool },
    /// The database with its tables, how many they are, and the rows of the first.
    Sysbench { tables: Option<(String, u64, u64)> },
}

/// The tables that sysbench makes when the template has none of its.
const ROWS: u64 = 10_000;
const SYSBENCH_TABLES: &str = "SELECT CONCAT(table_schema, ' ', COUNT(*)) FROM information_schema.tables WHERE table_name REGEXP \
                               '^sbtest[0-9]+$' GROUP BY table_schema ORDER BY COUNT(*) DESC LIMIT 1";

impl LoadProgram {
    /// Finds the load program for the server's engine; the inner error is the name of a program that is not installed.
    pub(super) fn find(
        session: &mut Session,
        beside: &Path,
        duration: Duration,
    ) -> io::Result<Result<Self, &'static str>> {
        let is_postgres = session.is_postgres();
        let name = if is_postgres { "pgbench" } else { "sysbench" };
        let at_the_server = beside.with_file_name(name);
        let Some(path) = programs::find(name).or_else(|| at_the_server.is_file().then_some(at_the_server)) else {
            return Ok(Err(name));
        };
        let kind = if is_postgres {
            let there = session.run("SELECT to_regclass('pgbench_accounts') IS NOT NULL")?;
            Kind::Pgbench { there: there.as_deref() == Some("t") }
        } else {
            let found = session.run(SYSBENCH_TABLES)?;
            let found = found.as_deref().and_then(|found| found.rsplit_once(' '));
            let tables = match found.and_then(|(database, tables)| Some((database.to_owned(), tables.parse().ok()?))) {
                Some((database, tables)) => {
                    let rows =
                        session.run(&format!("SELECT MAX(id) FROM `{}`.sbtest1", database.replace('`', "``")))?;
                    let rows = rows.and_then(|rows| rows.parse().ok());
                    rows.map(|rows: u64| (database, tables, rows))
                }
                None => None,
            };
            Kind::Sysbench { tables }
        };
        Ok(Ok(Self { name, path, kind, duration }))
    }

    /// Describes the load: "`pgbench -N`, 4 clients, 10 s, on the template's tables".
    pub(super) fn in_words(&self) -> String {
        let (what, there) = match &self.kind {
            Kind::Pgbench { there } => ("pgbench -N", *there),
            Kind::Sysbench { tables } => ("sysbench oltp_write_only", tables.is_some()),
        };
        let whose = if there { "the template's tables" } else { "tables made for it in each clone" };
        format!("`{what}`, {CLIENTS} clients, {} s, on {whose}", self.duration.as_secs())
    }

    /// Makes the load's tables, where the template has none. Not timed.
    pub(super) fn prepare(&self, server: &Address, at: &Path, cancel: &CancelToken) -> io::Result<()> {
        let mut command = match &self.kind {
            Kind::Pgbench { there: false } => {
                let mut command = self.command(server);
                command.args(["-i", "-q", "-s", "1"]);
                command
            }
            Kind::Sysbench { tables: None } => self.sysbench(server, &server.database, 1, ROWS, "prepare"),
            _ => return Ok(()),
        };
        self.finish(&mut command, at, cancel).map(drop)
    }

    pub(super) fn run(&self, server: &Address, at: &Path, cancel: &CancelToken) -> io::Result<LoadResult> {
        let seconds = self.duration.as_secs().to_string();
        match &self.kind {
            Kind::Pgbench { .. } => {
                let mut command = self.command(server);
                command.args(["-n", "-N", "-c", &CLIENTS.to_string(), "-j", "2", "-T", &seconds]);
                command.arg("-l").arg("--log-prefix").arg(at.join("pgbench_log"));
                let ran = self.finish(&mut command, at, cancel);
                let log = take_logs(at)?;
                ran.map(|_| load(&of_pgbench(&log), self.duration))
            }
            Kind::Sysbench { tables } => {
                let (database, tables, rows) = match tables {
                    Some((database, tables, rows)) => (database.as_str(), *tables, *rows),
                    None => (server.database.as_str(), 1, ROWS),
                };
                let mut command = self.sysbench(server, database, tables, rows, "run");
                command.args(["--report-interval=1", "--percentile=100", &format!("--time={seconds}")]);
                let said = self.finish(&mut command, at, cancel)?;
                Ok(of_sysbench(&said, self.duration))
            }
        }
    }

    fn command(&self, server: &Address) -> Command {
        let mut command = Command::new(&self.path);
        for name in server.foreign_variables() {
            command.env_remove(name);
        }
        command.envs(server.environment());
        command
    }

    fn sysbench(&self, server: &Address, database: &str, tables: u64, rows: u64, step: &str) -> Command {
        let mut command = self.command(server);
        command.arg("oltp_write_only").arg("--db-driver=mysql").arg(format!("--mysql-user={}", server.user));
        command.arg(format!("--mysql-socket={}", server.socket.display())).arg(format!("--mysql-db={database}"));
        command.arg(format!("--tables={tables}")).arg(format!("--table-size={rows}"));
        command.arg(format!("--threads={CLIENTS}")).arg(step);
        command
    }

    fn finish(&self, command: &mut Command, at: &Path, cancel: &CancelToken) -> io::Result<String> {
        let (output, errors) = (at.join("load.out"), at.join("load.err"));
        let file = |path: &Path| fs_err::File::create(path).map(|file| Stdio::from(std::fs::File::from(file)));
        command.stdin(Stdio::null()).stdout(file(&output)?).stderr(file(&errors)?);
        let ended = process::measure_command(command, cancel)?;
        let said = fs_err::read_to_string(&output)?;
        if ended.status.success() {
            return Ok(said);
        }
        let last = |text: &str| text.lines().rev().find(|line| !line.trim().is_empty()).map(str::to_owned);
        let why = last(&fs_err::read_to_string(&errors)?).or_else(|| last(&said)).unwrap_or_default();
        Err(io::Error::other(format!("{}: {}: {why}", self.name, ended.in_words())))
    }
}

/// Where and how long: a transaction's second since the first began, and its milliseconds.
type Transaction = (u64, f64);

/// Returns the logs of all threads, and removes them.
fn take_logs(at: &Path) -> io::Result<String> {
    let mut text = String::new();
    for entry in fs_err::read_dir(at)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("pgbench_log") {
            text.push_str(&fs_err::read_to_string(entry.path())?);
            fs_err::remove_file(entry.path())?;
        }
    }
    Ok(text)
}

/// Parses the lines of pgbench's log: client, number, microseconds, script, and when it ended, in seconds and microseconds.
fn of_pgbench(log: &str) -> Vec<Transaction> {
    let parsed = log.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(2);
        let took: u64 = fields.next()?.parse().ok()?;
        let (seconds, more): (u64, u64) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        Some((seconds * 1_000_000 + more, took))
    });
    let ended: Vec<(u64, u64)> = parsed.collect();
    let began = ended.iter().map(|(end, took)| end.saturating_sub(*took)).min().unwrap_or(0);
    ended.into_iter().map(|(end, took)| ((end - began) / 1_000_000, took as f64 / 1000.0)).collect()
}

fn load(transactions: &[Transaction], duration: Duration) -> LoadResult {
    let mut seconds: BTreeMap<u64, Second> = BTreeMap::new();
    for (second, took_ms) in transactions {
        let second = seconds.entry(*second).or_default();
        second.transactions += 1.0;
        second.worst_ms = second.worst_ms.max(*took_ms);
    }
    // A second in which none ended is one too.
    let last = seconds.keys().next_back().copied();
    let timeline = last.map_or_else(Vec::new, |last| {
        (0..=last).map(|second| seconds.get(&second).copied().unwrap_or_default()).collect()
    });
    LoadResult {
        per_second: transactions.len() as f64 / duration.as_secs_f64(),
        worst_ms: transactions.iter().map(|(_, took)| *took).fold(0.0, f64::max),
        timeline,
    }
}

/// Parses sysbench's output: `[ 1s ] thds: 4 tps: 812.3 qps: … lat (ms,100%): 12.08 err/s: …`, and in the end `max: 12.08`.
fn of_sysbench(said: &str, duration: Duration) -> LoadResult {
    let number = |text: &str| text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
    let after = |line: &str, mark: &str| line.split_once(mark).and_then(|(_, rest)| number(rest));
    let second =
        |line: &str| Some(Second { transactions: after(line, " tps: ")?, worst_ms: after(line, "lat (ms,100%): ")? });
    let total = said.lines().find_map(|line| after(line, "transactions:"));
    LoadResult {
        per_second: total.unwrap_or(0.0) / duration.as_secs_f64(),
        worst_ms: said.lines().find_map(|line| line.trim().strip_prefix("max:").and_then(number)).unwrap_or(0.0),
        timeline: said.lines().filter_map(second).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_are_put_where_they_ended() {
        let log = "0 1 500000 0 100 500000\n1 1 20000 0 100 700000\n0 2 30000 0 102 100000\n";
        let load = load(&of_pgbench(log), Duration::from_secs(3));
        assert_eq!((load.per_second, load.worst_ms), (1.0, 500.0));
        let expected = [(2.0, 500.0), (0.0, 0.0), (1.0, 30.0)];
        assert_eq!(load.timeline, expected.map(|(transactions, worst_ms)| Second { transactions, worst_ms }));
    }

    #[test]
    fn what_sysbench_prints_is_read() {
        let said = "[ 1s ] thds: 4 tps: 812.30 qps: 4890.11 (r/w/o: 0.00/3260/1630) lat (ms,100%): 12.08 err/s: 0.00 reconn/s: 0.00\n\
                    SQL statistics:\n    transactions:                        1624   (811.9 per sec.)\n\
                    Latency (ms):\n         min:                                    2.01\n         max:                                   14.50\n";
        let load = of_sysbench(said, Duration::from_secs(2));
        assert_eq!((load.per_second, load.worst_ms), (812.0, 14.5));
        assert_eq!(load.timeline, [Second { transactions: 812.3, worst_ms: 12.08 }]);
    }
}
