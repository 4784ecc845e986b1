use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

use super::documents::Problem;

/// Default limit of a result: about a thousand tokens of a model.
pub(super) const RESULT_BYTES: usize = 4000;

impl Problem {
    pub(super) fn new(error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { error: error.into(), hint: hint.into() }
    }

    /// Parses the error document that a failed command with `--json` prints.
    pub(super) fn documented(printed: &[u8]) -> Option<Self> {
        let failure: Value = serde_json::from_slice(printed).ok()?;
        let hint = failure["hint"].as_str().unwrap_or_default();
        (failure["schema"] == "calve.error/1").then(|| Some(Self::new(failure["message"].as_str()?, hint)))?
    }

    /// Parses the text on stderr: an invalid command line prints no document.
    pub(super) fn from_prose(prose: &str) -> Self {
        let after =
            |word: &str| prose.lines().rev().find_map(|line| line.strip_prefix(word)).unwrap_or_default().trim();
        let error = match after("error: ") {
            "" => prose.lines().last().unwrap_or("calve failed").trim(),
            error => error,
        };
        Self::new(error, after("hint: "))
    }
}

pub(super) fn from_outcome(outcome: Result<Value, Problem>, most: usize) -> CallToolResult {
    match outcome {
        Ok(value) => match fitted(value, most) {
            Some(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            None => from_outcome(Err(Problem::new("the result is too long", "ask about one worktree")), most),
        },
        Err(Problem { error, hint }) => {
            let quarter = most / 4;
            let shorter = Problem::new(shortened(&error, quarter), shortened(&hint, quarter));
            // Two strings always serialize.
            let document = serde_json::to_string(&shorter).unwrap_or_default();
            CallToolResult::error(vec![ContentBlock::text(document)])
        }
    }
}

/// Shortens the longest list until the text fits, and counts the missing items: `"more": 12`. `None` without a list.
fn fitted(mut value: Value, most: usize) -> Option<String> {
    let mut text = value.to_string();
    while text.len() > most {
        let object = value.as_object_mut();
        let longest = object.and_then(|object| {
            let lists = object.iter_mut().filter_map(|(_, value)| value.as_array_mut());
            lists.max_by_key(|list| list.len()).filter(|list| !list.is_empty())
        });
        let list = longest?;
        // Drop a tenth at a time: long lists are rare, and losing an item too many is better than being slow.
        let dropped = list.len().div_ceil(10);
        list.truncate(list.len() - dropped);
        let more = value["more"].as_u64().unwrap_or(0) + dropped as u64;
        value["more"] = more.into();
        text = value.to_string();
    }
    Some(text)
}

fn shortened(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_long_result_loses_entries_and_says_so() {
        let list: Vec<Value> = (0..1000).map(|number| json!({"branch": format!("branch-{number}")})).collect();
        let text = fitted(json!({"worktrees": list}), 500).unwrap();
        assert!(text.len() <= 500, "{}", text.len());
        let value: Value = serde_json::from_str(&text).unwrap();
        let left = value["worktrees"].as_array().unwrap().len();
        assert!(left > 5);
        assert_eq!(value["more"].as_u64().unwrap() as usize, 1000 - left);
        assert_eq!(fitted(json!({"a": [1, 2]}), 500).unwrap(), r#"{"a":[1,2]}"#);
        let result = from_outcome(Ok(json!({"a": "x".repeat(900)})), 500);
        let text = serde_json::to_string(&result).unwrap();
        assert!(result.is_error == Some(true) && text.contains("too long"), "{text}");
    }

    #[test]
    fn an_error_is_short_and_whole_characters() {
        let problem = Problem::from_prose(&format!("added nothing\nerror: {}\nhint: do this\n", "ö".repeat(5000)));
        let result = from_outcome(Err(problem), 400);
        let text = serde_json::to_string(&result).unwrap();
        assert!(text.len() < 600 && text.contains("do this"), "{text}");
        assert_eq!(Problem::from_prose("worse"), Problem::new("worse", ""));
        let document = json!({"schema": "calve.error/1", "message": "bad", "hint": "do this"}).to_string();
        assert_eq!(Problem::documented(document.as_bytes()), Some(Problem::new("bad", "do this")));
        assert_eq!(Problem::documented(b"{}"), None);
    }
}
