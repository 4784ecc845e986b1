//! The work ahead of a worker: directories whose subdirectories are still to be gone into.

use std::sync::Arc;

use super::node::{Names, Node};

/// Directories below one that was read, that are still to be gone into.
pub(crate) struct PendingDirectories<Open, More> {
    pub(crate) node: Arc<Node>,
    /// `None` when closed to stay within the limit of descriptors; opened again when needed.
    pub(crate) open: Option<Open>,
    pub(crate) names: Names,
    /// Other facts that its walk knows of it.
    pub(crate) more: More,
}

impl<Open, More> PendingDirectories<Open, More> {
    /// Returns the open directory, which `open` opens again if it was closed, and where it is.
    pub(crate) fn opened<E>(&mut self, open: impl FnOnce(&Node) -> Result<Open, E>) -> Result<(&Arc<Node>, &Open), E> {
        let opened = match &mut self.open {
            Some(opened) => opened,
            closed => closed.insert(open(&self.node)?),
        };
        Ok((&self.node, opened))
    }
}

/// From the nearest to the root to the deepest, which is next.
pub(crate) struct PendingStack<Open, More> {
    stack: Vec<PendingDirectories<Open, More>>,
    most_open: usize,
}

impl<Open, More: Clone> PendingStack<Open, More> {
    /// Creates an empty stack. At most `most_open` directories of it may be open.
    pub(crate) fn new(most_open: usize) -> Self {
        Self { stack: Vec::new(), most_open }
    }

    /// Puts one on top, unless nothing is left to be done below it.
    pub(crate) fn push(&mut self, pending: PendingDirectories<Open, More>) {
        if !pending.names.is_empty() {
            self.keep(pending);
        }
    }

    /// Puts one on top that is to come back, also when nothing is left to be done below it.
    pub(crate) fn keep(&mut self, pending: PendingDirectories<Open, More>) {
        self.stack.push(pending);
    }

    pub(crate) fn top(&mut self) -> Option<&mut PendingDirectories<Open, More>> {
        self.stack.last_mut()
    }

    pub(crate) fn pop(&mut self) -> Option<PendingDirectories<Open, More>> {
        self.stack.pop()
    }

    pub(crate) fn clear(&mut self) {
        self.stack.clear();
    }

    /// Splits off half of the names nearest to the root, for a worker that has none.
    pub(crate) fn part(&mut self) -> Option<PendingDirectories<Open, More>> {
        let mut waiting = self.stack.iter_mut().filter(|pending| !pending.names.is_empty());
        let lowest = waiting.next()?;
        // A worker that gives away all its work waits to get it back, and each hand-over walks from the root: 2,000 directories took a hundred times as long.
        if waiting.next().is_none() && lowest.names.len() < 2 {
            return None;
        }
        let names = lowest.names.split_off(lowest.names.len() / 2);
        Some(PendingDirectories { node: Arc::clone(&lowest.node), open: None, names, more: lowest.more.clone() })
    }

    /// Closes those nearest to the root, which will be needed last.
    pub(crate) fn stay_within_limit(&mut self) {
        let open = self.stack.iter().filter(|pending| pending.open.is_some()).count();
        let mut beyond = open.saturating_sub(self.most_open);
        for pending in &mut self.stack {
            if beyond == 0 {
                break;
            }
            beyond -= usize::from(pending.open.take().is_some());
        }
    }
}
