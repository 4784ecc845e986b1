//! `calve db diff`.

use std::path::Path;

use calve_core::{CancelToken, ShownPath};
use calve_db::{ContentsDifference, DatabaseObject, Home, Service, ServiceOrigin};
use calve_receipt::human::counted;
use calve_receipt::{DbDiffReceipt, DbDifference, DbObjectState};
use similar::{ChangeTag, TextDiff};

use super::{home, supervisor};
use crate::cli::db::DiffArguments;
use crate::commands::services;
use crate::failure::{FAILED, Failure};
use crate::output;

/// One of the two that are compared.
enum Side {
    Template(String),
    Worktree(Vec<Service>),
}

pub(crate) fn run(arguments: &DiffArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let home = home()?;
    let before = side(&home, &arguments.before, arguments.service.as_deref())?;
    let after = arguments.after.as_deref().map(|after| side(&home, after, arguments.service.as_deref())).transpose()?;
    let names = [shown(&arguments.before), arguments.after.as_deref().map_or("its template".into(), shown)];
    let pairs = pairs(&before, after.as_ref());
    if pairs.is_empty() {
        let text = format!("{} and {} have no data of the same service", names[0], names[1]);
        return Err(Failure::stated(FAILED, text, "`calve status` in a worktree shows its services"));
    }
    // The template is what was there before.
    let (names, is_turned) =
        if after.is_none() { ([names[1].clone(), names[0].clone()], true) } else { (names, false) };
    let mut receipt = DbDiffReceipt { differences: Vec::new() };
    let mut text = String::new();
    let supervisor = supervisor()?;
    for (service, [first, second]) in pairs {
        let contents = |origin| calve_db::contents(&home, origin, &supervisor, cancel);
        let (first, second) = if is_turned { (second, first) } else { (first, second) };
        for difference in calve_db::differences(contents(first)?, contents(second)?) {
            text.push_str(&described(&difference, [&names[0], &names[1]]));
            receipt.differences.push(one(service, &difference));
        }
    }
    if arguments.json {
        return output::json(&receipt);
    }
    if text.is_empty() {
        output::say("nothing differs");
    }
    output::result(&text)
}

fn shown(name: &Path) -> String {
    format!("`{}`", ShownPath(name))
}

fn side(home: &Home, name: &Path, service: Option<&str>) -> Result<Side, Failure> {
    match name.to_str().and_then(|name| name.strip_prefix('@')) {
        Some(template) => Ok(Side::Template(template.to_owned())),
        None => services::of_named(home, name, service).map(Side::Worktree),
    }
}

/// Returns the two sides of the comparison, by the name of the service.
fn pairs<'a>(before: &'a Side, after: Option<&'a Side>) -> Vec<(&'a str, [ServiceOrigin<'a>; 2])> {
    use ServiceOrigin::{Service as Data, Template};
    let with_template = |services: &'a [Service], template: &'a str, is_first: bool| {
        let fits = move |service: &&Service| service.template == template || services.len() == 1;
        let pair = move |service: &'a Service| {
            let both = [Data(&service.name), Template(template)];
            (service.service.as_str(), if is_first { both } else { [both[1], both[0]] })
        };
        services.iter().filter(fits).map(pair).collect()
    };
    match (before, after) {
        (Side::Worktree(services), None) => {
            let pair = |service: &'a Service| [Data(&service.name), Template(&service.template)];
            services.iter().map(|service| (service.service.as_str(), pair(service))).collect()
        }
        (Side::Template(_), None) => Vec::new(),
        (Side::Template(first), Some(Side::Template(second))) => vec![("", [Template(first), Template(second)])],
        (Side::Worktree(services), Some(Side::Template(template))) => with_template(services, template, true),
        (Side::Template(template), Some(Side::Worktree(services))) => with_template(services, template, false),
        (Side::Worktree(first), Some(Side::Worktree(second))) => {
            let other = |one: &Service| second.iter().find(|other| other.service == one.service);
            let pair = |one: &'a Service| Some((one.service.as_str(), [Data(&one.name), Data(&other(one)?.name)]));
            first.iter().filter_map(pair).collect()
        }
    }
}

/// Describes a difference in one line, followed by the lines of the definition that differ.
pub(super) fn described(difference: &ContentsDifference, names: [&str; 2]) -> String {
    let Some(object) = difference.after.as_ref().or(difference.before.as_ref()) else { return String::new() };
    let name =
        if object.kind == "database" { object.name.clone() } else { format!("{}.{}", object.database, object.name) };
    let name = format!("{} {}", object.kind, plain(&name));
    let rows = |object: &DatabaseObject| {
        object.rows.as_ref().map(|rows| format!(" ({})", counted(rows.count, "row"))).unwrap_or_default()
    };
    let (before, after) = match (&difference.before, &difference.after) {
        (Some(before), Some(after)) => (before, after),
        (Some(object), None) => return format!("{name}: only in {}{}\n", names[0], rows(object)),
        (None, Some(object)) => return format!("{name}: only in {}{}\n", names[1], rows(object)),
        (None, None) => return String::new(),
    };
    let mut text = name;
    if before.rows != after.rows {
        let count = |object: &DatabaseObject| object.rows.as_ref().map_or(0, |rows| rows.count);
        text.push_str(&match (count(before), count(after)) {
            (one, other) if one == other => format!(": rows differ, {one} in each"),
            (one, other) => format!(": rows differ, {one} and {other}"),
        });
    }
    if before.definition == after.definition {
        return text + "\n";
    }
    text.push_str(if before.rows == after.rows { ": definition differs\n" } else { "; definition differs\n" });
    for change in TextDiff::from_lines(&before.definition, &after.definition).iter_all_changes() {
        let sign = match change.tag() {
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
            ChangeTag::Equal => continue,
        };
        text.push_str(&format!("  {sign}{}\n", plain(change.value().trim_end_matches('\n'))));
    }
    text
}

/// Makes a text plain that the author of the database chose.
fn plain(text: &str) -> String {
    text.replace(|c: char| c.is_control(), " ")
}

pub(super) fn one(service: &str, difference: &ContentsDifference) -> DbDifference {
    let either = difference.after.as_ref().or(difference.before.as_ref());
    let text = |part: fn(&DatabaseObject) -> &String| either.map(|object| part(object).clone()).unwrap_or_default();
    DbDifference {
        service: Some(service.to_owned()).filter(|service| !service.is_empty()),
        database: text(|object| &object.database),
        kind: text(|object| &object.kind),
        name: text(|object| &object.name),
        before: difference.before.as_ref().map(state),
        after: difference.after.as_ref().map(state),
    }
}

fn state(object: &DatabaseObject) -> DbObjectState {
    DbObjectState {
        rows: object.rows.as_ref().map(|rows| rows.count),
        checksum: object.rows.as_ref().map(|rows| rows.checksum.clone()),
        definition: object.definition.clone(),
    }
}
