//! The end of a server whose data stays.

use super::Supervisor;
use crate::files::directory::Directory;
use crate::files::private;
use crate::registry;

impl Supervisor<'_> {
    /// Ends the server; in order, if its data stays.
    pub(super) fn shut_down(&mut self) {
        if self.spec.durable.is_none() {
            return self.kill();
        }
        // It can take a while, in which nobody is to take it for one that runs.
        registry::forget(&self.spec.place);
        if self.finish().is_err() {
            return self.kill();
        }
        self.end_children();
        // Not the account's any more.
        let _ = Directory::open(self.spec.files()).and_then(|files| private::close(&files));
    }
}
