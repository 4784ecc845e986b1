//! A repository: its worktrees, its references, and the provenance of each commit.

pub(crate) mod entries;
pub(crate) mod logs;
pub(crate) mod opened;
pub(crate) mod operation;
pub(crate) mod origins;
pub(crate) mod provenance;
pub(crate) mod reference_list;
pub(crate) mod references;
mod remote_branches;
mod remotes;
mod rewritten;
pub(crate) mod state;
pub(crate) mod status;
mod unopened;
pub(crate) mod worktree;

pub use opened::list;
pub(crate) use opened::{Repository, asked};
pub(crate) use remote_branches::RemoteBranch;
pub use worktree::Worktree;
