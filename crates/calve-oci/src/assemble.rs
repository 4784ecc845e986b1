//! Makes a tree from a manifest: directories, then files, links last, so that nothing opened on the way can be a link.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use calve_core::internal::{CheckedFiles, NewEntries, PortableEntry, PortableKind, PortableTemplate, split_name};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawMode, Timespec, Timestamps, UTIME_OMIT, XattrFlags};
use rustix::io::Errno;

use crate::error::Error;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const FILE: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);
const READ: OFlags = FILE.union(OFlags::RDONLY).union(OFlags::NONBLOCK);
const CREATE: OFlags = FILE.union(OFlags::WRONLY).union(OFlags::CREATE).union(OFlags::EXCL);
const BUFFER_BYTES: usize = 64 << 10;
/// Runs of zeros become holes in pieces of this size.
const HOLE_BYTES: usize = 4 << 10;

/// Directories kept open at a time.
const OPEN: usize = 32;

/// The directories of a tree. The last one used stays open, with those above it.
pub(crate) struct Parents {
    root: OwnedFd,
    root_path: PathBuf,
    /// With their paths, each below the one before.
    open: Vec<(Vec<u8>, OwnedFd)>,
    buffer: Vec<u8>,
}

impl Parents {
    pub(crate) fn open(root: &Path) -> Result<Self, Error> {
        let opened = rustix::fs::openat(CWD, root, DIRECTORY, Mode::empty());
        let opened = opened.map_err(|errno| Error::io("open", root, errno))?;
        Ok(Self { root: opened, root_path: root.into(), open: Vec::new(), buffer: Vec::with_capacity(BUFFER_BYTES) })
    }

    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    pub(crate) fn open_file(&mut self, path: &[u8]) -> Result<File, Error> {
        self.open_with("open", path, READ, Mode::empty())
    }

    /// Opens an entry's parent, and returns it with the entry's name.
    fn at<'p>(&mut self, path: &'p [u8]) -> Result<(BorrowedFd<'_>, &'p OsStr), Errno> {
        let (parent, name) = split_name(path);
        let name = OsStr::from_bytes(if name.is_empty() { b"." } else { name });
        // Entries come in the order of their paths, so the next directory is seldom far.
        while self.open.last().is_some_and(|(known, _)| !path_of(parent).starts_with(path_of(known))) {
            self.open.pop();
        }
        loop {
            let known = self.open.last().map_or(0, |(known, _)| known.len());
            let rest = parent[known..].strip_prefix(b"/").unwrap_or(&parent[known..]);
            if rest.is_empty() {
                break;
            }
            let part = rest.split(|&byte| byte == b'/').next().unwrap_or_default();
            let opened = rustix::fs::openat(self.last(), OsStr::from_bytes(part), DIRECTORY, Mode::empty())?;
            self.open.truncate(OPEN - 1);
            self.open.push((parent[..parent.len() - rest.len() + part.len()].to_vec(), opened));
        }
        Ok((self.last(), name))
    }

    fn last(&self) -> BorrowedFd<'_> {
        self.open.last().map_or(self.root.as_fd(), |(_, opened)| opened.as_fd())
    }

    fn failed(&self, operation: &'static str, path: &[u8], source: impl Into<io::Error>) -> Error {
        Error::io(operation, self.root_path.join(path_of(path)), source)
    }

    /// Makes all directories. Until `finish`, only this user can enter them.
    pub(crate) fn make_directories(&mut self, template: &PortableTemplate) -> Result<(), Error> {
        for entry in template.entries.iter().skip(1).filter(|entry| entry.kind == PortableKind::Directory) {
            self.make_directory(&entry.path)?;
        }
        Ok(())
    }

    /// Writes all of `contents`; the caller checks their size. `number` is the entry's in the manifest.
    pub(crate) fn make_file(
        &mut self,
        (number, entry): (usize, &PortableEntry),
        contents: &mut dyn Read,
        checked: &CheckedFiles,
    ) -> Result<(), Error> {
        // With its final mode most files need no fchmod. Attributes need a file that its owner can write.
        let mode = if entry.xattrs.is_empty() { entry.mode & 0o777 } else { 0o600 };
        let mode = Mode::from_bits_truncate(mode as RawMode);
        let mut file = self.open_with("create", &entry.path, CREATE, mode)?;
        let written = write_with_holes(&mut file, contents, &mut self.buffer);
        let found = written.map_err(|error| self.failed("write", &entry.path, error))?;
        self.set_attributes(entry, &file)?;
        match entry.kind {
            PortableKind::File { hash, .. } if found == hash => {
                checked.add(file.as_fd(), number).map_err(|error| self.failed("look at", &entry.path, error))
            }
            // The comparison at the end reports it.
            _ => Ok(()),
        }
    }

    /// Copies `other` if it has the right contents, sharing its blocks where the file system can.
    pub(crate) fn make_file_of(&mut self, entry: &PortableEntry, mut other: File) -> Result<bool, Error> {
        let PortableKind::File { size, hash } = entry.kind else { return Ok(false) };
        let mut hasher = blake3::Hasher::new();
        if io::copy(&mut other, &mut hasher).is_err() || hasher.finalize() != hash {
            return Ok(false);
        }
        let mut file = self.new_file(&entry.path)?;
        let copied = copy_data(&mut other, &mut file, size);
        copied.map_err(|error| self.failed("write", &entry.path, error))?;
        self.set_attributes(entry, &file)?;
        Ok(true)
    }

    pub(crate) fn new_file(&mut self, path: &[u8]) -> Result<File, Error> {
        self.open_with("create", path, CREATE, Mode::RUSR | Mode::WUSR)
    }

    pub(crate) fn open_for_writing(&mut self, path: &[u8]) -> Result<File, Error> {
        self.open_with("open", path, FILE | OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty())
    }

    fn open_with(&mut self, operation: &'static str, path: &[u8], flags: OFlags, mode: Mode) -> Result<File, Error> {
        let opened = self.at(path).and_then(|(parent, name)| rustix::fs::openat(parent, name, flags, mode));
        Ok(opened.map_err(|errno| self.failed(operation, path, errno))?.into())
    }

    pub(crate) fn make_directory(&mut self, path: &[u8]) -> Result<(), Error> {
        let made = self.at(path).and_then(|(parent, name)| rustix::fs::mkdirat(parent, name, Mode::RWXU));
        made.map_err(|errno| self.failed("create directory", path, errno))
    }

    pub(crate) fn set_mode(&mut self, path: &[u8], mode: u32) -> Result<(), Error> {
        let opened = self.open_with("set the mode of", path, READ, Mode::empty())?;
        let set = rustix::fs::fchmod(opened, Mode::from_bits_truncate(mode as RawMode));
        set.map_err(|errno| self.failed("set the mode of", path, errno))
    }

    fn set_attributes(&self, entry: &PortableEntry, file: &File) -> Result<(), Error> {
        finish(file.as_fd(), entry).map_err(|errno| self.failed("set the attributes of", &entry.path, errno))
    }

    /// Makes the links, then sets the directories' attributes: last ones first, since a mode may close those below it.
    pub(crate) fn finish(&mut self, template: &PortableTemplate) -> Result<(), Error> {
        for entry in &template.entries {
            let made = match &entry.kind {
                PortableKind::Symlink(target) => self.at(&entry.path).and_then(|(parent, name)| {
                    rustix::fs::symlinkat(target, parent, name)?;
                    rustix::fs::utimensat(parent, name, &times(entry), AtFlags::SYMLINK_NOFOLLOW)
                }),
                PortableKind::HardLink(first) => self.make_hard_link(&template.entries[*first].path, &entry.path),
                _ => continue,
            };
            made.map_err(|errno| self.failed("create link", &entry.path, errno))?;
        }
        for entry in template.entries.iter().rev().filter(|entry| entry.kind == PortableKind::Directory) {
            let directory = self.open_with("set the attributes of", &entry.path, DIRECTORY, Mode::empty())?;
            self.set_attributes(entry, &directory)?;
        }
        Ok(())
    }

    fn make_hard_link(&mut self, first: &[u8], path: &[u8]) -> Result<(), Errno> {
        let (parent, name) = self.at(first)?;
        let parent = rustix::io::fcntl_dupfd_cloexec(parent, 0)?;
        let (new_parent, new_name) = self.at(path)?;
        rustix::fs::linkat(&parent, name, new_parent, new_name, AtFlags::empty())
    }
}

/// Sets an entry's attributes: the time last, since the others may change it.
fn finish(entry: BorrowedFd<'_>, wanted: &PortableEntry) -> Result<(), Errno> {
    for (name, value) in &wanted.xattrs {
        rustix::fs::fsetxattr(entry, &**name, value, XattrFlags::empty())?;
    }
    let mode = Mode::from_bits_truncate(wanted.mode as RawMode);
    // fstat costs a tenth of fchmod.
    if Mode::from_raw_mode(rustix::fs::fstat(entry)?.st_mode) != mode {
        rustix::fs::fchmod(entry, mode)?;
    }
    rustix::fs::futimens(entry, &times(wanted))
}

fn times(entry: &PortableEntry) -> Timestamps {
    let last_modification = Timespec { tv_sec: entry.seconds, tv_nsec: entry.nanoseconds.into() };
    Timestamps { last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT }, last_modification }
}

/// Copies all but the holes, sharing blocks where the file system can. Not every file system shows its holes.
fn copy_data(from: &mut File, to: &mut File, size: u64) -> io::Result<()> {
    let mut end = 0;
    loop {
        let start = match rustix::fs::seek(&*from, rustix::fs::SeekFrom::Data(end)) {
            Err(Errno::NXIO) if end < size => return to.set_len(size),
            Err(Errno::NXIO) => return Ok(()),
            Err(_) if end == 0 => {
                from.rewind()?;
                return io::copy(from, to).map(drop);
            }
            start => from.seek(SeekFrom::Start(start?))?,
        };
        end = rustix::fs::seek(&*from, rustix::fs::SeekFrom::Hole(start))?;
        from.seek(SeekFrom::Start(to.seek(SeekFrom::Start(start))?))?;
        io::copy(&mut (&*from).take(end - start), to)?;
    }
}

fn write_with_holes(file: &mut File, mut contents: &mut dyn Read, buffer: &mut Vec<u8>) -> io::Result<blake3::Hash> {
    let is_hole = |piece: &[u8]| piece.iter().all(|&byte| byte == 0);
    let (mut hash, mut size, mut ends_in_hole) = (blake3::Hasher::new(), 0, false);
    loop {
        buffer.clear();
        (&mut contents).take(BUFFER_BYTES as u64).read_to_end(buffer)?;
        if buffer.is_empty() {
            if ends_in_hole {
                file.set_len(size)?;
            }
            return Ok(hash.finalize());
        }
        hash.update(buffer);
        size += buffer.len() as u64;
        let mut rest = &buffer[..];
        while let Some(piece) = rest.chunks(HOLE_BYTES).next() {
            ends_in_hole = is_hole(piece);
            // Neighbouring pieces go together if both are zeros, or neither is.
            let run = rest.chunks(HOLE_BYTES).take_while(|next| is_hole(next) == ends_in_hole);
            let (run, behind) = rest.split_at(run.map(<[u8]>::len).sum());
            match ends_in_hole {
                true => file.seek(SeekFrom::Current(run.len() as i64)).map(drop)?,
                false => file.write_all(run)?,
            }
            rest = behind;
        }
    }
}

pub(crate) fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Counts the room for a template's entries on the file system of `root`, which exists and needs none.
pub(crate) fn room_of(root: BorrowedFd<'_>, template: &PortableTemplate) -> NewEntries {
    let mut entries = NewEntries::in_directory(root);
    for entry in template.entries.iter().skip(1) {
        match &entry.kind {
            PortableKind::Directory => entries.add_directory(),
            PortableKind::File { size, .. } => entries.add_file(*size),
            PortableKind::Symlink(target) => entries.add_symlink(target.count_bytes() as u64),
            PortableKind::HardLink(_) => continue,
        }
        entries.add_blocks(entry.xattrs.iter().map(|(_, value)| value.len() as u64).sum());
    }
    entries
}

/// Fails if the entries have no room, and names the directory `levels` above.
pub(crate) fn check_room(
    (root, path): (BorrowedFd<'_>, &Path),
    levels: usize,
    needed: &NewEntries,
) -> Result<(), Error> {
    Ok(needed.check_room(root, path.ancestors().nth(levels).unwrap_or(path))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_found_in_any_order_and_at_any_depth() {
        let folder = tempfile::tempdir().unwrap();
        let deep = |depth: usize| (0..depth).map(|level| format!("d{level}/")).collect::<String>();
        for depth in 0..100 {
            let directory = folder.path().join(deep(depth));
            fs_err::create_dir_all(&directory).unwrap();
            fs_err::write(directory.join("f"), depth.to_string()).unwrap();
        }
        let mut parents = Parents::open(folder.path()).unwrap();
        for depth in [99, 0, 40, 31, 32, 33, 98, 98, 1, 99, 2] {
            let mut text = String::new();
            parents.open_file(format!("{}f", deep(depth)).as_bytes()).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, depth.to_string());
            assert!(parents.open.len() <= OPEN);
        }
        // Its name begins like that of the one that is open.
        assert!(parents.open_file(b"d0/d1x/f").is_err());
        fs_err::create_dir(folder.path().join("d0x")).unwrap();
        fs_err::write(folder.path().join("d0x/f"), "").unwrap();
        parents.open_file(b"d0/f").unwrap();
        parents.open_file(b"d0x/f").unwrap();
    }
}
