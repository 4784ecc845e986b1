//! Hard links inside the tree: the first name of an inode is cloned, every further one is linked to it.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::fs::Stat;

use crate::tree::location::identity;
use crate::tree::node::Node;

/// The inodes with several names that were met so far.
///
/// A tree whose every file has a name elsewhere (a pnpm store) puts every file in here, so a record is kept small: a hash
/// entry of 16 bytes and a record of 16 more, beside the name.
#[derive(Default)]
pub(crate) struct Links {
    known: Mutex<LinkTable>,
    ready: Condvar,
}

#[derive(Default)]
struct LinkTable {
    /// One map per device; nearly always one.
    devices: Vec<(u64, HashMap<u64, u32>)>,
    records: Vec<Record>,
    names: Vec<u8>,
}

struct Record {
    directory: Option<Arc<Node>>,
    name_at: u32,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Creating,
    Created,
    Abandoned,
}

pub(crate) enum Claim<'l> {
    /// This is the first name: create the file.
    First(FirstName<'l>),
    /// Link to this entry of that directory of the clone.
    LinkTo(Arc<Node>, CString),
}

/// The right to create the file of an inode's first name. Others wait for [`FirstName::created`], or for this to be dropped (also by a
/// panic), which leaves it to the next name.
pub(crate) struct FirstName<'l> {
    links: &'l Links,
    index: u32,
    created: bool,
}

impl FirstName<'_> {
    /// Lets others link to the file, which exists now.
    pub(crate) fn created(&mut self) {
        self.created = true;
        self.links.settle(self.index, State::Created);
    }
}

impl Drop for FirstName<'_> {
    fn drop(&mut self) {
        if !self.created {
            self.links.settle(self.index, State::Abandoned);
        }
    }
}

impl Links {
    /// Claims an inode for a name, waiting while another worker is creating its first one.
    pub(crate) fn claim(&self, stat: &Stat, directory: &Arc<Node>, name: &CStr) -> Claim<'_> {
        let mut known = self.lock();
        let (device, _) = identity(stat);
        loop {
            let position = match known.devices.iter().position(|(number, _)| *number == device) {
                Some(position) => position,
                None => {
                    known.devices.push((device, HashMap::new()));
                    known.devices.len() - 1
                }
            };
            let Some(&index) = known.devices[position].1.get(&stat.st_ino) else {
                let index = known.add(directory, name);
                known.devices[position].1.insert(stat.st_ino, index);
                return Claim::First(FirstName { links: self, index, created: false });
            };
            let record = &known.records[index as usize];
            match (record.state, &record.directory) {
                (State::Created, Some(first)) => {
                    let first = Arc::clone(first);
                    let name = known.name(record.name_at).to_owned();
                    return Claim::LinkTo(first, name);
                }
                (State::Creating, _) => {
                    known = self.ready.wait(known).unwrap_or_else(PoisonError::into_inner);
                }
                (State::Abandoned | State::Created, _) => {
                    known.devices[position].1.remove(&stat.st_ino);
                }
            }
        }
    }

    fn settle(&self, index: u32, state: State) {
        self.lock().records[index as usize].state = state;
        self.ready.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, LinkTable> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LinkTable {
    fn add(&mut self, directory: &Arc<Node>, name: &CStr) -> u32 {
        // Four gigabytes of names, or four thousand million records, are beyond what one tree can hold in memory.
        let name_at = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.extend_from_slice(name.to_bytes_with_nul());
        let index = u32::try_from(self.records.len()).unwrap_or(u32::MAX);
        self.records.push(Record { directory: Some(Arc::clone(directory)), name_at, state: State::Creating });
        index
    }

    fn name(&self, at: u32) -> &CStr {
        CStr::from_bytes_until_nul(&self.names[at as usize..]).unwrap_or_default()
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
