//! Members of a JSON text, added and taken out without touching the rest.
//!
//! The text was parsed before, so that the scanner here meets valid JSON only; what comes out is parsed again and compared.

use std::ops::Range;

use serde_json::{Map, Value};

use super::file::{Edit, FileLeftReason};

type Members = [(Vec<&'static str>, Value)];

/// Adds members to a text, or to none.
pub(super) fn with(before: Option<&str>, members: &Members) -> Result<Edit, FileLeftReason> {
    let Some(text) = before else {
        let mut whole = Value::Object(Map::new());
        members.iter().for_each(|(path, value)| put(&mut whole, path, value));
        return Ok(Edit::Write(format!("{whole:#}\n")));
    };
    let mut wanted = parsed(text)?;
    let mut text = text.to_owned();
    for (path, value) in members {
        check_names(&text, path)?;
        match found(&wanted, path)? {
            Some(there) if there == value => continue,
            Some(_) => return Err(FileLeftReason::Taken(path.join("."))),
            None => {}
        }
        put(&mut wanted, path, value);
        text = inserted(&text, path, value);
    }
    outcome(before, text, &wanted)
}

/// Takes members out of a text.
pub(super) fn without(before: Option<&str>, members: &Members) -> Result<Edit, FileLeftReason> {
    let Some(text) = before else { return Ok(Edit::Fine) };
    let mut left = text.to_owned();
    // The last one first, as it was added last.
    for (path, value) in members.iter().rev() {
        let whole = parsed(&left)?;
        check_names(&left, path)?;
        match found(&whole, path)? {
            None => {}
            Some(there) if there == value => match removed(&left, path) {
                Some(without) => left = without,
                None => return Ok(Edit::Remove),
            },
            Some(_) => return Err(FileLeftReason::Taken(path.join("."))),
        }
    }
    let wanted = parsed(&left)?;
    match members.iter().all(|(path, _)| found(&wanted, path) == Ok(None)) {
        true => outcome(before, left, &wanted),
        false => Err(occurs_twice()),
    }
}

fn occurs_twice() -> FileLeftReason {
    FileLeftReason::Mistake("a name occurs twice in it".into())
}

/// Refuses a text in which a name on the way to a member occurs twice: the scanner takes the first one, and a parser the last.
fn check_names(text: &str, path: &[&str]) -> Result<(), FileLeftReason> {
    let mut at = 0;
    for name in path {
        if text.as_bytes().get(blank_end(text.as_bytes(), at)) != Some(&b'{') {
            return Ok(());
        }
        let object = object_at(text, at);
        let mut same = object.members.iter().filter(|member| member.name == *name);
        match (same.next(), same.next()) {
            (Some(member), None) => at = member.value.start,
            (None, _) => return Ok(()),
            (Some(_), Some(_)) => return Err(occurs_twice()),
        }
    }
    Ok(())
}

/// Decides whether a text is written. A text that means something else than `wanted` is not, however the scanner reads it.
fn outcome(before: Option<&str>, text: String, wanted: &Value) -> Result<Edit, FileLeftReason> {
    if before == Some(&text) {
        return Ok(Edit::Fine);
    }
    match parsed(&text)? == *wanted {
        true => Ok(Edit::Write(text)),
        false => Err(occurs_twice()),
    }
}

fn parsed(text: &str) -> Result<Value, FileLeftReason> {
    let mistake = |error: serde_json::Error| match is_with_comments(text) {
        true => FileLeftReason::Comments,
        false => FileLeftReason::Mistake(error.to_string()),
    };
    let value: Value = serde_json::from_str(text).map_err(mistake)?;
    match value.is_object() {
        true => Ok(value),
        false => Err(FileLeftReason::Mistake("it is not a JSON object".into())),
    }
}

/// Returns whether the text has comments outside of strings, or commas before a closing bracket, as editors' configurations may.
fn is_with_comments(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_string(bytes, at),
            b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => return true,
            b',' if matches!(bytes.get(blank_end(bytes, at + 1)), Some(b'}' | b']')) => return true,
            _ => at += 1,
        }
    }
    false
}

fn found<'v>(whole: &'v Value, path: &[&str]) -> Result<Option<&'v Value>, FileLeftReason> {
    let mut value = whole;
    for (depth, name) in path.iter().enumerate() {
        let Some(object) = value.as_object() else { return Err(FileLeftReason::Taken(path[..depth].join("."))) };
        match object.get(*name) {
            Some(inner) => value = inner,
            None => return Ok(None),
        }
    }
    Ok(Some(value))
}

fn put(whole: &mut Value, path: &[&str], value: &Value) {
    let mut at = whole;
    for name in path {
        at = &mut at[*name];
    }
    *at = value.clone();
}

/// A member of an object: where its name begins, and its value.
struct Member {
    name: String,
    start: usize,
    value: Range<usize>,
}

/// An object in the text: where it begins, and its members.
struct Object {
    start: usize,
    members: Vec<Member>,
}

fn inserted(text: &str, path: &[&str], value: &Value) -> String {
    let mut object = object_at(text, 0);
    let mut depth = 0;
    while let Some(member) = object.members.iter().find(|member| member.name == path[depth]) {
        object = object_at(text, member.value.start);
        depth += 1;
    }
    let inner = path[depth + 1..].iter().rev().fold(value.clone(), |value, name| serde_json::json!({*name: value}));
    // The blanks tell later that these objects were not there.
    let short = path[depth + 1..]
        .iter()
        .rev()
        .fold(value.to_string(), |inner, name| format!("{{ {}: {inner} }}", Value::from(*name)));
    let name = Value::from(path[depth]);
    let (at, addition) = match object.members.last() {
        // Right behind its bracket, which tells later that the object was there.
        None => (object.start + 1, format!("{name}: {short}")),
        Some(last) => {
            let is_on_lines = text[object.start..object.members[0].start].contains('\n');
            let line =
                text[..object.members[0].start].rfind('\n').map_or("", |at| &text[at + 1..object.members[0].start]);
            let addition = match is_on_lines {
                true => format!(",\n{line}{name}: {}", on_lines(&inner, line, depth + 1)),
                false => format!(", {name}: {short}"),
            };
            (last.value.end, addition)
        }
    };
    format!("{}{addition}{}", &text[..at], &text[at..])
}

/// Writes a value on several lines, indented as the line that it begins on is, at that depth.
fn on_lines(value: &Value, indent: &str, depth: usize) -> String {
    let unit = &indent[..indent.len() / depth];
    let unit = if unit.is_empty() { "  " } else { unit };
    let pretty = format!("{value:#}");
    let lines = pretty.lines().map(|line| {
        let bare = line.trim_start_matches(' ');
        unit.repeat((line.len() - bare.len()) / 2) + bare
    });
    lines.collect::<Vec<_>>().join(&format!("\n{indent}"))
}

/// Returns the text without a member, and without the objects that were made for it. `None`: nothing else was in it.
fn removed(text: &str, path: &[&str]) -> Option<String> {
    let mut object = object_at(text, 0);
    for name in &path[..path.len() - 1] {
        let member = object.members.iter().find(|member| member.name == *name)?;
        object = object_at(text, member.value.start);
    }
    let name = path[path.len() - 1];
    let number = object.members.iter().position(|member| member.name == name)?;
    let own = &object.members[number];
    let range = match (number.checked_sub(1), object.members.get(number + 1)) {
        (Some(before), _) => object.members[before].value.end..own.value.end,
        (None, Some(after)) => own.start..after.start,
        (None, None) if text[object.start + 1..own.start].is_empty() => own.start..own.value.end,
        (None, None) if path.len() > 1 => return removed(text, &path[..path.len() - 1]),
        (None, None) => return None,
    };
    Some(format!("{}{}", &text[..range.start], &text[range.end..]))
}

/// Scans the object that begins at `at` or after blanks.
fn object_at(text: &str, at: usize) -> Object {
    let bytes = text.as_bytes();
    let start = blank_end(bytes, at);
    let mut members = Vec::new();
    let mut at = blank_end(bytes, start + 1);
    while bytes.get(at) == Some(&b'"') {
        let name_end = end_of_string(bytes, at);
        let name = serde_json::from_str(&text[at..name_end]).unwrap_or_default();
        let value_start = blank_end(bytes, blank_end(bytes, name_end) + 1);
        let value_end = end_of_value(bytes, value_start);
        members.push(Member { name, start: at, value: value_start..value_end });
        at = blank_end(bytes, value_end);
        if bytes.get(at) == Some(&b',') {
            at = blank_end(bytes, at + 1);
        }
    }
    Object { start, members }
}

fn blank_end(bytes: &[u8], at: usize) -> usize {
    (at..bytes.len()).find(|&at| !bytes[at].is_ascii_whitespace()).unwrap_or(bytes.len())
}

/// Returns the position after a string whose opening quote is at `at`.
fn end_of_string(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

fn end_of_value(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = end_of_string(bytes, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => return if depth == 1 { at + 1 } else { at },
            b'}' | b']' => depth -= 1,
            b',' if depth == 0 => return at,
            byte if depth == 0 && byte.is_ascii_whitespace() => return at,
            _ => {}
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn members() -> Vec<(Vec<&'static str>, Value)> {
        vec![
            (vec!["hooks", "Create"], json!([{"hooks": [{"command": "calve \"x\""}]}])),
            (vec!["hooks", "Remove"], json!(["y"])),
            (vec!["servers", "calve"], json!({"command": "calve", "args": ["mcp"]})),
        ]
    }

    #[test]
    fn what_was_added_is_taken_away_byte_for_byte() {
        for text in [
            "{}",
            "{ }\n",
            "{\n}\n",
            "{\"a\": 1}",
            "{\"a\":{\"b\":[1,{\"hooks\":{}}]},\"z\":\"}\\\"{\"}\n",
            "{\n  \"model\": \"x\",\n  \"list\": [1, 2,\n 3]\n}\n",
            "{\n\t\"hooks\": {\n\t\t\"Other\": [\n\t\t\t1\n\t\t]\n\t},\n\t\"z\": null\n}",
            "{\r\n    \"hooks\": {},\r\n    \"servers\": { \"other\": {\"command\": \"//no comment\"} }\r\n}\r\n",
            "{\"servers\":{\n\"a\":true}}",
        ] {
            let Ok(Edit::Write(after)) = with(Some(text), &members()) else { panic!("{text}") };
            let mut expected: Value = serde_json::from_str(text).unwrap();
            members().iter().for_each(|(path, value)| put(&mut expected, path, value));
            assert_eq!(serde_json::from_str::<Value>(&after).unwrap(), expected, "{after}");
            assert_eq!(with(Some(&after), &members()), Ok(Edit::Fine));
            assert_eq!(without(Some(&after), &members()), Ok(Edit::Write(text.to_owned())), "{after}");
            assert_eq!(without(Some(text), &members()), Ok(Edit::Fine));
        }
        let Ok(Edit::Write(new)) = with(None, &members()) else { panic!() };
        assert_eq!(without(Some(&new), &members()), Ok(Edit::Remove));
        assert_eq!(without(None, &members()), Ok(Edit::Fine));
    }

    #[test]
    fn additions_are_indented_as_the_rest_is() {
        let text = "{\n\t\"a\": {\n\t\t\"b\": 1\n\t}\n}\n";
        let Ok(Edit::Write(after)) = with(Some(text), &[(vec!["a", "c"], json!({"d": [1]}))]) else { panic!() };
        assert_eq!(
            after,
            "{\n\t\"a\": {\n\t\t\"b\": 1,\n\t\t\"c\": {\n\t\t\t\"d\": [\n\t\t\t\t1\n\t\t\t]\n\t\t}\n\t}\n}\n"
        );
    }

    #[test]
    fn what_others_have_changed_or_what_cannot_be_read_is_left_alone() {
        for (text, expected) in [
            ("{\n  // mine\n  \"a\": 1\n}", FileLeftReason::Comments),
            ("{\"a\": 1, /* x */ \"b\": 2}", FileLeftReason::Comments),
            ("{\"a\": [1, 2,],\n}", FileLeftReason::Comments),
            ("{\"hooks\": {\"Remove\": []}}", FileLeftReason::Taken("hooks.Remove".into())),
            ("{\"hooks\": 7}", FileLeftReason::Taken("hooks".into())),
        ] {
            assert_eq!(with(Some(text), &members()), Err(expected), "{text}");
        }
        for text in ["", "{\"a\": \"//\"", "[1]", "{\"a\" 1}", "{\"hooks\": {\"x\": 1}, \"hooks\": {}}"] {
            let outcome = with(Some(text), &members());
            assert!(matches!(outcome, Err(FileLeftReason::Mistake(_))), "{text}: {outcome:?}");
        }
        let added = r#"{"hooks": {"x": [1]}, "model": "x", "hooks": {"Create": [{"hooks": [{"command": "calve \"x\""}]}], "Remove": ["y"]}}"#;
        assert!(matches!(without(Some(added), &members()), Err(FileLeftReason::Mistake(_))));
        for text in [
            r#"{"servers": {"calve": {"a": 1}}, "servers": {}}"#,
            r#"{"hooks": {"Create": []}, "hooks": {}}"#,
            r#"{"hooks": {"Create": [], "Create": [{"hooks": [{"command": "calve \"x\""}]}]}}"#,
        ] {
            assert!(matches!(with(Some(text), &members()), Err(FileLeftReason::Mistake(_))), "{text}");
        }
        let edited = "{\"servers\": {\"calve\": {\"command\": \"/opt/calve\"}}}";
        assert_eq!(without(Some(edited), &members()), Err(FileLeftReason::Taken("servers.calve".into())));
    }
}
