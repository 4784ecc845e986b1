//! The files that overlays copy as a whole, in words: before, while, and after.

use calve_receipt::human;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use calve_core::ShownPath;
use calve_db::{Cause, CopiedFile, StartNotice, Trace};

use crate::output;
use calve_receipt::human::duration;

/// The largest are named.
const NAMED: usize = 5;
/// Afterwards smaller ones are not named.
const NAMED_BYTES: u64 = 1 << 20;
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Announces the copies that will make somebody wait.
pub(super) fn announce(starting: &StartNotice) {
    let files = &starting.copy_up;
    if files.is_empty() {
        return;
    }
    let bytes = files.iter().map(|file| file.bytes).sum();
    output::say(&format!(
        "an overlay without reflinks copies a file as a whole when the server first opens it. Large files: {}, {}",
        human::count(files.len() as u64),
        human::size(bytes)
    ));
    for file in files.iter().take(NAMED) {
        output::say(&format!("  {}  {}", ShownPath(&file.path), human::size(file.bytes)));
    }
}

/// Tells which files an overlay has copied.
pub(super) fn tell(copied: &[CopiedFile]) {
    if copied.is_empty() {
        return;
    }
    output::say(&format!("the overlay copied {}, because the server opened them", sum(copied)));
    name(copied);
}

fn name(copied: &[CopiedFile]) {
    for file in copied.iter().filter(|file| file.bytes >= NAMED_BYTES) {
        output::say(&format!("  {}", line(file)));
    }
}

pub(super) fn sum(copied: &[CopiedFile]) -> String {
    let bytes = copied.iter().map(|file| file.bytes).sum();
    let files = if copied.len() == 1 { "file" } else { "files" };
    format!("{} {files}, {}", human::count(copied.len() as u64), human::size(bytes))
}

/// Describes one copied file: when it was copied, its path and size, how long that took, and which process caused it.
pub(super) fn line(copied: &CopiedFile) -> String {
    let after = milliseconds(copied.after_ms);
    let took = copied.took_ms.map(|took| format!(" in {}", milliseconds(took))).unwrap_or_default();
    let (path, size) = (ShownPath(&copied.path), human::size(copied.bytes));
    format!("after {after}  {path}  {size}{took}{}", copied.cause.as_ref().map(who).unwrap_or_default())
}

fn who(cause: &Cause) -> String {
    let thread = match (cause.thread, &cause.thread_name) {
        (Some(thread), _) if thread == cause.process => String::new(),
        (Some(thread), Some(name)) if *name != cause.name => format!(", thread {thread} `{name}`"),
        (Some(thread), _) => format!(", thread {thread}"),
        (None, _) => ", some thread".into(),
    };
    let flags = cause.flags.as_ref().map(|flags| format!(", {flags}")).unwrap_or_default();
    format!("  by {} `{}`{thread}{flags}", cause.process, cause.name)
}

fn milliseconds(ms: f64) -> String {
    duration(Duration::from_secs_f64(ms / 1000.0))
}

/// Lines on stderr while something else goes on.
pub(super) struct CopyPrinter {
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl CopyPrinter {
    pub(super) fn begin(starting: &StartNotice) -> Self {
        if let Some(untold) = &starting.untold {
            output::say(&format!("trace: {untold}"));
        }
        let mut trace = starting.trace();
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            loop {
                // Read before looking, so that what came last is not missed.
                let is_last = seen.load(Ordering::Acquire);
                say(&mut trace);
                if is_last {
                    return;
                }
                std::thread::park_timeout(LOOK_EVERY);
            }
        });
        Self { over, thread }
    }

    /// Says what there is until now, and no more.
    pub(super) fn end(self) {
        self.over.store(true, Ordering::Release);
        self.thread.thread().unpark();
        let _ = self.thread.join();
    }
}

fn say(trace: &mut Trace) {
    for copied in trace.more() {
        output::say(&format!("trace: {}", line(&copied)));
    }
}
