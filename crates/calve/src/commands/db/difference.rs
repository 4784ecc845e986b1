//! In what the data of a worktree differs from its template: for people, and for the receipt of `calve db promote`.

use calve_db::{ContentsDifference, DatabaseObject};
use calve_receipt::human::counted;
use calve_receipt::{DbDifference, DbObjectState};
use similar::{ChangeTag, TextDiff};

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
        service: service.to_owned(),
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
