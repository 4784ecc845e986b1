//! The one user who pushes while the clients work: commits that change three random files.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::clients::Clients;
use super::host::ledger::OperationNumber;
use super::rounds::PUSH_EVERY;
use crate::error::{BenchError, FailureKind};
use crate::random::SplitMix64;
use crate::remedy::Remedy;

/// Commits of the pusher's follow each other by a second from here, so that they are the same in every run: 2030-01-01T00:00:00Z.
const FIRST_COMMIT: u64 = 1_893_456_000;

/// How many files a commit changes, if there are so many.
const FILES: usize = 3;

/// Larger ones are left alone: nobody edits them.
const LARGEST: u64 = 16 << 20;

pub(super) struct Pusher<'a> {
    clients: &'a Clients<'a>,
    /// The pusher's own bare clone, with the server as `origin`.
    repository: PathBuf,
    branch: &'a str,
    url: String,
    /// The account that its requests are charged to.
    operation: OperationNumber,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Mode and path of what may be changed.
    files: Vec<(String, Vec<u8>)>,
    random: SplitMix64,
    pushed: u64,
    wanted: u64,
    /// A push is under way: whoever clones now may get it, or not.
    busy: bool,
    stopping: bool,
    failed: Option<String>,
}

/// A number of pushes.
#[derive(Debug, Clone, Copy)]
pub(super) struct PushCount(u64);

impl<'a> Pusher<'a> {
    pub(super) fn new(
        clients: &'a Clients<'a>,
        repository: PathBuf,
        branch: &'a str,
        url: String,
        operation: OperationNumber,
        seed: u64,
    ) -> Result<Self, BenchError> {
        let mut command = clients.git(&repository, None);
        command.args(["ls-tree", "-r", "-l", "-z", &format!("refs/heads/{branch}")]);
        let listed = clients.output(&mut command, "listing the files to change")?;
        let files: Vec<_> = listed.split(|byte| *byte == 0).filter_map(changeable).collect();
        let state = State {
            files,
            random: SplitMix64::new(seed),
            pushed: 0,
            wanted: 0,
            busy: false,
            stopping: false,
            failed: None,
        };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Ok(Self { clients, repository, branch, url, operation, state, changed })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pushes at its pace, and at once when somebody waits for it, until told to stop. A push that fails ends it.
    pub(super) fn work(&self) -> Result<(), BenchError> {
        let mut next = Instant::now() + PUSH_EVERY;
        loop {
            let mut state = self.state();
            while !state.stopping && state.wanted <= state.pushed && Instant::now() < next {
                let left = next.saturating_duration_since(Instant::now());
                state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            }
            if state.stopping {
                return Ok(());
            }
            state.busy = true;
            drop(state);
            let pushed = self.push();
            let mut state = self.state();
            state.busy = false;
            if let Err(failure) = pushed {
                state.failed = Some("the user who pushes could not".into());
                drop(state);
                self.changed.notify_all();
                return Err(failure);
            }
            state.pushed += 1;
            drop(state);
            self.changed.notify_all();
            next = Instant::now() + PUSH_EVERY;
        }
    }

    pub(super) fn stop(&self) {
        self.state().stopping = true;
        self.changed.notify_all();
    }

    /// Returns the number of pushes that a client may have got by now.
    pub(super) fn seen(&self) -> PushCount {
        let state = self.state();
        PushCount(state.pushed + u64::from(state.busy))
    }

    /// Waits until something was pushed that a client cannot have.
    pub(super) fn wait_for_another(&self, seen: PushCount) -> Result<(), String> {
        let mut state = self.state();
        state.wanted = state.wanted.max(seen.0 + 1);
        self.changed.notify_all();
        loop {
            if let Some(failed) = &state.failed {
                return Err(failed.clone());
            }
            if state.stopping {
                return Err("the bench is ending".into());
            }
            if state.pushed > seen.0 {
                return Ok(());
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Makes one commit, and pushes it.
    pub(super) fn push(&self) -> Result<(), BenchError> {
        let (chosen, number) = {
            let mut state = self.state();
            (chosen(&mut state), state.pushed)
        };
        let commit = self.commit(&chosen, number)?;
        let clients = self.clients;
        let into = clients.file();
        fs_err::write(&into, commit)?;
        let mut command = clients.git(&self.repository, None);
        command.args(["fast-import", "--quiet", "--done"]).stdin(File::from(fs_err::File::open(&into)?));
        clients.output(&mut command, "making a commit to push")?;
        fs_err::remove_file(&into)?;
        let mut command = clients.git(&self.repository, Some(self.operation));
        let reference = format!("refs/heads/{0}:refs/heads/{0}", self.branch);
        command.args(["push", "--quiet", &self.url, &reference]);
        let ran = clients.run(&mut command)?;
        if ran.is_success() {
            return Ok(());
        }
        let text = format!("a push to the bench's own host failed: {}", self.clients.reason(&ran).text);
        Err(BenchError::stated(FailureKind::Failed, text, Remedy::FreeSpaceOrReport))
    }

    /// Returns the input of `git fast-import`: each of the files with a line more at its end.
    fn commit(&self, chosen: &[(String, Vec<u8>)], number: u64) -> Result<Vec<u8>, BenchError> {
        let branch = self.branch;
        let message = format!("push {number}\n");
        let mut stream = Vec::new();
        write!(
            stream,
            "commit refs/heads/{branch}\ncommitter Calve <calve@localhost> {} +0000\ndata {}\n{message}from refs/heads/{branch}^0\n",
            FIRST_COMMIT + number,
            message.len()
        )?;
        let old = self.contents(chosen)?;
        for ((mode, path), mut content) in chosen.iter().zip(old) {
            if content.last().is_some_and(|byte| *byte != b'\n') {
                content.push(b'\n');
            }
            content.extend_from_slice(format!("pushed {number}\n").as_bytes());
            write!(stream, "M {mode} inline ")?;
            stream.extend_from_slice(&quoted(path));
            write!(stream, "\ndata {}\n", content.len())?;
            stream.extend_from_slice(&content);
            stream.push(b'\n');
        }
        stream.extend_from_slice(b"\ndone\n");
        Ok(stream)
    }

    fn contents(&self, chosen: &[(String, Vec<u8>)]) -> Result<Vec<Vec<u8>>, BenchError> {
        let wanted = self.clients.file();
        let lines: Vec<u8> = chosen
            .iter()
            .flat_map(|(_, path)| [b"refs/heads/", self.branch.as_bytes(), b":", path, b"\n"].concat())
            .collect();
        fs_err::write(&wanted, lines)?;
        let mut command = self.clients.git(&self.repository, None);
        command.args(["cat-file", "--batch"]).stdin(File::from(fs_err::File::open(&wanted)?));
        let printed = self.clients.output(&mut command, "reading the files to change")?;
        fs_err::remove_file(&wanted)?;
        // OID blob SIZE<newline>CONTENT<newline>
        let mut rest = printed.as_slice();
        let mut contents = Vec::new();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let head = String::from_utf8_lossy(&rest[..end]);
            let size = head.rsplit(' ').next().and_then(|digits| digits.parse::<usize>().ok()).unwrap_or(0);
            contents.push(rest[end + 1..].get(..size).unwrap_or_default().to_vec());
            rest = rest.get(end + size + 2..).unwrap_or_default();
        }
        Ok(contents)
    }
}

/// Reads a line of `git ls-tree -r -l -z`: regular files of a bearable size, with names that fit on a line.
fn changeable(entry: &[u8]) -> Option<(String, Vec<u8>)> {
    let tab = entry.iter().position(|byte| *byte == b'\t')?;
    let about = String::from_utf8_lossy(&entry[..tab]).into_owned();
    let mut fields = about.split_whitespace();
    let mode = fields.next().filter(|mode| mode.starts_with("100"))?.to_owned();
    let size: u64 = fields.nth(2)?.parse().ok()?;
    let path = entry[tab + 1..].to_vec();
    (size <= LARGEST && !path.contains(&b'\n')).then_some((mode, path))
}

fn chosen(state: &mut State) -> Vec<(String, Vec<u8>)> {
    let mut left: Vec<usize> = (0..state.files.len()).collect();
    let mut chosen = Vec::new();
    while chosen.len() < FILES && !left.is_empty() {
        let at = state.random.below(left.len() as u64) as usize;
        chosen.push(state.files[left.swap_remove(at)].clone());
    }
    if chosen.is_empty() {
        chosen.push(("100644".to_owned(), b"pushed by calve bench".to_vec()));
    }
    chosen
}

/// Quotes a path as `git fast-import` reads it.
fn quoted(path: &[u8]) -> Vec<u8> {
    let mut text = vec![b'"'];
    for byte in path {
        match byte {
            b'"' | b'\\' => text.extend_from_slice(&[b'\\', *byte]),
            0..32 | 127.. => text.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
            _ => text.push(*byte),
        }
    }
    text.push(b'"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_as_fast_import_wants_them() {
        assert_eq!(quoted(b"a b/\"c\"\\\xc3\xa9"), br#""a b/\"c\"\\\303\251""#);
    }

    #[test]
    fn links_and_submodules_are_left_alone() {
        assert_eq!(changeable(b"100755 blob abc     12\ta b"), Some(("100755".into(), b"a b".to_vec())));
        assert_eq!(changeable(b"120000 blob abc     12\tlink"), None);
        assert_eq!(changeable(b"160000 commit abc       -\tmodule"), None);
        assert_eq!(changeable(b""), None);
    }
}
