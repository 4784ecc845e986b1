//! Receipts of `calve db`: from the reports to the JSON documents.

use calve_db::{DatabaseTemplate, Ending, Pool, PoolLimit, Record};
use calve_receipt::{DbEndedServer, DbFile, DbMark, DbPool, DbServer, DbTemplate, ReceiptPath, path};

pub(crate) fn server(record: &Record) -> DbServer {
    let Record { address, copy_up, .. } = record.clone();
    let unset = address.foreign_variables().iter().map(|name| ((*name).to_owned(), None));
    let environment = unset.chain(address.environment().into_iter().map(|(name, value)| (name, Some(value)))).collect();
    DbServer {
        name: record.name.clone(),
        engine: record.engine.clone(),
        template: record.template.clone(),
        url: address.url,
        tcp_url: address.tcp_url,
        dsn: address.dsn,
        host: address.host,
        port: address.port,
        // Not the `.` of other empty paths.
        socket: match address.socket.as_os_str().is_empty() {
            true => ReceiptPath::Text(String::new()),
            false => path(address.socket),
        },
        user: address.user,
        password: address.password,
        database: address.database,
        tcp_port: address.tcp_port,
        environment,
        data_directory: path(&record.data_directory),
        pid: if record.is_down { 0 } else { record.pid },
        strategy: record.strategy_name(),
        refused: record.refused.clone(),
        copied_on_first_open: copy_up.iter().map(|file| DbFile { path: path(&file.path), bytes: file.bytes }).collect(),
        clone_ms: record.clone_ms,
        ready_ms: record.ready_ms,
        started_unix_s: record.started_unix_s,
        expires_unix_s: record.expires_unix_s,
        owner_pid: record.owner_pid,
        standby: record.standby,
        down: record.is_down,
    }
}

pub(crate) fn pool(pool: Pool) -> DbPool {
    DbPool {
        template: pool.template,
        size: pool.size,
        waiting: pool.waiting,
        idle_s: pool.idle.map(|idle| idle.as_secs()),
        session_pid: pool.session_pid,
        limit: pool.limit.map(PoolLimit::code),
    }
}

/// Converts a mark of a server.
pub(crate) fn mark(server: &str, mark: &DatabaseTemplate) -> DbMark {
    DbMark {
        server: server.to_owned(),
        name: mark.name.clone(),
        engine: mark.engine.clone(),
        template: mark.base.clone(),
        method: "stopped",
        files: mark.files,
        bytes: mark.bytes,
        made_unix_s: mark.made_unix_s,
    }
}

pub(crate) fn template(template: &DatabaseTemplate) -> DbTemplate {
    let data_directory = path(template.data_directory());
    let image = template.image().map(str::to_owned);
    let template = template.clone();
    DbTemplate {
        name: template.name,
        engine: template.engine,
        version: template.version,
        program: path(template.program),
        image,
        key: template.key,
        base: template.base,
        files: template.files,
        bytes: template.bytes,
        made_unix_s: template.made_unix_s,
        neutralised: template.neutralised,
        data_directory,
    }
}

/// Converts the ending of a server that nobody has stopped.
pub(crate) fn ended(ending: Ending) -> DbEndedServer {
    DbEndedServer {
        reason: ending.reason.code(),
        text: ending.reason.to_string(),
        name: ending.name,
        ended_unix_s: ending.ended_unix_s,
    }
}
