//! Checks a call's arguments against the tool's schema, so that only known arguments are passed on.

use rmcp::ErrorData;
use rmcp::model::{CallToolRequestParams, JsonObject};
use serde_json::Value;

use super::tools;

/// Longest text argument. Branches and paths are far shorter.
const TEXT_BYTES: usize = 4096;

#[derive(Debug)]
pub(super) struct Arguments(JsonObject);

/// Refuses an unknown tool, and arguments that are unknown, missing, of the wrong type, or cannot be names.
pub(super) fn checked(request: &CallToolRequestParams) -> Result<Arguments, ErrorData> {
    let refuse = |what: String| Err(ErrorData::invalid_params(what, None));
    let Some(tool) = tools::all().into_iter().find(|tool| tool.name == request.name) else {
        return refuse(format!("there is no tool `{}`", shortened(&request.name)));
    };
    let given = request.arguments.clone().unwrap_or_default();
    let known = tool.input_schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    for (name, value) in &given {
        let Some(schema) = known.get(name) else {
            return refuse(format!("`{}` has no argument `{}`", tool.name, shortened(name)));
        };
        let wrong = match (schema["type"].as_str(), value) {
            (Some("string"), Value::String(text)) if text.is_empty() => Some("is empty"),
            (Some("string"), Value::String(text)) if text.len() > TEXT_BYTES => Some("is too long"),
            (Some("string"), Value::String(text)) if text.contains(char::is_control) => Some("has control characters"),
            (Some("string"), Value::String(text)) if text.starts_with('-') => Some("begins with `-`"),
            (Some("string"), Value::String(_)) => None,
            (Some("integer"), value) if value.as_u64().is_some() => None,
            _ => Some("is of another type"),
        };
        if let Some(wrong) = wrong {
            return refuse(format!("the argument `{name}` {wrong}"));
        }
    }
    let required = tool.input_schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    match required.iter().filter_map(Value::as_str).find(|name| !given.contains_key(*name)) {
        Some(name) => refuse(format!("`{}` needs the argument `{name}`", tool.name)),
        None => Ok(Arguments(given)),
    }
}

impl Arguments {
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    pub(super) fn required(&self, name: &str) -> &str {
        self.text(name).unwrap_or_default()
    }

    pub(super) fn number(&self, name: &str) -> Option<usize> {
        usize::try_from(self.0.get(name)?.as_u64()?).ok()
    }
}

/// Shortens a name from the client, to keep the answer readable.
fn shortened(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(60).collect()
}
