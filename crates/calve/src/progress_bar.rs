//! A counter on the terminal while something takes longer than a second.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use calve_core::Progress;
use indicatif::{ProgressBar, ProgressStyle};

use calve_receipt::human::{entries, size};

/// Shows a counter until dropped.
pub(crate) struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Shows progress after one second. Does nothing where nobody watches.
    pub(crate) fn start(verb: &'static str, progress: &Arc<Progress>, quiet: bool) -> Self {
        if quiet || !std::io::stderr().is_terminal() {
            return Self { stop: None, thread: None };
        }
        let (stop, stopped) = channel();
        let progress = Arc::clone(progress);
        let thread = std::thread::spawn(move || {
            if stopped.recv_timeout(Duration::from_secs(1)) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
                bar.set_style(style);
            }
            loop {
                bar.set_message(format!("{verb} {}, {}", entries(progress.entries()), size(progress.bytes())));
                bar.tick();
                if stopped.recv_timeout(Duration::from_millis(100)) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
            bar.finish_and_clear();
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
