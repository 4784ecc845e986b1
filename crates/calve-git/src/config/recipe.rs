use std::path::{Component, Path};

use calve_core::template::{LONGEST_TEMPLATE_NAME, is_template_name};
use globset::GlobBuilder;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateRecipe {
    pub engine: String,
    /// `create`: the command that fills it, as the text of a shell script. Without one, the template is empty.
    pub command: Option<String>,
    /// `inputs`: the files that the command reads, as patterns below the worktree's root.
    pub inputs: Vec<String>,
}

impl TemplateRecipe {
    pub(super) fn new(
        engine: Option<String>,
        command: Option<String>,
        inputs: Vec<String>,
    ) -> Result<Option<TemplateRecipe>, &'static str> {
        match engine {
            Some(_) if command.is_none() && !inputs.is_empty() => Err("`inputs` are files that `create` reads"),
            Some(engine) => Ok(Some(TemplateRecipe { engine, command, inputs })),
            None if command.is_some() || !inputs.is_empty() => Err("`create` and `inputs` need an `engine`"),
            None => Ok(None),
        }
    }
}

/// Engines that make templates. A test of the program compares them with calve-db's.
pub const ENGINES: [&str; 5] = ["postgres", "mariadb", "mysql", "redis", "valkey"];

pub(super) fn check_engine(name: &str) -> Result<(), String> {
    if ENGINES.contains(&name) {
        return Ok(());
    }
    Err(format!("unknown engine `{name}`; the engines are {}", ENGINES.join(", ")))
}

pub(super) fn check_template(name: &str) -> Result<(), String> {
    if is_template_name(name) {
        return Ok(());
    }
    Err(format!(
        "a template's name is up to {LONGEST_TEMPLATE_NAME} letters, digits, `-`, `_` and `.`, and begins with a letter or a digit"
    ))
}

pub(super) fn check_input(pattern: &str) -> Result<(), String> {
    let mut parts = Path::new(pattern).components();
    if pattern.is_empty() || !parts.all(|part| matches!(part, Component::Normal(_))) {
        return Err(format!("`inputs` must be inside the worktree, but `{pattern}` is not"));
    }
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    glob.map(drop).map_err(|error| format!("the pattern `{pattern}` is not valid: {}", error.kind()))
}
