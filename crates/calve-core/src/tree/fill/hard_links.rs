//! Hard links inside the tree: the first name of an inode is cloned, and the others are linked to it. Not where macOS' clonefile
//! clones a whole directory, which separates them.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::fs::Stat;

use crate::tree::location::{Identity, identity};
use crate::tree::node::Node;

#[derive(Default)]
pub(crate) struct Links {
    known: Mutex<HashMap<Identity, LinkedFile>>,
    ready: Condvar,
}

struct LinkedFile {
    directory: Arc<Node>,
    name: CString,
    is_created: bool,
}

pub(crate) enum Claim<'l> {
    First(FirstName<'l>),
    /// Link to this entry of that directory of the clone.
    LinkTo(Arc<Node>, CString),
}

/// The right to create an inode's first name. Others wait for [`FirstName::created`], or for the drop, then try it.
pub(crate) struct FirstName<'l> {
    links: &'l Links,
    inode: Identity,
    created: bool,
}

impl FirstName<'_> {
    pub(crate) fn created(&mut self) {
        self.created = true;
        if let Some(file) = self.links.lock().get_mut(&self.inode) {
            file.is_created = true;
        }
        self.links.ready.notify_all();
    }
}

impl Drop for FirstName<'_> {
    fn drop(&mut self) {
        if !self.created {
            self.links.lock().remove(&self.inode);
            self.links.ready.notify_all();
        }
    }
}

impl Links {
    /// Claims an inode for a name. Waits while another worker creates the first name.
    pub(crate) fn claim(&self, stat: &Stat, directory: &Arc<Node>, name: &CStr) -> Claim<'_> {
        let inode = identity(stat);
        let mut known = self.lock();
        loop {
            match known.get(&inode) {
                Some(file) if file.is_created => return Claim::LinkTo(Arc::clone(&file.directory), file.name.clone()),
                Some(_) => known = self.ready.wait(known).unwrap_or_else(PoisonError::into_inner),
                None => break,
            }
        }
        known.insert(inode, LinkedFile { directory: Arc::clone(directory), name: name.to_owned(), is_created: false });
        Claim::First(FirstName { links: self, inode, created: false })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Identity, LinkedFile>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(links: &Links, name: &CStr) -> bool {
        let stat = rustix::fs::stat(c"/").unwrap();
        let Claim::First(mut first) = links.claim(&stat, &Node::root(), name) else { return false };
        first.created();
        true
    }

    #[test]
    fn a_worker_that_panics_leaves_the_first_name_to_another() {
        let links = Links::default();
        let stat = rustix::fs::stat(c"/").unwrap();
        std::thread::scope(|scope| {
            let died = scope.spawn(|| {
                let _claim = links.claim(&stat, &Node::root(), c"a");
                std::panic::resume_unwind(Box::new("on purpose"));
            });
            assert!(died.join().is_err());
        });
        assert!(first(&links, c"b"), "it would wait for ever");
        assert!(!first(&links, c"c"));
    }
}
