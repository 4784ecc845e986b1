use std::collections::HashSet;
use std::path::PathBuf;

use calve_core::internal::ScanOptions;

#[derive(Debug, Clone, Default)]
pub struct AuditOptions {
    pub fix: Fix,
    /// How the new tree is gone through. The names of entries only with `below`, and not with [`FormerPathRule::Sought`].
    pub scan: ScanOptions,
    /// More trees that must not be named: the repository's other worktrees.
    pub others: Vec<PathBuf>,
    /// Whether to look for the path that the tree had before it was moved.
    pub moved: FormerPathRule,
    /// The path that the new tree is going to have, when it is still being made under another one.
    pub will_be: Option<PathBuf>,
    /// The entries that git tracks in the new tree, by paths below it. `None`: git is asked, if anything is found.
    pub tracked: Option<HashSet<PathBuf>>,
}

/// Whether an audit repairs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fix {
    /// It says what it would do.
    #[default]
    No,
    Yes,
}

/// Whether an audit takes the tree's former path, as virtual environments in it state it, for another tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FormerPathRule {
    /// It does not: the path may be that of a container, in which the tree is mounted.
    #[default]
    Ignored,
    /// It does, if nothing is there any more.
    Sought,
}
