//! Seeing the copies of an overlay as they happen. The end of a copy is its appearance in the upper directory; who opened it is told
//! by the kernel where it lets us ask (fanotify(7)), and otherwise by the descriptors that the server's processes have.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{PipeReader, PipeWriter, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant, SystemTime};

use fs_err as fs;
use rustix::event::{PollFd, PollFlags, Timespec};

use super::{Cause, CopiedFile, begin_lines, milliseconds, one};
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::sys::{self, Appearances, FileOpenings};

/// An open that was waited for comes back this much later than the copy is there, on a machine that is busy: where the kernel tells
/// of it, and where it has to be looked for.
const PATIENCE: [Duration; 2] = [Duration::from_secs(2), Duration::from_millis(500)];
/// How often descriptors are looked at meanwhile: first, and after a while.
const LOOK_EVERY: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(50)];
const A_WHILE: Duration = Duration::from_millis(100);

/// The directories that are watched.
pub(crate) struct OverlayPaths {
    /// The template's data directory.
    pub(crate) lower: PathBuf,
    pub(crate) upper: PathBuf,
    /// The data directory, by the paths at which the server may see it.
    pub(crate) merged: Vec<PathBuf>,
    pub(crate) since: SystemTime,
}

/// A thread that watches an overlay. Its end is that of the watched server.
pub(crate) struct Watch {
    seen: Receiver<Vec<CopiedFile>>,
    stop: PipeWriter,
    /// Facts that cannot be told here, and why.
    pub(crate) untold: Option<String>,
}

impl Watch {
    /// Watches, and writes what happens as lines into `place`.
    pub(crate) fn begin(watched: OverlayPaths, place: &Path) -> Result<Self> {
        let failed = |error| Error::io(Operation::Watch, &watched.upper, error);
        let lines = begin_lines(place)?;
        let appearances = Appearances::new().map_err(failed)?;
        let (opens, untold) = match FileOpenings::of(&watched.merged[0]) {
            Ok(opens) => (Some(opens), None),
            Err(error) => {
                let why = format!("of a process with several threads it is not known which one (fanotify: {error})");
                (None, Some(why))
            }
        };
        let (told, stop) = std::io::pipe().map_err(failed)?;
        let mut watcher = Watcher {
            watched,
            lines,
            appearances,
            opens,
            directories: HashMap::new(),
            seen: HashSet::new(),
            unexplained: Vec::new(),
            copied: Vec::new(),
        };
        watcher.enter(PathBuf::new());
        let (send, seen) = channel();
        let thread = std::thread::Builder::new().name("copies".into());
        let thread = thread.spawn(move || {
            watcher.run(&told);
            // Closing the descriptors takes the kernel tens of milliseconds, for which nobody needs to wait.
            let _ = send.send(std::mem::take(&mut watcher.copied));
        });
        thread.map_err(|error| Error::io(Operation::Watch, place, error))?;
        Ok(Self { seen, stop, untold })
    }

    /// Returns the opened files that were seen, when the server has ended.
    pub(crate) fn end(self) -> Vec<CopiedFile> {
        drop(self.stop);
        self.seen.recv().unwrap_or_default()
    }
}

struct Watcher {
    watched: OverlayPaths,
    lines: File,
    appearances: Appearances,
    opens: Option<FileOpenings>,
    directories: HashMap<i32, PathBuf>,
    seen: HashSet<PathBuf>,
    /// Copies of which it is not known yet who opened them.
    unexplained: Vec<(CopiedFile, Instant)>,
    copied: Vec<CopiedFile>,
}

impl Watcher {
    fn run(&mut self, told: &PipeReader) {
        let patience = PATIENCE[usize::from(self.opens.is_none())];
        while !self.pause(told) {
            self.look();
            self.publish(patience);
        }
        self.look();
        self.publish(Duration::ZERO);
    }

    /// Waits until something happens or it is time to look at descriptors again. Returns whether the watched server has ended.
    fn pause(&self, told: &PipeReader) -> bool {
        let mut fds = vec![PollFd::new(told, PollFlags::IN), PollFd::new(&self.appearances, PollFlags::IN)];
        fds.extend(self.opens.as_ref().map(|opens| PollFd::from_borrowed_fd(opens.as_fd(), PollFlags::IN)));
        let is_fresh = self.unexplained.last().is_some_and(|(_, found)| found.elapsed() < A_WHILE);
        let look = LOOK_EVERY[usize::from(!is_fresh)];
        let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(look.subsec_nanos()) };
        let limit = if self.unexplained.is_empty() { None } else { Some(&limit) };
        let _ = rustix::event::poll(&mut fds, limit);
        !fds[0].revents().is_empty()
    }

    fn look(&mut self) {
        // In this order: an open comes back after its copy has appeared, so that what is opened here is known below.
        let opened = self.opens.as_ref().map(FileOpenings::read).unwrap_or_default();
        for appeared in self.appearances.read() {
            let Some(directory) = self.directories.get(&appeared.directory) else { continue };
            let path = directory.join(appeared.name);
            if appeared.is_directory { self.enter(path) } else { self.found(path) }
        }
        for opened in opened {
            self.explain(&opened);
        }
        if self.opens.is_none() {
            self.search();
        }
    }

    /// Watches a directory, and records what came into it before that.
    fn enter(&mut self, below: PathBuf) {
        let directory = self.watched.upper.join(&below);
        let Ok(number) = self.appearances.add(&directory) else { return };
        self.directories.insert(number, below.clone());
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = below.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => self.enter(path),
                Ok(kind) if kind.is_file() => self.found(path),
                _ => {}
            }
        }
    }

    fn found(&mut self, path: PathBuf) {
        let now = sys::stamp();
        let Some(mut copied) = one(&self.watched.lower, &self.watched.upper, &path, self.watched.since) else { return };
        if !self.seen.insert(path) {
            return;
        }
        let end = self.changed(&copied.path).map_or(now, |changed| changed.min(now));
        let since_mount = end.duration_since(self.watched.since).unwrap_or_default();
        let took = milliseconds(since_mount) - copied.after_ms;
        copied.took_ms = Some((took * 10.0).round().max(0.0) / 10.0);
        self.unexplained.push((copied, Instant::now()));
    }

    /// Returns when a copy last changed, which is when it was given its name: a better time of its end than the present one, unless it was
    /// written to since.
    fn changed(&self, path: &Path) -> Option<SystemTime> {
        let copy = fs::symlink_metadata(self.watched.upper.join(path)).ok()?;
        let nanoseconds = u32::try_from(copy.ctime_nsec()).ok()?;
        Some(SystemTime::UNIX_EPOCH + Duration::new(copy.ctime().cast_unsigned(), nanoseconds))
    }

    /// Returns where the server sees a file.
    fn shown(&self, path: &Path) -> Vec<PathBuf> {
        self.watched.merged.iter().map(|merged| merged.join(path)).collect()
    }

    /// Finds the unexplained copy that the server sees at this path.
    fn at(&self, path: &Path) -> Option<usize> {
        let below = self.watched.merged.iter().find_map(|merged| path.strip_prefix(merged).ok())?;
        self.unexplained.iter().position(|(copied, _)| copied.path == below)
    }

    fn explain(&mut self, opened: &sys::FileOpening) {
        let Some(at) = self.at(&opened.path) else { return };
        let Some(who) = sys::who(opened.thread) else {
            // Gone already. There will not be another word of it.
            let copied = self.unexplained.remove(at).0;
            return self.tell(copied);
        };
        let flags = sys::open_flags(who.process, &self.shown(&self.unexplained[at].0.path));
        // Somebody who read it just then.
        if flags.is_some_and(|flags| !sys::is_for_writing(flags)) {
            return;
        }
        let mut copied = self.unexplained.remove(at).0;
        copied.cause = Some(cause(who, flags));
        self.tell(copied);
    }

    /// Explains copies where the kernel reports no opens: the process that has a copy open for writing is the one that opened it.
    fn search(&mut self) {
        if self.unexplained.is_empty() {
            return;
        }
        for process in sys::descendants() {
            for (path, flags) in sys::open_files(process, &|path| self.at(path).is_some()) {
                if sys::is_for_writing(flags)
                    && let Some(at) = self.at(&path)
                    && let Some(who) = sys::process(process)
                {
                    let mut copied = self.unexplained.remove(at).0;
                    copied.cause = Some(cause(who, Some(flags)));
                    self.tell(copied);
                }
            }
        }
    }

    /// Copies that nobody opened, as when a file is renamed, and those whose opener is gone.
    fn publish(&mut self, patience: Duration) {
        for (copied, found) in std::mem::take(&mut self.unexplained) {
            if found.elapsed() < patience {
                self.unexplained.push((copied, found));
            } else {
                self.tell(copied);
            }
        }
    }

    fn tell(&mut self, copied: CopiedFile) {
        if let Ok(mut line) = serde_json::to_vec(&copied) {
            line.push(b'\n');
            let _ = self.lines.write_all(&line);
        }
        self.copied.push(copied);
    }
}

fn cause(who: sys::ProcessThread, flags: Option<i32>) -> Cause {
    Cause {
        process: who.process,
        name: who.name,
        thread: who.thread,
        thread_name: who.thread_name,
        flags: flags.map(sys::flag_names),
    }
}
