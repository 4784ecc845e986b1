//! Another process that works on the same tree.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Does `rival` over and over, on a thread of its own, while `work` runs; ends with it, also when it panics.
pub fn while_another<T>(rival: impl FnMut() + Send, work: impl FnOnce() -> T) -> T {
    let mut rival = rival;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                rival();
            }
        });
        let _finished = Finished(&done);
        work()
    })
}

struct Finished<'a>(&'a AtomicBool);

impl Drop for Finished<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
