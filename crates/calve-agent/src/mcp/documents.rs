//! Builds the tools' results from the parts of the program's documents that an agent needs.

use serde::Serialize;
use serde_json::{Map, Value, json};

/// Most paths in one list of an answer.
const FEW: usize = 20;

fn members<'d>(document: &'d Value, names: &'d [&str]) -> impl Iterator<Item = (String, Value)> + 'd {
    names.iter().map(|name| ((*name).to_owned(), document[*name].clone()))
}

pub(super) fn list(document: &Value, name: &str) -> Vec<Value> {
    document[name].as_array().cloned().unwrap_or_default()
}

/// Cuts a member that is a list, and counts the items that are cut.
fn cut(object: &mut Value, name: &str) {
    let more = object[name].as_array_mut().map_or(0, |list| list.drain(FEW.min(list.len())..).count());
    if more > 0 {
        object["more"] = more.into();
    }
}

/// Converts a worktree of `calve worktree list`, omitting usual values. Ports and services become objects by name.
pub(super) fn worktree(listed: &Value) -> Value {
    const ALWAYS: [&str; 2] = ["branch", "path"];
    const OTHERS: [&str; 10] =
        ["maker", "dirty", "ahead", "behind", "locked", "main", "gone", "untrusted", "standing", "head"];
    let usual = [Value::Null, json!(false), json!(0), json!("intact")];
    let others = members(listed, &OTHERS).filter(|(_, value)| !usual.contains(value));
    let mut result: Map<String, Value> = members(listed, &ALWAYS).chain(others).collect();
    for (name, [key, value]) in [("ports", ["variable", "port"]), ("services", ["name", "state"])] {
        let by_key = list(listed, name).into_iter();
        let by_key: Map<String, Value> =
            by_key.filter_map(|one| Some((one[key].as_str()?.to_owned(), one[value].clone()))).collect();
        if !by_key.is_empty() {
            result.insert(name.into(), by_key.into());
        }
    }
    result.into()
}

pub(super) fn service(document: &Value) -> Value {
    members(document, &["name", "state", "variable", "url", "template"]).collect()
}

/// Lists the files that `calve worktree remove --dry-run` would move aside, with the first paths of each kind.
pub(super) fn moved_aside(planned: &Value) -> Vec<Value> {
    let few = |mut item: Value| {
        cut(&mut item, "paths");
        let members = members(&item, &["kind", "text", "paths", "more"]);
        members.filter(|(_, value)| !value.is_null() && *value != json!([])).collect()
    };
    list(planned, "unsaved").into_iter().map(few).collect()
}

pub(super) fn removed(done: &Value) -> Value {
    let mut result =
        json!({ "removed": done["path"], "branch": done["branch"], "branch_deleted": done["branch_deleted"] });
    if let kept @ Value::Object(_) = &done["kept"] {
        result["kept"] = json!({ "directory": kept["directory"], "files": kept["files"] });
        cut(&mut result["kept"], "files");
    }
    result
}

/// Converts the total of `calve du`. If the file system cannot tell the freed space, only its bounds are present.
pub(super) fn disk_usage(path: Option<&str>, document: &Value) -> Value {
    let total = &document["total"];
    let sizes = members(total, &["apparent", "allocated", "exclusive", "frees", "frees_min", "frees_max"]);
    let path = ("path".to_owned(), json!(path));
    std::iter::once(path).chain(sizes.filter(|(_, value)| !value.is_null())).collect()
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Problem {
    pub(super) error: String,
    pub(super) hint: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_that_are_cut_are_counted() {
        for (paths, more) in [(0, None), (FEW, None), (FEW + 3, Some(3))] {
            let paths: Vec<String> = (0..paths).map(|number| number.to_string()).collect();
            let moved = moved_aside(&json!({ "unsaved": [{ "kind": "ignored", "text": "files", "paths": paths }] }));
            assert_eq!(moved[0]["more"].as_u64(), more, "{moved:?}");
            let removed = removed(&json!({ "kept": { "directory": "/d", "files": paths } }));
            assert_eq!(removed["kept"]["more"].as_u64(), more, "{removed}");
            assert_eq!(list(&removed["kept"], "files").len(), paths.len().min(FEW));
        }
    }
}
