use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

const WORKTREE: &str = "Branch, absolute path, or directory name of a worktree of the repository";

/// Name, description, arguments besides `repository`, and the required arguments.
type Description = (&'static str, &'static str, Value, &'static [&'static str]);

pub(super) fn all() -> Vec<Tool> {
    let text = |description: &str| json!({"type": "string", "description": description});
    let token = text("The token of the first call, to confirm it");
    let service = text("Name of the service in .calve.toml; not needed if there is one only");
    let descriptions: [Description; 7] = [
        (
            "list_worktrees",
            "List the worktrees: branch, path, maker, uncommitted changes, commits ahead and behind, ports, services.",
            json!({"skip": {"type": "integer", "description": "Number of entries to skip"}}),
            &[],
        ),
        (
            "create_worktree",
            "Create a worktree for a branch, complete with dependencies, ports and database data, and return its path. A new branch begins \
            at the HEAD of `from`. Asked again for the same branch, returns the same worktree.",
            json!({
                "branch": text("The branch to check out or to make"),
                "from": text("The worktree that you are in: files, data and HEAD come from it [default: the repository's directory]"),
                "base": text("The revision at which a new branch begins, instead of HEAD"),
            }),
            &["branch"],
        ),
        (
            "worktree_status",
            "Show one worktree: branch, HEAD, maker, uncommitted changes, ports, services.",
            json!({"worktree": text(WORKTREE)}),
            &["worktree"],
        ),
        (
            "remove_worktree",
            "Remove a worktree with its servers, ports and data. The first call checks that nothing would be lost, names ignored files that \
            only it has, and returns a token; the second, with that token, moves those aside for a week and removes it. Its branch stays.",
            json!({"worktree": text(WORKTREE), "token": token}),
            &["worktree"],
        ),
        (
            "database_url",
            "Start the database servers of a worktree if they do not run, and return their URLs and variables.",
            json!({"worktree": text(WORKTREE), "service": service}),
            &["worktree"],
        ),
        (
            "reset_database",
            "Put the data of a worktree's database back to its template. All that was written there is lost. The first call returns a \
            token; the second, with that token, resets it. The URL changes only with the engine.",
            json!({"worktree": text(WORKTREE), "service": service, "token": token}),
            &["worktree"],
        ),
        (
            "disk_usage",
            "Show the disk space of a worktree in bytes: what it takes up, and what removing it would free.",
            json!({"worktree": text(WORKTREE)}),
            &["worktree"],
        ),
    ];
    descriptions.into_iter().map(tool).collect()
}

fn tool((name, description, mut properties, required): Description) -> Tool {
    properties["repository"] =
        json!({"type": "string", "description": "Path or name of the repository, if several are served"});
    let mut schema = JsonObject::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), properties);
    schema.insert("required".into(), json!(required));
    schema.insert("additionalProperties".into(), false.into());
    let is_reading = matches!(name, "list_worktrees" | "worktree_status" | "disk_usage");
    let is_destroying = matches!(name, "remove_worktree" | "reset_database");
    let annotations = ToolAnnotations::new().read_only(is_reading).destructive(is_destroying).open_world(false);
    Tool::new(name, description, Arc::new(schema)).with_annotations(annotations)
}
