//! git's own `post-checkout` hook, run as `git worktree add` runs it.

use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Stdio};

use calve_core::internal::ShownPath;
use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::Serialize;

use crate::git::Git;
use crate::repository::Repository;

/// The result of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename = "HookResult")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HookRun {
    /// The exit code. Null if a signal ended the hook.
    #[serde(rename = "exit_code")]
    pub code: Option<i32>,
    /// Its output on both streams, or why it could not be started.
    #[serde(skip)]
    pub output: Vec<u8>,
}

/// Runs an existing hook with the null commit, the new one, and 1. If it cannot start, that fails nothing: git lists the
/// worktree already, and nothing would take it back.
pub(crate) fn post_checkout(repository: &Repository, worktree: &Path, oid: &str) -> Option<HookRun> {
    let git = Git::at(worktree);
    let not_run = |why: String| HookRun { code: None, output: (why + "\n").into_bytes() };
    let found =
        repository.hooks().map_or_else(|| git.own_file("hooks/post-checkout"), |hooks| Ok(hooks.join("post-checkout")));
    let hook = match found {
        Ok(hook) => hook,
        Err(error) => return Some(not_run(error.to_string())),
    };
    let is_executable = |found: std::fs::Metadata| found.is_file() && found.permissions().mode() & 0o111 != 0;
    if !fs_err::metadata(&hook).is_ok_and(is_executable) {
        return None;
    }
    let from_nothing = "0".repeat(oid.len());
    let run = |mut command: Command| -> std::io::Result<HookRun> {
        // No pipe: it would end only with the last process that the hook leaves in the background.
        let printed = tempfile::tempfile_in(&repository.common)?;
        // Each of the hook's programs writes at the end, even one that opens `/dev/stderr` anew.
        rustix::fs::fcntl_setfl(&printed, OFlags::APPEND)?;
        command.args([from_nothing.as_str(), oid, "1"]).current_dir(worktree).stdin(Stdio::null());
        command.stdout(printed.try_clone()?).stderr(printed.try_clone()?);
        for (name, value) in git.command().get_envs() {
            if value.is_none() {
                command.env_remove(name);
            }
        }
        let code = command.status()?.code();
        let mut output = vec![0; usize::try_from(printed.metadata()?.len()).unwrap_or_default()];
        printed.read_exact_at(&mut output, 0)?;
        Ok(HookRun { code, output })
    };
    let done = match run(Command::new(&hook)) {
        // A script without a `#!` line is for the shell: git hands it over, too.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::NOEXEC) => {
            let mut shell = Command::new("/bin/sh");
            shell.arg(&hook);
            run(shell)
        }
        other => other,
    };
    Some(done.unwrap_or_else(|error| not_run(format!("cannot run `{}`: {error}", ShownPath(&hook)))))
}
