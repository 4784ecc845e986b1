//! `engine`, `create` and `inputs` of a service: how its template is made.

use std::path::{Component, Path};

/// How the template of a service is made, once for each content of what it is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TemplateRecipe {
    /// `engine`: the database.
    pub engine: String,
    /// `create`: the command that fills it, as the text of a shell script. Without one it is empty.
    pub command: Option<String>,
    /// `inputs`: the files that the command reads, as patterns below the root of the worktree.
    pub inputs: Vec<String>,
}

/// A recipe while it is read, maybe from two files.
#[derive(Default)]
pub(super) struct RecipeParts {
    pub(super) engine: Option<String>,
    pub(super) command: Option<String>,
    pub(super) inputs: Option<Vec<String>>,
}

impl RecipeParts {
    /// Returns what one file says, and for the rest what the file before it said.
    pub(super) fn after(self, former: Option<TemplateRecipe>) -> Result<Option<TemplateRecipe>, &'static str> {
        let former = former.map(|former| (Some(former.engine), former.command, former.inputs));
        let (engine, command, inputs) = former.unwrap_or_default();
        let (command, inputs) = (self.command.or(command), self.inputs.unwrap_or(inputs));
        match self.engine.or(engine) {
            Some(_) if command.is_none() && !inputs.is_empty() => Err("`inputs` are files that `create` reads"),
            Some(engine) => Ok(Some(TemplateRecipe { engine, command, inputs })),
            None if command.is_some() || !inputs.is_empty() => Err("`create` and `inputs` need an `engine`"),
            None => Ok(None),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.engine.is_none() && self.command.is_none() && self.inputs.is_none()
    }
}

/// Returns whether a pattern means files below the directory that it starts from.
pub(super) fn is_below(pattern: &str) -> bool {
    let mut parts = Path::new(pattern).components();
    !pattern.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
}
