use std::ffi::{OsStr, OsString};
use std::fmt::{self, Display};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use calve_core::internal::ShownPath;

use crate::error::{Error, Result};
use crate::remedy::Program;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WayToRoot {
    IsRoot,
    /// Asks on the terminal.
    Sudo,
    Pkexec,
}

impl WayToRoot {
    /// Returns this process's way to run a command as root, if it has one.
    pub fn here() -> Option<Self> {
        let installed = |way: &Self| way.program().find().is_ok();
        let is_root = rustix::process::geteuid().is_root().then_some(Self::IsRoot);
        is_root.or_else(|| [Self::Sudo, Self::Pkexec].into_iter().find(installed))
    }

    pub fn program(self) -> Program {
        match self {
            Self::IsRoot => Program::Env,
            Self::Sudo => Program::Sudo,
            Self::Pkexec => Program::Pkexec,
        }
    }

    /// Returns whether the command did not run. sudo then exits with 1 (sudo(8), "EXIT VALUE"), but a line of a command
    /// that ran begins with its name, or `ERROR` (btrfs). pkexec exits with 126 or 127 (pkexec(1), "RETURN VALUE").
    fn has_refused(self, code: Option<i32>, said: &str, program: &Path) -> bool {
        // sudo itself may have printed something before it ran the command.
        let is_its_own = |name: &str| said.split("; ").any(|line| line.starts_with(name) || line.starts_with("ERROR"));
        match self {
            Self::IsRoot => false,
            Self::Sudo => {
                code == Some(1) && !program.file_name().and_then(|name| name.to_str()).is_some_and(is_its_own)
            }
            Self::Pkexec => matches!(code, Some(126 | 127)),
        }
    }
}

/// The programs' directories. A user's PATH often lacks the second and the last one.
const PLACES: [&str; 4] = ["/usr/bin", "/usr/sbin", "/bin", "/sbin"];

impl Program {
    pub(crate) fn find(self) -> Result<PathBuf> {
        let places = PLACES.iter().map(|place| Path::new(place).join(self.to_string()));
        places.into_iter().find(|path| path.is_file()).ok_or(Error::NoProgram(self))
    }
}

/// Returns whether this machine has all that volumes need, by the checks that work without root.
pub fn is_possible() -> bool {
    has_btrfs() && Path::new("/dev/loop-control").exists() && Program::Mkfs.find().is_ok()
}

pub(crate) fn has_btrfs() -> bool {
    fs_err::read_to_string("/proc/filesystems").is_ok_and(|all| all.contains("\tbtrfs\n"))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootCommand {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl RootCommand {
    pub(crate) fn new(program: Program, options: &[&str], paths: &[&Path]) -> Result<Self> {
        let arguments = options.iter().map(OsString::from).chain(paths.iter().map(OsString::from)).collect();
        Ok(Self { program: program.find()?, arguments })
    }

    /// Runs the command to its end. It keeps the lock until then, even if this process is killed.
    pub(crate) fn run(&self, way: WayToRoot, lock: OwnedFd) -> Result<()> {
        let mut command = Command::new(way.program().find()?);
        let ran = run_to_end(command.arg(&self.program).args(&self.arguments).stdin(lock));
        ran.map_err(|(code, said)| match way.has_refused(code, &said, &self.program) {
            true => Error::NotPermitted { program: way.program(), said },
            false => Error::Failed { command: self.to_string(), said },
        })
    }

    pub fn line(&self) -> Vec<u8> {
        let words = std::iter::once(self.program.as_os_str()).chain(self.arguments.iter().map(OsString::as_os_str));
        words.map(|word| quoted(word.as_bytes())).collect::<Vec<_>>().join(&b' ')
    }
}

/// Shows the command as a line for a shell, with control characters escaped.
impl Display for RootCommand {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", ShownPath(OsStr::from_bytes(&self.line())))
    }
}

/// Runs a program. Fails with its message, and its exit code unless it did not start or was killed.
pub(crate) fn run_to_end(command: &mut Command) -> std::result::Result<(), (Option<i32>, String)> {
    // In English: it goes into one sentence with Calve's words.
    let output = command.env("LC_ALL", "C").stdout(Stdio::null()).stderr(Stdio::piped()).output();
    let output = output.map_err(|error| (None, error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err((output.status.code(), if said.is_empty() { output.status.to_string() } else { said }))
}

fn quoted(word: &[u8]) -> Vec<u8> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+,:@%=".contains(byte);
    if !word.is_empty() && word.iter().all(is_plain) {
        return word.to_vec();
    }
    let escaped = word.split(|&byte| byte == b'\'').collect::<Vec<_>>().join(&br"'\''"[..]);
    [b"'", &*escaped, b"'"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_from_a_failure_of_the_command() {
        let (mount, btrfs) = (Path::new("/usr/bin/mount"), Path::new("/usr/bin/btrfs"));
        for (way, code, said, program, is_refused) in [
            (WayToRoot::Sudo, Some(1), "sudo: a password is required", mount, true),
            (WayToRoot::Sudo, Some(1), "somebody is not in the sudoers file.", mount, true),
            (WayToRoot::Sudo, Some(1), "mount: bad usage", mount, false),
            (WayToRoot::Sudo, Some(1), "ERROR: resizing failed", btrfs, false),
            (WayToRoot::Sudo, Some(1), "sudo: unable to resolve host box; ERROR: resizing failed", btrfs, false),
            (WayToRoot::Sudo, Some(32), "mount: wrong fs type", mount, false),
            (WayToRoot::Sudo, None, "signal: 9", mount, false),
            (WayToRoot::Pkexec, Some(126), "", mount, true),
            (WayToRoot::Pkexec, Some(127), "Error executing command as another user: Not authorized", mount, true),
            (WayToRoot::Pkexec, Some(1), "mount: bad usage", mount, false),
            (WayToRoot::IsRoot, Some(1), "anything", mount, false),
        ] {
            assert_eq!(way.has_refused(code, said, program), is_refused, "{way:?} {code:?} {said}");
        }
    }
}
