//! The JSON shapes of `calve db`.

use calve_db::{Copied, Ending, Record, Swept, Template};
use serde_json::{Value, json};

pub(crate) fn server(record: &Record) -> Value {
    let mut document = json!({ "schema": "calve.db.server/1" });
    fill(&mut document, record);
    document
}

pub(crate) fn servers(records: &[Record]) -> Value {
    let servers: Vec<Value> = records.iter().map(plain_server).collect();
    json!({ "schema": "calve.db.servers/1", "servers": servers })
}

/// The servers that run, and those that ended although nobody has stopped them.
pub(crate) fn listed(records: &[Record], endings: &[Ending]) -> Value {
    let mut document = servers(records);
    let ended = |ending: &Ending| {
        json!({
            "name": ending.name,
            "reason": ending.reason.code(),
            "text": ending.reason.to_string(),
            "ended_unix_s": ending.ended_unix_s,
            "copied": ending.copied,
        })
    };
    merge(&mut document, json!({ "ended": endings.iter().map(ended).collect::<Vec<_>>() }));
    document
}

fn plain_server(record: &Record) -> Value {
    let mut document = json!({});
    fill(&mut document, record);
    document
}

fn fill(document: &mut Value, record: &Record) {
    let address = &record.address;
    let fields = json!({
        "name": record.name,
        "engine": record.engine,
        "template": record.template,
        "url": address.url,
        "tcp_url": address.tcp_url,
        "dsn": address.dsn,
        "host": address.host,
        "port": address.port,
        "socket": address.socket,
        "user": address.user,
        "password": address.password,
        "database": address.database,
        "tcp_port": address.tcp_port,
        "data_directory": record.data_directory,
        "pid": record.pid,
        "strategy": record.strategy,
        "refused": record.refused,
        "copied_on_first_open": record.copy_up,
        "clone_ms": record.clone_ms,
        "ready_ms": record.ready_ms,
        "started_unix_s": record.started_unix_s,
        "expires_unix_s": record.expires_unix_s,
        "owner_pid": record.owner_pid,
    });
    merge(document, fields);
}

pub(crate) fn template(template: &Template, reused: bool) -> Value {
    let mut document = json!({ "schema": "calve.db.template/1" });
    merge(&mut document, plain_template(template));
    merge(&mut document, json!({ "reused": reused }));
    document
}

pub(crate) fn templates(templates: &[Template]) -> Value {
    let templates: Vec<Value> = templates.iter().map(plain_template).collect();
    json!({ "schema": "calve.db.templates/1", "templates": templates })
}

fn plain_template(template: &Template) -> Value {
    json!({
        "name": template.name,
        "engine": template.engine,
        "version": template.version,
        "program": template.program,
        "key": template.key,
        "base": template.base,
        "files": template.files,
        "bytes": template.bytes,
        "made_unix_s": template.made_unix_s,
        "neutralised": template.neutralised,
        "data_directory": template.data_directory(),
    })
}

/// What an overlay has copied until now.
pub(crate) fn trace(record: &Record, copied: &[Copied]) -> Value {
    json!({
        "schema": "calve.db.trace/1",
        "name": record.name,
        "strategy": record.strategy,
        "watched": record.watched,
        "untold": record.untold,
        "copied": copied,
    })
}

pub(crate) fn swept(swept: &Swept) -> Value {
    json!({ "schema": "calve.db.gc/1", "servers": swept.servers, "builds": swept.builds })
}

fn merge(document: &mut Value, fields: Value) {
    if let (Value::Object(document), Value::Object(fields)) = (document, fields) {
        document.extend(fields);
    }
}
