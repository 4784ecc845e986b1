//! The agents, with the files and members that each needs. `docs/agents.md` links their makers' documentation.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use strum::{EnumString, VariantNames};

use super::file::read;
use super::json_text;

#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Agent {
    Claude,
    Codex,
    Cursor,
    OpenCode,
}

impl Agent {
    pub const NAMES: &[&str] = Self::VARIANTS;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Install,
    Uninstall,
}

/// One file and Calve's part of it.
pub(super) struct Part {
    /// Relative to the worktree's root.
    pub(super) path: PathBuf,
    pub(super) content: Content,
}

pub(super) enum Content {
    /// Members of a JSON object, each with its path of names.
    Json(Vec<(Vec<&'static str>, Value)>),
    /// Text of a TOML file, and the tables in it that must not exist already.
    Toml { tables: &'static [&'static str], text: &'static str },
}

const CODEX_SERVER: &str = "[mcp_servers.calve]\ncommand = \"calve\"\nargs = [\"mcp\"]\n";

const CODEX_ENVIRONMENT: &str =
    "version = 1\nname = \"calve\"\n\n[setup]\nscript = \"calve hook worktree-setup --maker codex\"\n";

pub(super) fn parts(agent: Agent, root: &Path, direction: Direction) -> Vec<Part> {
    let json = |path: &str, members| Part { path: path.into(), content: Content::Json(members) };
    let toml = |path: &str, tables, text| Part { path: path.into(), content: Content::Toml { tables, text } };
    let command = |line: &str| json!([{"hooks": [{"type": "command", "command": line}]}]);
    match agent {
        Agent::Claude => {
            let create = (vec!["hooks", "WorktreeCreate"], command("calve hook worktree-create --maker claude"));
            let remove = (vec!["hooks", "WorktreeRemove"], command("calve hook worktree-remove"));
            let server = (vec!["mcpServers", "calve"], json!({"command": "calve", "args": ["mcp"]}));
            vec![json(".claude/settings.json", vec![create, remove]), json(".mcp.json", vec![server])]
        }
        Agent::Codex => vec![
            toml(".codex/config.toml", &["mcp_servers.calve"], CODEX_SERVER),
            toml(".codex/environments/environment.toml", &["version", "name", "setup"], CODEX_ENVIRONMENT),
        ],
        Agent::Cursor => {
            const WORKTREES: &str = ".cursor/worktrees.json";
            let set_up = json!(["calve hook worktree-setup --maker cursor --from \"$ROOT_WORKTREE_PATH\""]);
            let server = json!({"command": "calve", "args": ["mcp", "--repository", "${workspaceFolder}"]});
            // Cursor runs only one of the two. Uninstalling keeps a value that the user has changed.
            let found = json_at(root, Path::new(WORKTREES)).unwrap_or_default();
            let is_meant = |value: &Value| direction == Direction::Install || *value == set_up;
            let is_taken =
                found.get("setup-worktree").is_some_and(is_meant) && found.get("setup-worktree-unix").is_none();
            let name = if is_taken { "setup-worktree" } else { "setup-worktree-unix" };
            vec![
                json(WORKTREES, vec![(vec![name], set_up)]),
                json(".cursor/mcp.json", vec![(vec!["mcpServers", "calve"], server)]),
            ]
        }
        Agent::OpenCode => {
            let path = if root.join("opencode.jsonc").exists() { "opencode.jsonc" } else { "opencode.json" };
            let server = json!({"type": "local", "command": ["calve", "mcp"]});
            vec![json(path, vec![(opencode_place(root, Path::new(path)), server)])]
        }
    }
}

fn json_at(root: &Path, path: &Path) -> Option<Value> {
    json_text::value(&read(root, path).ok()?.ok()??)
}

/// Returns the path of Calve's server. Version 2 has servers in `mcp.servers`, and still reads version 1's in `mcp`.
fn opencode_place(root: &Path, path: &Path) -> Vec<&'static str> {
    let found = json_at(root, path);
    let servers = found.as_ref().and_then(|found| found.get("mcp")?.get("servers")?.as_object());
    // In version 1, `servers` could be the name of a server.
    match servers.is_some_and(|servers| !servers.contains_key("type")) {
        true => vec!["mcp", "servers", "calve"],
        false => vec!["mcp", "calve"],
    }
}
