//! Watches how deep git's processes start each other, and ends those that would do so without end.
//!
//! A partial clone takes a missing object for a promised one, and fetches it when it is needed. If the source's history
//! is cut off, the parent of its oldest commit never comes: the git that fetches it finds it missing too, starts
//! another git, and so on. A git that may fetch cannot be kept from this.
//!
//! Git's trace shows the chain: each event has the identifiers of the processes above it, with their numbers (git's
//! Documentation/technical/api-trace2.txt, "sid"). It also has git's own errors, apart from the words of others.

use std::collections::BTreeSet;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpgid, getpgrp, kill_process, kill_process_group};
use serde_json::Value;

use crate::error::Result;
use crate::transfer_failure::GitError;

/// A fetch of missing contents has a depth of 5; submodules, hooks and maintenance add to it.
const DEEPEST: usize = 20;

const PAUSE: Duration = Duration::from_millis(20);

/// Rounds without a new process, after which all count as ended.
const QUIET_ROUNDS: u32 = 10;
const LONGEST: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Nesting {
    events: fs_err::File,
    /// The beginning of an unfinished line.
    line: Vec<u8>,
    processes: BTreeSet<i32>,
    depth: usize,
    errors: Vec<GitError>,
    /// The process that waits for its hook, and its name for it.
    hook: Option<(String, Option<u64>)>,
}

impl Nesting {
    /// Makes git append its events to a file, and reads them from there.
    pub(crate) fn watch(command: &mut Command, events: &Path) -> Result<Nesting> {
        fs_err::OpenOptions::new().create(true).append(true).open(events)?;
        // Set if this process was itself started by git, as an alias or a hook.
        command.env("GIT_TRACE2_EVENT", events).env_remove("GIT_TRACE2_PARENT_SID");
        let mut events = fs_err::File::open(events)?;
        events.seek(SeekFrom::End(0))?;
        let (line, processes, errors) = (Vec::new(), BTreeSet::new(), Vec::new());
        Ok(Nesting { events, line, processes, depth: 0, errors, hook: None })
    }

    /// Returns whether processes are nested deeper than any git has reason to.
    pub fn is_endless(&mut self) -> Result<bool> {
        self.events.read_to_end(&mut self.line)?;
        let end = self.line.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
        for line in self.line[..end].split(|&byte| byte == b'\n') {
            let event: Value = serde_json::from_str(&String::from_utf8_lossy(line)).unwrap_or_default();
            let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
            let (depth, process) = nested(&text("sid"));
            self.depth = self.depth.max(depth);
            self.processes.extend(process);
            let child = Some((text("sid"), event["child_id"].as_u64()));
            match &*text("event") {
                "child_start" if self.hook.is_none() && event["child_class"] == "hook" => self.hook = child,
                "child_exit" if self.hook == child => self.hook = None,
                "error" if self.hook.is_none() => {
                    let (format, text) = (text("fmt"), text("msg"));
                    self.errors.push(GitError { is_outermost: depth == 1, format, text });
                }
                _ => {}
            }
        }
        self.line.drain(..end);
        Ok(self.depth > DEEPEST)
    }

    /// Returns the errors of git so far, without those of the commands of a hook.
    pub(crate) fn errors(&mut self) -> Result<&[GitError]> {
        self.is_endless()?;
        Ok(&self.errors)
    }

    /// Kills the processes, whatever their depth, that are in these process groups.
    pub fn end(&mut self, groups: &[Pid]) -> Result<()> {
        for group in groups.iter().filter(|&&group| group != getpgrp()) {
            // In one step, so that none of them can start another meanwhile.
            let _ = kill_process_group(*group, Signal::KILL);
        }
        let (began, mut quiet) = (Instant::now(), 0);
        while quiet <= QUIET_ROUNDS && began.elapsed() < LONGEST {
            self.is_endless()?;
            let found = std::mem::take(&mut self.processes);
            // The last one first: it is about to start another.
            for process in found.iter().rev().filter_map(|&process| Pid::from_raw(process)) {
                // Outside of these groups, another process has got the number meanwhile.
                if getpgid(Some(process)).is_ok_and(|group| groups.contains(&group)) {
                    let _ = kill_process(process, Signal::KILL);
                }
            }
            if found.is_empty() {
                thread::sleep(PAUSE);
            }
            quiet = if found.is_empty() { quiet + 1 } else { 0 };
        }
        Ok(())
    }

    /// Watches until `is_over` is set. Ends processes that nest without end, and returns whether there were any.
    pub fn guard(&mut self, is_over: &AtomicBool, groups: &[Pid]) -> Result<bool> {
        while !is_over.load(Ordering::Relaxed) {
            if self.is_endless()? {
                self.end(groups)?;
                return Ok(true);
            }
            thread::park_timeout(PAUSE);
        }
        Ok(false)
    }
}

fn nested(sid: &str) -> (usize, Option<i32>) {
    let process = sid.rsplit_once("-P").and_then(|(_, digits)| i32::from_str_radix(digits, 16).ok());
    (sid.split('/').count(), process.filter(|&process| process > 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_depth_and_process() {
        assert_eq!(nested("20261128T072358.459815Z-H0a7c9cdf-P00001be3"), (1, Some(0x1be3)));
        assert_eq!(nested("2026Z-H0-P00001be3/2026Z-H0-P000000ff"), (2, Some(0xff)));
        for other in ["", "a", "a-P0000000000zz", "a-P00000001"] {
            assert_eq!(nested(other).1, None);
        }
    }
}
