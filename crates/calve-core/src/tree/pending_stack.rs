//! Directories ahead of a worker, with subdirectories still to enter.

use std::sync::Arc;

use super::node::{Names, Node};

pub(crate) struct PendingDirectories<Open, More> {
    pub(crate) node: Arc<Node>,
    /// `None` if closed to stay within the limit of descriptors; reopened when needed.
    pub(crate) open: Option<Open>,
    pub(crate) names: Names,
    /// Other facts of its walk.
    pub(crate) more: More,
}

impl<Open, More> PendingDirectories<Open, More> {
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
    pub(crate) fn new(most_open: usize) -> Self {
        Self { stack: Vec::new(), most_open }
    }

    /// Pushes a directory, unless nothing is left to do below it.
    pub(crate) fn push(&mut self, pending: PendingDirectories<Open, More>) {
        if !pending.names.is_empty() {
            self.keep(pending);
        }
    }

    /// Pushes a directory that is to come back even if nothing is left to do below it.
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

    /// Splits off half of the names nearest to the root, for a worker without work.
    pub(crate) fn part(&mut self) -> Option<PendingDirectories<Open, More>> {
        let mut waiting = self.stack.iter_mut().filter(|pending| !pending.names.is_empty());
        let lowest = waiting.next()?;
        // Giving away all work means waiting to get it back, and each hand-over walks from the root: 2,000 directories
        // took a hundred times as long.
        if waiting.next().is_none() && lowest.names.len() < 2 {
            return None;
        }
        let names = lowest.names.split_off(lowest.names.len() / 2);
        Some(PendingDirectories { node: Arc::clone(&lowest.node), open: None, names, more: lowest.more.clone() })
    }

    /// Closes directories nearest to the root, which are needed last.
    pub(crate) fn stay_within_limit(&mut self) {
        let open = self.stack.iter().filter(|pending| pending.open.is_some()).count();
        let beyond = open.saturating_sub(self.most_open);
        for pending in self.stack.iter_mut().filter(|pending| pending.open.is_some()).take(beyond) {
            pending.open = None;
        }
    }
}
