use std::collections::HashSet;
use std::path::PathBuf;

use calve_core::internal::ScanOptions;

#[derive(Debug, Clone, Default)]
pub struct AuditOptions {
    pub fix: Fix,
    /// Settings of the walk. Set `names` only with `below`, and not with [`FormerPathRule::Sought`].
    pub scan: ScanOptions,
    /// More trees that must not be named: the repository's other worktrees.
    pub others: Vec<PathBuf>,
    pub moved: FormerPathRule,
    /// The final path of the new tree, if it is still being made under another one.
    pub will_be: Option<PathBuf>,
    /// The entries that git tracks, below the new tree. If `None`, git is asked once anything is found.
    pub tracked: Option<HashSet<PathBuf>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fix {
    /// Only says what it would do.
    #[default]
    No,
    Yes,
}

/// The role of the tree's former path, as virtual environments in it state it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FormerPathRule {
    /// It may be a path in a container that mounts the tree.
    #[default]
    Ignored,
    /// Counts as another tree, if nothing exists there any more.
    Sought,
}
