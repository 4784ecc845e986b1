//! The order in which a worker goes through directories: which is next, which waits, and which are given away.

use std::ffi::CStr;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, Stat};
use rustix::io::Errno;

use super::fill::{DIRECTORY, Pair, Task, Worker, open_source};
use super::names::Names;
use super::node::Node;
use crate::error::Error;

/// Directories below a finished one that are still to be done.
pub(super) struct Pending {
    pub(super) node: Arc<Node>,
    /// `None` when closed to stay within the limit of descriptors; opened again when needed.
    pub(super) pair: Option<Pair>,
    pub(super) names: Names,
}

/// A directory that is about to be filled.
pub(super) struct Opened {
    pub(super) node: Arc<Node>,
    pub(super) pair: Pair,
    pub(super) stat: Stat,
    /// Where [`super::groups::Groups`] has it.
    pub(super) place: Option<usize>,
}

impl Worker<'_> {
    /// Takes one directory after the other, until nothing of its own is left.
    pub(super) fn descend(&mut self) -> Result<(), Error> {
        let mut name = Vec::new();
        while let Some(opened) = self.next_directory(&mut name)? {
            self.directory(opened)?;
            self.stay_within_limit();
            if self.pool.hungry() {
                self.share();
            }
        }
        Ok(())
    }

    /// The deepest directory that is in nobody's way; one that is, when there is no other, or when there are many of them.
    fn next_directory(&mut self, name: &mut Vec<u8>) -> Result<Option<Opened>, Error> {
        let groups = &self.shared.groups;
        if self.pool.stopped() {
            return Ok(None);
        }
        if let Some(free) = self.put_off.iter().position(|one| one.place.is_some_and(|place| groups.enter_free(place)))
        {
            return Ok(Some(self.put_off.swap_remove(free)));
        }
        while let Some(mut top) = self.pending.pop() {
            if top.names.take(name).is_none() {
                continue;
            }
            let child = CStr::from_bytes_with_nul(name).unwrap_or_default();
            let opened = self.open_child(&mut top, child)?;
            if !top.names.is_empty() {
                self.pending.push(top);
            }
            let Some(opened) = opened else { continue };
            match opened.place {
                Some(place) if !groups.enter_free(place) => {
                    if self.put_off.len() < self.put_off_limit {
                        self.put_off.push(opened);
                        continue;
                    }
                    groups.enter(place);
                }
                _ => {}
            }
            return Ok(Some(opened));
        }
        let last = self.put_off.pop();
        if let Some(place) = last.as_ref().and_then(|last| last.place) {
            groups.enter(place);
        }
        Ok(last)
    }

    /// Opens a directory and its copy. `None` when it is gone, and its copy with it.
    fn open_child(&self, parent: &mut Pending, name: &CStr) -> Result<Option<Opened>, Error> {
        if name.is_empty() {
            let pair = self.open_pair(&parent.node)?;
            let stat = rustix::fs::fstat(&pair.src).map_err(|e| self.src_error("stat", Path::new(""), e))?;
            return Ok(Some(Opened { node: Arc::clone(&parent.node), pair, stat, place: None }));
        }
        if parent.pair.is_none() {
            parent.pair = Some(self.open_pair(&parent.node)?);
        }
        let Some(pair) = &parent.pair else { return Ok(None) };
        let src = match open_source(pair.src.as_fd(), name, DIRECTORY) {
            Ok(src) => src,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                self.directory_gone(&parent.node, pair, name)?;
                self.fill.notes.changed(parent.node.path_of(name));
                return Ok(None);
            }
            Err(errno) if self.may_skip(errno, || parent.node.path_of(name)) => {
                self.directory_gone(&parent.node, pair, name)?;
                return Ok(None);
            }
            Err(errno) => return Err(self.src_error("open directory", &parent.node.path_of(name), errno)),
        };
        let stat = rustix::fs::fstat(&src).map_err(|e| self.src_error("stat", &parent.node.path_of(name), e))?;
        let dst = crate::sys::open_at(&pair.dst, name, DIRECTORY, Mode::empty())
            .map_err(|e| self.dst_error("open directory", &parent.node.path_of(name), e))?;
        let groups = &self.shared.groups;
        let place = match groups.matter() {
            true => rustix::fs::fstat(&dst).ok().and_then(|copy| groups.place(copy.st_ino)),
            false => None,
        };
        Ok(Some(Opened { node: Node::child(&parent.node, name), pair: Pair { src, dst }, stat, place }))
    }

    /// A directory vanished, became something else, or cannot be read, after its copy was made: the copy goes too.
    fn directory_gone(&self, parent: &Arc<Node>, pair: &Pair, name: &CStr) -> Result<(), Error> {
        let path = parent.path_of(name);
        let dst = &pair.dst;
        let sealed = parent.sealed.get();
        let removed = sealed
            .map_or(Ok(()), |_| rustix::fs::fchmod(dst, Mode::RWXU))
            .and_then(|()| rustix::fs::unlinkat(dst, name, AtFlags::REMOVEDIR));
        removed.map_err(|errno| self.dst_error("remove directory", &path, errno))?;
        if let Some((times, mode)) = sealed {
            rustix::fs::fchmod(dst, *mode)
                .and_then(|()| rustix::fs::futimens(dst, times))
                .map_err(|errno| self.dst_error("set the times of", &parent.path(), errno))?;
        }
        Ok(())
    }

    /// Gives half of the directories nearest to the root to a worker that has none.
    pub(super) fn share(&mut self) -> bool {
        let alone = self.pending.len() == 1;
        let Some(lowest) = self.pending.first_mut() else { return false };
        // Whoever gives away all that he has only waits to get it back, and each hand-over walks from the root again: a
        // chain of 2,000 directories took a hundred times as long.
        if alone && !lowest.names.are_several() {
            return false;
        }
        let names = lowest.names.split();
        let parent = Arc::clone(&lowest.node);
        if lowest.names.is_empty() {
            self.pending.remove(0);
        }
        self.pool.give(Task::Directories { parent, names });
        true
    }

    /// Closes the directories nearest to the root, which will be needed last.
    pub(super) fn stay_within_limit(&mut self) {
        let open = self.pending.iter().filter(|pending| pending.pair.is_some()).count();
        let mut beyond = open.saturating_sub(self.open_limit);
        for pending in &mut self.pending {
            if beyond == 0 {
                break;
            }
            beyond -= usize::from(pending.pair.take().is_some());
        }
    }
}
