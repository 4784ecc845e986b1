//! A worker's order of directories: the next one, those that wait, and those given away.

use std::ffi::CStr;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use super::worker::{DirectoryToFill, FillWorker, NamedSubdirectories, Pair, Task};
use crate::error::Error;
use crate::tree::location::DIRECTORY;
use crate::tree::node::{Node, open_source};
use crate::vocabulary::operation::Operation;

impl FillWorker<'_> {
    pub(super) fn descend(&mut self) -> Result<(), Error> {
        while let Some(opened) = self.next_directory()? {
            self.directory(opened)?;
            self.pending.stay_within_limit();
        }
        Ok(())
    }

    /// Opens the deepest directory without a conflict; one with a conflict if there is no other or too many wait.
    fn next_directory(&mut self) -> Result<Option<DirectoryToFill>, Error> {
        let groups = &self.shared.groups;
        if self.pool.stopped() {
            return Ok(None);
        }
        if let Some(free) = self.put_off.iter().position(|one| one.group.is_some_and(|group| groups.enter_free(group)))
        {
            return Ok(Some(self.put_off.swap_remove(free)));
        }
        while let Some(mut top) = self.pending.pop() {
            let Some((_, child)) = top.names.pop_front() else { continue };
            let opened = self.open_child(&mut top, &child)?;
            self.pending.push(top);
            let Some(opened) = opened else { continue };
            match opened.group {
                Some(group) if !groups.enter_free(group) => {
                    if self.put_off.len() < self.put_off_limit {
                        self.put_off.push(opened);
                        continue;
                    }
                    groups.enter(group);
                }
                _ => {}
            }
            return Ok(Some(opened));
        }
        let last = self.put_off.pop();
        if let Some(group) = last.as_ref().and_then(|last| last.group) {
            groups.enter(group);
        }
        Ok(last)
    }

    /// Opens a directory and its copy. Returns `None` if it is gone, and its copy with it.
    fn open_child(&self, parent: &mut NamedSubdirectories, name: &CStr) -> Result<Option<DirectoryToFill>, Error> {
        if name.is_empty() {
            let pair = self.open_pair(&parent.node)?;
            let stat = rustix::fs::fstat(&pair.src).map_err(|e| self.src_error(Operation::Stat, Path::new(""), e))?;
            return Ok(Some(DirectoryToFill { node: Arc::clone(&parent.node), pair, stat, group: None }));
        }
        let (parent, pair) = parent.opened(|node| self.open_pair(node))?;
        let path = || parent.path_of(name);
        let src = match open_source(pair.src.as_fd(), name, DIRECTORY) {
            Ok(src) => src,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                self.directory_gone(parent, pair, name)?;
                self.vanished(path())?;
                return Ok(None);
            }
            Err(errno) if self.may_skip(errno, path) => {
                self.directory_gone(parent, pair, name)?;
                return Ok(None);
            }
            Err(errno) => return Err(self.src_error(Operation::OpenDirectory, &path(), errno)),
        };
        let stat = rustix::fs::fstat(&src).map_err(|e| self.src_error(Operation::Stat, &path(), e))?;
        let dst = crate::sys::open_at(&pair.dst, name, DIRECTORY)
            .map_err(|e| self.dst_error(Operation::OpenDirectory, &path(), e))?;
        let groups = &self.shared.groups;
        let group = match groups.matter() {
            true => rustix::fs::fstat(&dst).ok().and_then(|copy| groups.group(copy.st_ino)),
            false => None,
        };
        Ok(Some(DirectoryToFill { node: Node::child(parent, name), pair: Pair { src, dst }, stat, group }))
    }

    /// Removes the copy of a directory that vanished, became something else, or turned out unreadable.
    fn directory_gone(&self, parent: &Arc<Node>, pair: &Pair, name: &CStr) -> Result<(), Error> {
        let path = parent.path_of(name);
        let dst = &pair.dst;
        let sealed = parent.sealed.get();
        let removed = sealed
            .map_or(Ok(()), |_| rustix::fs::fchmod(dst, Mode::RWXU))
            .and_then(|()| rustix::fs::unlinkat(dst, name, AtFlags::REMOVEDIR));
        removed.map_err(|errno| self.dst_error(Operation::RemoveDirectory, &path, errno))?;
        if let Some((times, mode)) = sealed {
            rustix::fs::fchmod(dst, *mode)
                .and_then(|()| rustix::fs::futimens(dst, times))
                .map_err(|errno| self.dst_error(Operation::SetTimes, &parent.path(), errno))?;
        }
        Ok(())
    }

    pub(super) fn share(&mut self) -> bool {
        let Some(part) = self.pending.part() else { return false };
        self.pool.give(Task::Directories { parent: part.node, names: part.names });
        true
    }
}
