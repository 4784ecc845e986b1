use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use calve_core::internal::joined;
use rustix::process::{Pid, Signal, getpgrp, kill_process_group};

use crate::error::{Error, Result};
use crate::nesting::Nesting;
use crate::redact;
use crate::remedy::Remedy;
use crate::transfer_failure::{ENDLESS, TransferFailure};
use crate::trust::{self, confined};

/// Variables by which git names one repository to its hooks and aliases (`git rev-parse --local-env-vars`). If kept,
/// they would send a command for another repository into that one. Settings from the environment (`GIT_CONFIG_COUNT`,
/// which `git -c` sets) are not about one repository: git keeps them in submodules, too.
pub(crate) const OF_ONE_REPOSITORY: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// With these, git prints every header that it sends, tokens of `http.extraHeader` included, and Calve passes that on.
const TELLING_HEADERS: [&str; 2] = ["GIT_CURL_VERBOSE", "GIT_TRACE_CURL"];

/// The command that prints every setting with its scope, for [`trust::programs`].
const SCOPED_SETTINGS: [&str; 4] = ["config", "-z", "--show-scope", "--list"];

/// The end of git, and what has failed if it had a connection.
type GitOutcome = (Output, Option<TransferFailure>);

#[derive(Clone, Debug)]
pub struct Git {
    directory: PathBuf,
    environment: Vec<(Cow<'static, str>, OsString)>,
    /// Precede every command.
    options: Vec<String>,
    is_confined: bool,
    is_offline: bool,
}

impl Git {
    pub fn at(directory: impl Into<PathBuf>) -> Git {
        let directory = directory.into();
        Git { directory, environment: Vec::new(), options: Vec::new(), is_confined: false, is_offline: false }
    }

    /// Returns git as if started in `directory`, without any program that a tree could bring.
    pub(crate) fn confined_at(directory: impl Into<PathBuf>) -> Git {
        Git { is_confined: true, ..Git::at(directory) }
    }

    pub fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Git {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Keeps git from fetching missing objects of a partial clone. Without them, most commands fail.
    pub(crate) fn offline(self) -> Git {
        Git { is_offline: true, ..self }
    }

    /// Keeps git from running programs that the repository's own configuration names. The user's global ones still run.
    pub(crate) fn without_own_programs(mut self) -> Result<Git> {
        let settings = self.run(&SCOPED_SETTINGS)?;
        for (at, (name, value)) in trust::programs::overrides_of_own(&settings).into_iter().enumerate() {
            let variable = format!("CALVE_OWN_SETTING_{at}");
            self.options.extend(confined::setting(&name, &value, &variable));
            self.environment.push((variable.into(), value.into()));
        }
        Ok(self)
    }

    /// Keeps settings from letting git trust an mtime that was set back after a change.
    pub(crate) fn heeding_change_times(mut self) -> Git {
        self.options.extend(["-c", "core.trustCtime=true", "-c", "core.checkStat=default"].map(String::from));
        self
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns a command for arguments: in English, without questions, input, another repository, or untrusted code. It
    /// fetches nothing, not even missing objects of a partial clone.
    pub fn command(&self) -> Command {
        let mut command = self.unlimited();
        // Git before 2.45 heeds only the second.
        command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "none");
        command
    }

    /// Returns a command that may fetch, and the guard against processes without end, which has its events written to a
    /// new file.
    pub fn fetching(&self, events: &Path) -> Result<(Command, Nesting)> {
        let mut command = self.unlimited();
        let nesting = Nesting::watch(&mut command, events)?;
        Ok((command, nesting))
    }

    fn unlimited(&self) -> Command {
        let mut command = if self.is_confined() {
            let git = || confined::without_relative_path(Command::new(program()));
            confined::confined_git(self.prepared(git()).args(SCOPED_SETTINGS), git())
        } else {
            Command::new(program())
        };
        command.args(&self.options);
        self.prepared(command)
    }

    /// Returns whether git runs in an untrusted worktree, or on one's files elsewhere.
    fn is_confined(&self) -> bool {
        let named = self.environment.iter().find(|(name, _)| *name == "GIT_DIR");
        self.is_confined
            || named.is_some_and(|(_, entry)| trust::has_mark(Path::new(entry)))
            || trust::is_untrusted(&self.directory)
    }

    fn prepared(&self, mut command: Command) -> Command {
        command.current_dir(&self.directory).stdin(Stdio::null());
        for name in OF_ONE_REPOSITORY.iter().chain(&TELLING_HEADERS) {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
        for (name, value) in &self.environment {
            command.env(&**name, value);
        }
        command
    }

    /// Runs git to its end, whatever its exit code.
    pub fn output<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<Output> {
        Ok(self.ended(|mut command| command.args(arguments).output())?.0)
    }

    /// Runs git, and again with a connection if it lacks objects of a partial clone. Waits briefly while another git has
    /// one of its files locked.
    fn ended(&self, run: impl Fn(Command) -> std::io::Result<Output>) -> Result<GitOutcome> {
        let output = unless_locked(|| run(self.command())).map_err(Error::start(&self.directory))?;
        match !self.is_offline && was_kept_from_fetching(&String::from_utf8_lossy(&output.stderr)) {
            true => self.guarded(run),
            false => Ok((output, None)),
        }
    }

    /// Runs git with a connection, and ends it if it would never end.
    fn guarded(&self, run: impl Fn(Command) -> std::io::Result<Output>) -> Result<GitOutcome> {
        let mut failure = None;
        let output = unless_locked(|| {
            // A collection of garbage in the background may write to the file again.
            let events = tempfile::tempdir().or_else(|_| tempfile::tempdir_in("/tmp"))?;
            let (command, mut nesting) = self.fetching(&events.path().join("events"))?;
            let is_over = AtomicBool::new(false);
            let (output, is_endless) = std::thread::scope(|scope| {
                let guard = scope.spawn(|| nesting.guard(&is_over, &[getpgrp()]));
                let output = run(command);
                is_over.store(true, Ordering::Relaxed);
                guard.thread().unpark();
                (output, joined(guard))
            });
            if is_endless? {
                return Err(Error::refused(ENDLESS, Remedy::Transfer(TransferFailure::SourceShallow)));
            }
            let output = output.map_err(Error::start(&self.directory))?;
            failure = Some(TransferFailure::new(nesting.errors()?, &String::from_utf8_lossy(&output.stderr), true));
            Ok(output)
        })?;
        Ok((output, failure))
    }

    /// Runs git as [`Git::run`] does, with this input.
    pub fn fed<A: AsRef<OsStr>>(&self, arguments: &[A], input: &[u8]) -> Result<Vec<u8>> {
        self.judged(arguments, self.ended(|mut command| feed(command.args(arguments), input))?)
    }

    /// Runs git as [`Git::fed`] does, but with a connection from the start, so not again for missing objects. Returns
    /// the standard error of git and the programs that it started.
    pub(crate) fn fed_online<A: AsRef<OsStr>>(&self, arguments: &[A], input: &[u8]) -> Result<String> {
        let ended = self.guarded(|mut command| feed(command.args(arguments), input))?;
        let said = redact::prose(String::from_utf8_lossy(&ended.0.stderr).trim());
        self.judged(arguments, ended).map(|_| said)
    }

    /// Returns git's output. An exit code other than 0 is an error with git's message.
    pub fn run<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<Vec<u8>> {
        self.judged(arguments, self.ended(|mut command| command.args(arguments).output())?)
    }

    /// Returns a file object's contents; `None` if it is missing here, unreadable, or larger than `most` bytes.
    pub(crate) fn blob(&self, oid: &str, most: u64) -> Result<Option<Vec<u8>>> {
        let start = Error::start(&self.directory);
        let mut command = self.command();
        command.args(["cat-file", "blob", oid]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(start)?;
        let mut contents = Vec::new();
        let read = child.stdout.take().map_or(Ok(0), |stdout| stdout.take(most + 1).read_to_end(&mut contents));
        // Its closed output ends a git that has more to say.
        let status = child.wait().map_err(start)?;
        read.map_err(start)?;
        Ok(Some(contents).filter(|contents| status.success() && contents.len() as u64 <= most))
    }

    /// Returns the objects' contents as [`Git::blob`] does, by two processes in all. Fails if one cannot be read.
    pub(crate) fn blobs(&self, oids: &[String], most: u64) -> Result<Vec<Option<Vec<u8>>>> {
        let mut found = vec![None; oids.len()];
        let sizes = self.sizes(oids)?.into_iter().enumerate();
        let small: Vec<usize> =
            sizes.filter(|(_, size)| size.is_some_and(|size| size <= most)).map(|(at, _)| at).collect();
        if small.is_empty() {
            return Ok(found);
        }
        let names: String = small.iter().flat_map(|&at| [&oids[at], "\n"]).collect();
        let said = self.fed(&["cat-file", "--batch=%(objectsize)"], names.as_bytes())?;
        let mut rest = said.as_slice();
        for at in small {
            let Some((contents, after)) = first_of_batch(rest) else { break };
            rest = after;
            found[at] = Some(contents.to_vec());
        }
        Ok(found)
    }

    /// Returns the objects' sizes; `None` for those that are missing here.
    pub(crate) fn sizes(&self, oids: &[String]) -> Result<Vec<Option<u64>>> {
        if oids.is_empty() {
            return Ok(Vec::new());
        }
        let git = self.clone().offline();
        let said = match git.fed(&["cat-file", "--batch-check=%(objectsize)"], (oids.join("\n") + "\n").as_bytes()) {
            // In a partial clone, git ends at the first that is missing.
            Err(Error::Git { .. }) => return Ok(vec![None; oids.len()]),
            said => said?,
        };
        // "OID missing", as for a submodule's commit, is no number.
        Ok(said.split(|&byte| byte == b'\n').map(|line| std::str::from_utf8(line).ok()?.parse().ok()).collect())
    }

    /// Returns a server's answer if git succeeds. Asks the user nothing, and kills a slow git with its process group.
    pub(crate) fn ask_server<A: AsRef<OsStr>>(&self, arguments: &[A], at_most: Duration) -> Result<Option<String>> {
        let start = Error::start(&self.directory);
        let mut printed = tempfile::tempfile()?;
        let mut command = self.unlimited();
        command.args(arguments).stdout(printed.try_clone()?).stderr(Stdio::null()).process_group(0);
        // Without these, ssh would ask on the terminal, whatever its input is.
        command.env("GIT_ASKPASS", "false").env("SSH_ASKPASS", "false").env("SSH_ASKPASS_REQUIRE", "force");
        let mut child = command.spawn().map_err(start)?;
        let give_up = Instant::now() + at_most;
        let ended = loop {
            match child.try_wait().map_err(start)? {
                None if Instant::now() < give_up => std::thread::sleep(Duration::from_millis(5)),
                ended => break ended,
            }
        };
        if ended.is_none() {
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            child.wait().map_err(start)?;
        }
        if !ended.is_some_and(|status| status.success()) {
            return Ok(None);
        }
        let mut text = Vec::new();
        printed.rewind()?;
        printed.read_to_end(&mut text)?;
        Ok(Some(String::from_utf8_lossy(&text).into_owned()))
    }

    /// Runs git with `lock` as its unread input: the lock is held until git ends, even if this process is killed first.
    pub(crate) fn run_holding<A: AsRef<OsStr>>(&self, lock: &File, arguments: &[A]) -> Result<Vec<u8>> {
        // Not by `ended`: a hook's own words could make it run twice.
        let ended = self.guarded(|mut command| command.args(arguments).stdin(lock.try_clone()?).output())?;
        self.judged(arguments, ended)
    }

    fn judged<A: AsRef<OsStr>>(&self, arguments: &[A], (output, failure): GitOutcome) -> Result<Vec<u8>> {
        if output.status.success() {
            return Ok(output.stdout);
        }
        let arguments = arguments.iter().map(|argument| argument.as_ref().to_os_string()).collect();
        Err(Error::Git {
            arguments,
            directory: self.directory.clone(),
            code: output.status.code(),
            failure,
            said: redact::prose(String::from_utf8_lossy(&output.stderr).trim()),
        })
    }

    pub fn succeeds<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<bool> {
        Ok(self.output(arguments)?.status.success())
    }

    /// Returns git's text; `None` if it is empty or git fails.
    pub(crate) fn answer<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<Option<String>> {
        let output = self.output(arguments)?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok(Some(text).filter(|text| output.status.success() && !text.is_empty()))
    }

    pub(crate) fn own_file(&self, name: &str) -> Result<PathBuf> {
        Ok(self.directory.join(self.line(&["rev-parse", "--git-path", name])?))
    }

    pub fn line<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<OsString> {
        let mut printed = self.run(arguments)?;
        while printed.last() == Some(&b'\n') {
            printed.pop();
        }
        Ok(OsString::from_vec(printed))
    }
}

fn feed(command: &mut Command, input: &[u8]) -> std::io::Result<Output> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let stdin = child.stdin.take();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // If git ends early, its exit code and message say why.
            let _ = stdin.map(|mut stdin| stdin.write_all(input));
        });
        child.wait_with_output()
    })
}

/// Splits `SIZE\nCONTENTS\n…` into the contents and the rest.
fn first_of_batch(said: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = said.iter().position(|&byte| byte == b'\n')?;
    let size: usize = std::str::from_utf8(&said[..end]).ok()?.parse().ok()?;
    let contents = said.get(end + 1..)?;
    Some((contents.get(..size)?, contents.get(size + 1..)?))
}

/// Finds git in the PATH's absolute directories: others may be an untrusted tree's. Git's programs still look there.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let Some(path) = std::env::var_os("PATH") else { return PathBuf::from("git") };
        let is_program = |file: &PathBuf| {
            fs_err::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        };
        let all = std::env::split_paths(&path).filter(|directory| directory.is_absolute());
        // If it is missing, starting it gives the error.
        all.map(|directory| directory.join("git")).find(is_program).unwrap_or_else(|| PathBuf::from("/nonexistent/git"))
    })
}

/// As long as git itself waits for the lock of packed references. It waits for no other so long, and for most not at all.
const LOCKED_AT_MOST: Duration = Duration::from_secs(1);

/// Runs git again while another one locks a file that it wants to write. It has written nothing then, or the same.
fn unless_locked<E>(mut run: impl FnMut() -> std::result::Result<Output, E>) -> std::result::Result<Output, E> {
    let give_up = Instant::now() + LOCKED_AT_MOST;
    loop {
        let output = run()?;
        if output.status.success() || !is_locked(&String::from_utf8_lossy(&output.stderr)) || Instant::now() > give_up {
            return Ok(output);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn is_locked(said: &str) -> bool {
    said.lines().any(|line| match line.split_once("could not lock config file ") {
        // Some commands give no reason.
        Some((_, path)) => path.ends_with(": File exists") || !path.contains(": "),
        None => line.contains(".lock': File exists"),
    })
}

/// Returns whether git wanted to fetch an object of a partial clone (its promisor-remote.c and transport.c).
fn was_kept_from_fetching(said: &str) -> bool {
    said.lines().any(|line| {
        line.ends_with("lazy fetching disabled; some objects may not be available")
            || line.starts_with("fatal: transport '") && line.ends_with("' not allowed")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_known_by_gits_words() {
        assert!(is_locked("error: could not lock config file .git/config\nwarning: Update of config-file failed"));
        assert!(is_locked("fatal: Unable to create '/a b/.git/index.lock': File exists.\n\nAnother git process seems"));
        for other in ["error: could not lock config file .git/config: Permission denied", "File exists", ""] {
            assert!(!is_locked(other), "{other}");
        }
    }

    /// Each message that a kind of failure is known by, from the installed git.
    #[test]
    fn a_failed_transfer_is_known_by_gits_own_errors() {
        use TransferFailure as Kind;
        const LOST: &str = "0123456789012345678901234567890123456789";
        let place = tempfile::tempdir().unwrap();
        let (root, here) = (Git::at(place.path()), Git::at(place.path().join("here")));
        root.run(&["init", "-q", "early EOF"]).unwrap();
        let up = Git::at(place.path().join("early EOF"));
        fs_err::write(up.directory().join("file"), "contents\n".repeat(9999)).unwrap();
        fs_err::write(up.directory().join(".gitattributes"), "file filter=f\n").unwrap();
        up.run(&["add", "."]).unwrap();
        let who = ["-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"];
        up.run(&[&who[..], &["commit", "-q", "-m", "one"]].concat()).unwrap();
        let url = &*format!("file://{}", up.directory().display());
        root.run(&["init", "-q", "here"]).unwrap();
        root.run(&["init", "-q", "--object-format=sha256", "other"]).unwrap();
        let other = Git::at(place.path().join("other"));
        other.run(&[&who[..], &["commit", "-q", "--allow-empty", "-m", "one"]].concat()).unwrap();
        here.run(&["fetch", "-q", url, "HEAD:refs/heads/main"]).unwrap();
        here.run(&["reset", "-q", "--hard", "main"]).unwrap();
        let blob = here.line(&["rev-parse", "main:file"]).unwrap().into_string().unwrap();
        let hook = here.directory().join(".git/hooks/post-checkout");
        fs_err::write(&hook, "#!/bin/sh\ngit fetch git://127.0.0.1:1/x\nexit 1\n").unwrap();
        fs_err::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
        let cases: &[(&[&str], Kind)] = &[
            (&["-c", "filter.f.required=true", "-c", "filter.f.smudge=false", "clone", url, "filtered"], Kind::Filter),
            (&["fetch", url, LOST], Kind::NoCommit),
            (&["-c", "protocol.version=0", "fetch", url, LOST], Kind::NoCommit),
            (&["fetch-pack", url, "refs/heads/none"], Kind::NoCommit),
            (&["checkout", LOST], Kind::NoCommit),
            (&["checkout", "main^{tree}"], Kind::NoCommit),
            (&["rev-list", LOST], Kind::NoCommit),
            (&["merge-base", "HEAD", &blob], Kind::NoCommit),
            (&["update-ref", "refs/heads/new", "none"], Kind::NoCommit),
            (&["fetch", "../other"], Kind::NoCommit),
            (&["clone", "--branch=none", url, "new"], Kind::NoBranch),
            (&["fetch", url, "none"], Kind::NoBranch),
            (&["fetch", "git://127.0.0.1:1/early%20EOF"], Kind::Unreachable),
            (&["fetch", "git://host.invalid/x"], Kind::Unreachable),
            (&["fetch", "http://127.0.0.1:1/x"], Kind::Unreachable),
            (&["fetch", "http://host.invalid/x"], Kind::Unreachable),
            (&["-c", "core.sshCommand=ssh -F none", "fetch", "ssh://127.0.0.1:1/x"], Kind::Unreachable),
            (&["-c", "core.sshCommand=ssh -F none", "fetch", "host.invalid:x"], Kind::Unreachable),
            (&["fetch", &format!("{url}/none")], Kind::NoRepository),
            (&["clone", "none", "new"], Kind::NoRepository),
            // What the hook's git says is the hook's.
            (&["checkout", "-q", "--detach"], Kind::Unknown),
        ];
        for (arguments, kind) in cases {
            match here.fed_online(arguments, b"") {
                Err(Error::Git { failure, said, .. }) => assert_eq!(failure, Some(*kind), "{arguments:?}: {said}"),
                other => panic!("{arguments:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn each_way_to_run_git_waits_for_each_lock() {
        let place = tempfile::tempdir().unwrap();
        let [up, git] = ["up", "here"].map(|name| Git::at(place.path().join(name)));
        Git::at(place.path()).run(&["init", "-q", "up"]).unwrap();
        let commit = [
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@b",
            "-c",
            "commit.gpgsign=false",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "one",
        ];
        (0..2).for_each(|_| drop(up.run(&commit).unwrap()));
        let url = format!("file://{}", up.directory().display());
        Git::at(place.path()).run(&["clone", "-q", "--depth=1", &url, "here"]).unwrap();
        let pack = ["-c", "core.packedRefsTimeout=0", "pack-refs", "--all"];
        let index = b"100644 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\tempty\n";
        let lock = tempfile::tempfile().unwrap();
        let while_locked = |name: &str, work: &dyn Fn() -> Result<()>| {
            let lock = place.path().join("here/.git").join(name);
            fs_err::write(&lock, "").unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(150));
                    fs_err::remove_file(&lock).unwrap();
                });
                work().unwrap_or_else(|error| panic!("{name}: {error}"));
            });
        };
        while_locked("config.lock", &|| git.run(&["config", "a.b", "c"]).map(drop));
        while_locked("index.lock", &|| git.fed(&["update-index", "--index-info"], index).map(drop));
        while_locked("packed-refs.lock", &|| git.run_holding(&lock, &pack).map(drop));
        while_locked("shallow.lock", &|| git.fed_online(&["fetch", "-q", "--unshallow"], b"").map(drop));
    }

    #[test]
    fn contents_are_taken_one_after_another() {
        let (one, rest) = first_of_batch(b"3\na\nb\n0\n\n").unwrap();
        assert_eq!((one, rest), (&b"a\nb"[..], &b"0\n\n"[..]));
        assert_eq!(first_of_batch(rest), Some((&b""[..], &b""[..])));
        assert_eq!(first_of_batch(b"9\nabc\n"), None);
    }
}
