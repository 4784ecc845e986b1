//! Counts the writes to kept data.
//!
//! InnoDB's log position is no measure: a restart moves it further than an INSERT does. The status variables here stay the
//! same as long as clients only read. They begin anew with each server, so a note beside the data carries them on.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::wire::{self, Session};
use crate::engine::address::Address;
use crate::engine::connection::Connection;
use crate::error::Result;
use crate::files::{private, runtime};

/// The note. A missing one: no server was started on the data yet.
const COUNT: &str = "count";

/// The time in which killed sessions roll back and leave.
const LEAVING: Duration = Duration::from_secs(2);
/// The time in which short transactions end.
const SETTLING: Duration = Duration::from_millis(500);
/// Longer than a server keeps its list of transactions.
const LIST_KEPT: Duration = Duration::from_millis(120);

#[derive(Serialize, Deserialize)]
enum Count {
    /// To be added to the running server's own count. Worthless after a crash.
    Base(u64),
    /// Covers all servers up to the last clean shutdown.
    Total(u64),
}

fn note(data: &Path) -> PathBuf {
    data.with_file_name(COUNT)
}

/// The status variables that count what clients write.
pub(super) struct Counters {
    /// The table of the server's status variables.
    pub(super) status: &'static str,
    /// In quotes, separated by commas.
    pub(super) names: &'static str,
}

impl Counters {
    fn sum(&self, session: &mut Session<Connection>) -> Option<u64> {
        let Self { status, names } = self;
        let number = names.split(',').count();
        // `FLUSH STATUS` may set the counters back.
        let sql = format!(
            "SELECT CAST(SUM(VARIABLE_VALUE) AS UNSIGNED) FROM {status} WHERE VARIABLE_NAME IN ({names}) \
             HAVING COUNT(*) = {number} AND (SELECT COUNT(DISTINCT VARIABLE_VALUE) FROM {status} \
             WHERE VARIABLE_NAME IN ('Uptime', 'Uptime_since_flush_status')) = 1"
        );
        session.first_row(&sql).ok()??.parse().ok()
    }

    /// Returns whether the session is the only one of these, and the server runs no events.
    fn is_alone(&self, session: &mut Session<Connection>, these: &str) -> bool {
        let sql = format!(
            "SELECT 1 FROM {} WHERE VARIABLE_NAME = '{these}' AND VARIABLE_VALUE = 1 \
             AND @@GLOBAL.event_scheduler <> 'ON'",
            self.status
        );
        session.first_row(&sql).is_ok_and(|row| row.is_some())
    }

    /// Returns the sum, if all that it counts was committed or rolled back at a later moment. A commit does not move it.
    fn settled(&self, session: &mut Session<Connection>) -> Option<u64> {
        let sum = self.sum(session)?;
        // Lists this session's own transaction, unless the list is older than that. Others may be prepared, without a
        // session.
        let no_changes = "SELECT 1 FROM information_schema.INNODB_TRX \
                          HAVING SUM(trx_mysql_thread_id = CONNECTION_ID()) > 0 AND SUM(trx_rows_modified) = 0";
        session.first_row("START TRANSACTION WITH CONSISTENT SNAPSHOT").ok()?;
        let begun = Instant::now();
        loop {
            // A statement may have counted a row that its transaction does not have yet, or be a commit that the list
            // no longer has and the log does not have yet.
            if self.is_alone(session, "Threads_running")
                && session.first_row(no_changes).ok()?.is_some()
                && self.is_alone(session, "Threads_running")
            {
                return Some(sum);
            }
            if begun.elapsed() > SETTLING {
                return None;
            }
            std::thread::sleep(LIST_KEPT);
        }
    }
}

pub(super) fn current(counters: &Counters, data: &Path, server: Option<&Address>) -> Option<u64> {
    match (private::read_json(&note(data)).ok()??, server) {
        (Count::Base(base), Some(server)) => Some(base.wrapping_add(counters.settled(&mut wire::open(server)?)?)),
        (Count::Total(total), None) => Some(total),
        _ => None,
    }
}

pub(super) fn begin(counters: &Counters, data: &Path, server: &Address) -> Result<()> {
    let before = match private::read_json(&note(data)) {
        Ok(None) => 0,
        Ok(Some(Count::Total(total))) => total,
        // Differs from every earlier count.
        _ => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
        }
    };
    // An unknown one is worth nothing later either, or looks like a change.
    let sum = wire::open(server).and_then(|mut session| counters.sum(&mut session)).unwrap_or_default();
    private::write_json_to_disk(&note(data), &Count::Base(before.wrapping_sub(sum)))
}

/// Ends all sessions, which could write until the server has ended, and notes the total. What they had not committed
/// is rolled back, but counts.
pub(super) fn end(counters: &Counters, data: &Path, server: &Address) -> Option<()> {
    let Count::Base(base) = private::read_json(&note(data)).ok()?? else { return None };
    let mut session = wire::open(&Address { socket: runtime::hide(&server.socket).ok()?, ..server.clone() })?;
    let own = session.first_row("SELECT CONNECTION_ID()").ok()?;
    let begun = Instant::now();
    while !counters.is_alone(&mut session, "Threads_connected") {
        if begun.elapsed() > LEAVING {
            return None;
        }
        // MySQL counts reading its table of sessions as an update.
        for row in session.rows("SHOW PROCESSLIST").ok()? {
            if let [Some(id), _, _, _, Some(command), ..] = &row[..]
                && command != "Daemon"
                && own.as_ref() != Some(id)
            {
                let _ = session.rows(&format!("KILL {id}"));
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let total = Count::Total(base.wrapping_add(counters.settled(&mut session)?));
    private::write_json_to_disk(&note(data), &total).ok()
}
