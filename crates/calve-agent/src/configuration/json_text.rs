//! Adds and removes members of a JSON text. Everything else keeps its comments, order and format, except that an object
//! on one line is spread when it gets a member.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstObjectProp, CstRootNode};
use serde_json::Value;

use super::edit::{Edit, FileLeftReason, comments};

type Members = [(Vec<&'static str>, Value)];

/// Comments and trailing commas, common in editors' configuration, but no other extension of JSON.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

pub(super) fn value(text: &str) -> Option<Value> {
    parsed(text).ok()?.1.to_serde_value()
}

pub(super) fn with(before: Option<&str>, members: &Members) -> Result<Edit, FileLeftReason> {
    let (root, object) = parsed(before.unwrap_or("{}"))?;
    let mut is_changed = false;
    for (path, value) in members {
        let (name, above) = path.split_last().expect("a member has a name");
        let mut object = object.clone();
        for (depth, part) in above.iter().enumerate() {
            let inner = match member(&object, part)? {
                Some(there) => there.object_value(),
                None => object.append(part, CstInputValue::Object(Vec::new())).object_value(),
            };
            object = inner.ok_or_else(|| FileLeftReason::Taken(path[..=depth].join(".")))?;
        }
        match member(&object, name)? {
            Some(there) if there.to_serde_value().as_ref() == Some(value) => continue,
            Some(_) => return Err(FileLeftReason::Taken(path.join("."))),
            None => object.append(name, input(value)),
        };
        is_changed = true;
    }
    match before {
        _ if !is_changed => Ok(Edit::Fine),
        Some(text) => Edit::write(text, root.to_string()),
        None => Ok(Edit::Write(format!("{root}\n"))),
    }
}

/// Removes the members, and objects that become empty.
pub(super) fn without(before: Option<&str>, members: &Members) -> Result<Edit, FileLeftReason> {
    let Some(text) = before else { return Ok(Edit::Fine) };
    let (root, object) = parsed(text)?;
    let mut is_changed = false;
    for (path, value) in members {
        let mut found = Vec::new();
        let mut object = Some(object.clone());
        for name in path {
            let Some(there) = object.map(|object| member(&object, name)).transpose()?.flatten() else { break };
            object = there.object_value();
            found.push(there);
        }
        if found.len() < path.len() {
            continue;
        }
        let mut empty = found.pop();
        if empty.as_ref().and_then(CstObjectProp::to_serde_value).as_ref() != Some(value) {
            return Err(FileLeftReason::Taken(path.join(".")));
        }
        while let Some(member) = empty.take() {
            member.remove();
            empty = found.pop().filter(|above| above.object_value().is_some_and(|object| is_empty(&object)));
        }
        is_changed = true;
    }
    match is_changed {
        true => Edit::leave(text, root.to_string(), object.properties().is_empty(), COMMENTS),
        false => Ok(Edit::Fine),
    }
}

const COMMENTS: &[&str] = &["//", "/*"];

fn is_empty(object: &CstObject) -> bool {
    object.properties().is_empty() && comments(&object.to_string(), COMMENTS) == 0
}

fn parsed(text: &str) -> Result<(CstRootNode, CstObject), FileLeftReason> {
    let root = CstRootNode::parse(text, &OPTIONS).map_err(|error| FileLeftReason::Mistake(error.to_string()))?;
    let object = root.object_value().ok_or_else(|| FileLeftReason::Mistake("it is not a JSON object".into()))?;
    Ok((root, object))
}

/// Finds a member. Refuses a duplicate name, because parsers disagree: some take the first, others the last.
fn member(object: &CstObject, name: &str) -> Result<Option<CstObjectProp>, FileLeftReason> {
    let mut same = object.properties().into_iter().filter(|member| member.decoded_name().as_deref() == Some(name));
    match (same.next(), same.next()) {
        (found, None) => Ok(found),
        (_, Some(_)) => Err(FileLeftReason::Mistake("a name occurs twice in it".into())),
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(value) => CstInputValue::String(value.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use calve_testkit::SplitMix64;
    use serde_json::json;

    use super::*;

    fn members() -> Vec<(Vec<&'static str>, Value)> {
        vec![
            (vec!["hooks", "Create"], json!([{"hooks": [{"command": "calve \"x\""}]}])),
            (vec!["hooks", "Remove"], json!(["y"])),
            (vec!["servers", "calve"], json!({"command": "calve", "args": ["mcp"]})),
        ]
    }

    #[test]
    fn what_was_added_is_taken_away() {
        for (text, is_on_lines) in [
            ("{\n  \"model\": \"x\",\n  \"list\": [1, 2,\n 3]\n}\n", true),
            ("{\n\t\"hooks\": {\n\t\t\"Other\": [\n\t\t\t1\n\t\t]\n\t},\n\t\"z\": null\n}", true),
            ("{\r\n    \"z\": \"//no comment\"\r\n}\r\n", true),
            ("{\n  // mine\n  \"a\": 1, // too\n  /* and */ \"b\": [\n    2, // this\n  ],\n}\n// end\n", true),
            ("{\n  \"servers\": {\n    /* mine */\n  }\n}\n", true),
            ("{\"servers\":{/*c*/}}", false),
            ("{\"a\": 1}", false),
            ("{\"a\":{\"b\":[1,{\"hooks\":{}}]},\"z\":\"}\\\"{\"}\n", false),
            ("{\"servers\":{\n\"a\":true}}", false),
        ] {
            let Ok(Edit::Write(after)) = with(Some(text), &members()) else { panic!("{text}") };
            let mut expected = value(text).unwrap();
            members().iter().for_each(|(path, value)| expected[path[0]][path[1]] = value.clone());
            assert_eq!(value(&after), Some(expected), "{after}");
            assert_eq!(with(Some(&after), &members()), Ok(Edit::Fine));
            let Ok(Edit::Write(left)) = without(Some(&after), &members()) else { panic!("{after}") };
            assert_eq!(value(&left), value(text), "{left}");
            assert!(!is_on_lines || left == text, "{left}");
            assert_eq!(without(Some(text), &members()), Ok(Edit::Fine));
        }
        for nothing in [None, Some("{}"), Some("{ }\n"), Some("{\"hooks\": {}}")] {
            let Ok(Edit::Write(new)) = with(nothing, &members()) else { panic!() };
            assert_eq!(without(Some(&new), &members()), Ok(Edit::Remove), "{new}");
        }
        assert_eq!(without(None, &members()), Ok(Edit::Fine));
    }

    /// Returns an object of random lines with random line endings.
    fn random_text(random: &mut SplitMix64) -> String {
        const MEMBERS: [&str; 8] = [
            "\"a\": 1",
            "\"b\":  {  }",
            "\"c\": [1,2]",
            "\"hooks\": {\n\"x\": []\n}",
            "\"servers\": {\n  // mine\n  \"other\": {\"command\": \"//\"}\n  }",
            "// alone\n\t\"d\": \"\\r\\n\"",
            "\"e\": null /* why */",
            "\"f\": [\n\n3 ]",
        ];
        let mut pick = |most: usize| usize::try_from(random.below(most as u64)).unwrap();
        let ends = [&["\n"][..], &["\r\n"], &["\n", "\r\n"]][pick(3)];
        let mut members: Vec<&str> = MEMBERS.iter().copied().filter(|_| pick(2) == 0).collect();
        if members.is_empty() {
            members.push(MEMBERS[0]);
        }
        let mut text = ["", "", "", "\u{feff}", "// first\n"][pick(5)].to_owned() + "{\n  ";
        text += &members.join([",\n  ", ",\n\n\t"][pick(2)]);
        text += ["\n}", "\n}\n", ",\n}\n", "\n}\n// end", "\n  }  \n\n"][pick(5)];
        let mut ended = String::new();
        for line in text.split_inclusive('\n') {
            ended += line.trim_end_matches('\n');
            ended += if line.ends_with('\n') { ends[pick(ends.len())] } else { "" };
        }
        ended
    }

    #[test]
    fn what_is_not_calves_stays_byte_for_byte_however_lines_end() {
        let mut random = SplitMix64::new(7);
        let mut edited = [0, 0, 0];
        for _ in 0..2_000 {
            let text = random_text(&mut random);
            let after = match with(Some(&text), &members()) {
                Ok(Edit::Write(after)) => after,
                Err(FileLeftReason::Form | FileLeftReason::Mistake(_)) => continue,
                other => panic!("{text:?}: {other:?}"),
            };
            // Everything is there in its order.
            let mut bytes = after.bytes();
            assert!(text.bytes().all(|byte| bytes.any(|one| one == byte)), "{text:?}: {after:?}");
            match without(Some(&after), &members()) {
                Ok(Edit::Write(left)) => assert_eq!(left, text, "{after:?}"),
                other => panic!("{after:?}: {other:?}"),
            }
            let line_ends = (text.matches("\r\n").count(), text.matches('\n').count());
            edited[match line_ends {
                (0, _) => 0,
                (crlf, all) if crlf == all => 1,
                _ => 2,
            }] += 1;
        }
        assert!(edited[0] > 100 && edited[1] > 100 && edited[2] == 0, "{edited:?}");
    }

    #[test]
    fn additions_are_indented_as_the_rest_is() {
        let text = "{\n\t\"a\": {\n\t\t\"b\": 1\n\t}\n}\n";
        let Ok(Edit::Write(after)) = with(Some(text), &[(vec!["a", "c"], json!({"d": [1]}))]) else { panic!() };
        assert_eq!(after, "{\n\t\"a\": {\n\t\t\"b\": 1,\n\t\t\"c\": {\n\t\t\t\"d\": [1]\n\t\t}\n\t}\n}\n");
    }

    #[test]
    fn what_others_have_changed_or_what_cannot_be_read_is_left_alone() {
        for (text, name) in [
            ("{\"hooks\": {\"Remove\": []}}", "hooks.Remove"),
            ("{\"hooks\": 7}", "hooks"),
            ("{\"servers\": {\"calve\": null}}", "servers.calve"),
        ] {
            assert_eq!(with(Some(text), &members()), Err(FileLeftReason::Taken(name.into())), "{text}");
        }
        for text in [
            "",
            "// nothing else",
            "{\"a\": \"//\"",
            "[1]",
            "{\"a\" 1}",
            "{a: 1}",
            "{'a': 1}",
            "{\"a\": 1 \"b\": 2}",
            "{} {}",
            r#"{"hooks": {"x": 1}, "hooks": {}}"#,
            r#"{"servers": {"calve": {"a": 1}}, "servers": {}}"#,
            r#"{"hooks": {"Create": [], "Create": [{"hooks": [{"command": "calve \"x\""}]}]}}"#,
        ] {
            let outcome = with(Some(text), &members());
            assert!(matches!(outcome, Err(FileLeftReason::Mistake(_))), "{text}: {outcome:?}");
        }
        let added = r#"{"hooks": {"x": [1]}, "model": "x", "hooks": {"Create": [{"hooks": [{"command": "calve \"x\""}]}], "Remove": ["y"]}}"#;
        assert!(matches!(without(Some(added), &members()), Err(FileLeftReason::Mistake(_))));
        let edited = "{\"servers\": {\"calve\": {\"command\": \"/opt/calve\"}}}";
        assert_eq!(without(Some(edited), &members()), Err(FileLeftReason::Taken("servers.calve".into())));
        let commented = "{\"servers\": {\"calve\": {\"command\": \"calve\", /* mine */ \"args\": [\"mcp\"]}}}";
        assert_eq!(without(Some(commented), &members()), Err(FileLeftReason::Comments));
        assert_eq!(with(Some(commented), &members()[2..]), Ok(Edit::Fine));
    }
}
