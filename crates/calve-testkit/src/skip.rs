use std::env;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::thread;

use fs_err as fs;

use crate::must::must;

/// Reports on stderr that the running test is skipped and why; panics when the environment variable `CI` is set.
///
/// Harnesses swallow the output of passing tests, so the line is also appended to the file that the environment
/// variable `CALVE_SKIP_LOG` names. They name each test's thread after the test, so the line names the test.
#[track_caller]
#[expect(clippy::print_stderr, reason = "a skipped test must be seen in the log")]
pub fn skip(reason: &str) {
    let current = thread::current();
    let name = current.name().unwrap_or("unnamed test");
    let in_ci = env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(!in_ci, "must not be skipped in CI: {name}: {reason}");
    let line = format!("skipped: {name}: {reason}\n");
    eprint!("{line}");
    if let Some(log) = env::var_os("CALVE_SKIP_LOG") {
        let log = Path::new(&log);
        let mut file = must(fs::OpenOptions::new().append(true).create(true).open(log), "open", log);
        // One write per line, because tests in several processes append at once.
        must(file.write_all(line.as_bytes()), "append to", log);
    }
}

/// Returns whether the tests run as root, required for mounts, foreign owners and device nodes.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns `true` for root; otherwise skips with `what` as the reason.
#[track_caller]
pub fn require_root(what: &str) -> bool {
    require(is_root(), &format!("{what} needs root"))
}

#[track_caller]
pub fn require_program(program: &str) -> bool {
    require(find_program(program).is_some(), &format!("the program `{program}` is not installed"))
}

#[track_caller]
fn require(is_there: bool, reason: &str) -> bool {
    if !is_there {
        skip(reason);
    }
    is_there
}

/// Searches the PATH and the system directories, which a user's PATH often lacks.
pub(crate) fn find_program(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from))
        .map(|dir| dir.join(program))
        .find(|candidate| candidate.is_file())
}
