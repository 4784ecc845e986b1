use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use calve_core::Progress;
use calve_receipt::human::{duration, entries, size};

use crate::output;

pub(crate) fn watched<T>(verb: &'static str, progress: &Arc<Progress>, work: impl FnOnce() -> T) -> T {
    let _watch = Watch::start(verb, progress);
    work()
}

pub(crate) struct Watch(Option<(Sender<()>, JoinHandle<()>)>);

impl Watch {
    /// Shows progress after one second, on a terminal only.
    pub(crate) fn start(verb: &'static str, progress: &Arc<Progress>) -> Self {
        if !output::shows_progress() {
            return Self(None);
        }
        let (stop, stopped) = channel();
        let (progress, begun) = (Arc::clone(progress), Instant::now());
        let thread = std::thread::spawn(move || {
            if stopped.recv_timeout(Duration::from_secs(1)) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            loop {
                let (entries, size) = (entries(progress.entries()), size(progress.bytes()));
                output::progress(&format!("{verb} {entries}, {size} ({})", duration(begun.elapsed())));
                if stopped.recv_timeout(Duration::from_millis(100)) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
            output::progress("");
        });
        Self(Some((stop, thread)))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.0.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}
