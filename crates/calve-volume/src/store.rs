//! The storage of volumes: `volumes/NAME` has the image, its record, and its default mount point.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, Metadata};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use calve_core::Durability;
use calve_core::internal::{if_there, is_own, lock_file, replace_record, sweep_records};
use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fs::{CWD, FallocateFlags, FlockOperation, OFlags, statvfs};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error::{Error, IoContext as _, Result};
use crate::mounted::{Mount, identity, loops_of, mounts, unused};
use crate::problem::Problem;
use crate::programs::run_to_end;
use crate::remedy::Program;
use crate::superblock::{self, Superblock};

/// The kernel resizes no btrfs to less (fs/btrfs/ioctl.c, btrfs_ioctl_resize). mkfs.btrfs needs 109 MiB.
const LEAST_BYTES: u64 = 256 << 20;
const DEFAULT_BYTES: u64 = 20 << 30;
/// File systems that write changed blocks to new places, even those of a preallocated file: btrfs, ZFS, bcachefs.
const COPYING_ON_WRITE: [i128; 3] = [0x9123_683E, 0x2FC1_2FC1, 0xCA45_1A4E];
const IMAGE: &str = "image";
const RECORD: &str = "volume.json";
const TREE: &str = "tree";
/// Names of half-made and half-removed volumes. No volume's name begins with a dot.
const NEW: &str = ".new";
const REMOVED: &str = ".removed";

#[derive(Debug)]
pub struct Volumes {
    directory: PathBuf,
}

#[derive(Debug, Clone)]
pub struct Volume {
    pub name: String,
    pub image: PathBuf,
    pub uuid: String,
    pub mount_point: PathBuf,
    pub(crate) record: Record,
}

#[derive(Debug, Clone, Default)]
pub struct NewVolume {
    /// By default 20 GiB, or a quarter of the free space if that is less.
    pub bytes: Option<u64>,
    /// The absolute path of an empty directory to mount it on; by default one beside the image.
    pub at: Option<PathBuf>,
    /// It takes up only the space of its contents, and gives back that of deleted files. If the host fills up, the
    /// kernel makes it read-only. Otherwise it takes up all of its size at once, and can be written to on a full host.
    pub is_sparse: bool,
}

#[derive(Debug)]
pub struct VolumeState {
    pub volume: Volume,
    pub devices: Vec<PathBuf>,
    /// It is mounted where it should be.
    pub is_attached: bool,
    /// The image's size; 0 if it is missing.
    pub bytes: u64,
    pub allocated_bytes: u64,
    pub host_free_bytes: u64,
}

impl VolumeState {
    /// Returns the bytes that the volume could still write on the host.
    pub fn demand_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.allocated_bytes)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    uuid: String,
    /// [`TREE`], which is moved and copied with the volume, or an absolute path.
    mount_point: PathBuf,
    /// The user and group who get the top directory.
    pub(crate) owner: (u32, u32),
    pub(crate) mode: u32,
    pub(crate) is_handed_over: bool,
    /// The host reserves all of its blocks.
    #[serde(default)]
    pub(crate) is_preallocated: bool,
}

impl Volumes {
    /// Opens `volumes` in Calve's home, which need not exist.
    pub fn at(home: &Path) -> Self {
        Self { directory: home.join("volumes") }
    }

    /// Waits until no other command changes volumes, and clears away leftovers of a killed one. The lock is held by the
    /// descriptor and by every program that gets it.
    pub(crate) fn lock(&self) -> Result<OwnedFd> {
        let home = self.directory.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(home).io("create", home)?;
        make_directory(&self.directory)?;
        self.check_own()?;
        let path = self.directory.join(".lock");
        let lock = lock_file(CWD, &*path, OFlags::RDWR | OFlags::CREATE, FlockOperation::LockExclusive);
        let lock = lock.and_then(|lock| lock.ok_or(Errno::WOULDBLOCK)).io("lock", &path)?;
        for name in [NEW, REMOVED] {
            self.clear_away(name)?;
        }
        Ok(lock)
    }

    /// Fails if another user may have made the directory, whose records name images that root mounts. Root's must be in
    /// root's home, too: the owner of the home could exchange the directory.
    fn check_own(&self) -> Result<()> {
        let home = self.directory.parent().filter(|_| rustix::process::geteuid().is_root());
        for directory in [home, Some(&*self.directory)].into_iter().flatten() {
            if let Some(found) = if_there(fs::metadata(directory)).io("look at", directory)? {
                own(directory, &found)?;
            }
        }
        Ok(())
    }

    fn clear_away(&self, name: &str) -> Result<()> {
        let directory = self.directory.join(name);
        sweep(&directory);
        for file in [IMAGE, RECORD] {
            let file = directory.join(file);
            if_there(fs::remove_file(&file)).io("delete", &file)?;
        }
        for directory in [&directory.join(TREE), &directory] {
            if_there(fs::remove_dir(directory)).io("delete", directory)?;
        }
        Ok(())
    }

    /// Makes a volume, without mounting it. It gets its name when it is complete.
    pub fn create(&self, name: &str, new: &NewVolume) -> Result<Volume> {
        let place = self.directory_of(name)?;
        let mkfs = Program::Mkfs.find()?;
        let lock = self.lock()?;
        if existing(&place)?.is_some() {
            return Err(Error::Taken(name.into()));
        }
        let free = free_bytes(&self.directory)?;
        let bytes = new.bytes.unwrap_or((free / 4).clamp(LEAST_BYTES, DEFAULT_BYTES)) & !0xfff;
        if bytes < LEAST_BYTES {
            return Err(Error::TooSmall { bytes, least: LEAST_BYTES });
        }
        self.demand(bytes)?;
        let owner = match &new.at {
            Some(at) => mount_point(at)?,
            None => fs::metadata(&self.directory).io("look at", &self.directory)?,
        };
        let mode = if new.at.is_some() { owner.mode() & 0o7777 } else { 0o700 };
        let record = Record {
            uuid: new_uuid()?,
            mount_point: new.at.clone().unwrap_or_else(|| TREE.into()),
            owner: (owner.uid(), owner.gid()),
            mode,
            is_handed_over: false,
            is_preallocated: !new.is_sparse,
        };
        let staged = self.directory.join(NEW);
        let made = self.fill(&staged, &mkfs, bytes, &record, &lock).and_then(|()| {
            // An empty directory would be replaced, which loses nothing. This process holds the lock.
            #[expect(clippy::disallowed_methods, reason = "a directory with entries is never replaced by a directory")]
            std::fs::rename(&staged, &place).io("rename to", &place)?;
            sync(&self.directory)
        });
        if let Err(error) = made {
            // The next command tries again, and this error matters more.
            let _ = self.clear_away(NEW);
            return Err(error);
        }
        self.find(name)
    }

    fn fill(&self, staged: &Path, mkfs: &Path, bytes: u64, record: &Record, lock: &OwnedFd) -> Result<()> {
        make_directory(staged)?;
        make_directory(&staged.join(TREE))?;
        let image = staged.join(IMAGE);
        let file = own_file().write(true).create_new(true).open(&image).io("create", &image)?;
        self.set_size(file.file(), &image, record, bytes)?;
        let mut command = Command::new(mkfs);
        command
            .args(["-q", "--nodiscard", "-U", &record.uuid])
            .arg(&image)
            .stdin(clone(lock, &image)?)
            .stdout(Stdio::null());
        run_to_end(&mut command).map_err(|(_, said)| match said.contains("check mount status") {
            true => Error::HiddenImage,
            false => Error::Failed { command: "mkfs.btrfs".into(), said },
        })?;
        file.sync_all().io("sync", &image)?;
        write_record(staged, record)
    }

    /// Finds a volume by its name, without a look at its image.
    pub fn find(&self, name: &str) -> Result<Volume> {
        let place = self.directory_of(name)?;
        self.check_own()?;
        own(&place, &existing(&place)?.ok_or_else(|| Error::NotFound(name.into()))?)?;
        let path = place.join(RECORD);
        let damaged = || Error::Unusable { name: name.into(), problem: Problem::RecordDamaged };
        let text = read_record(&path)?.ok_or_else(damaged)?;
        let record: Record = serde_json::from_slice(&text).map_err(|_| damaged())?;
        if !record.mount_point.is_absolute() && record.mount_point != Path::new(TREE) {
            return Err(damaged());
        }
        // The kernel names files without links.
        let real = fs::canonicalize(&place).io("resolve", &place)?;
        Ok(Volume {
            name: name.into(),
            image: real.join(IMAGE),
            uuid: record.uuid.clone(),
            mount_point: match record.mount_point.is_absolute() {
                true => record.mount_point.clone(),
                false => beside(&real.join(IMAGE), &place)?,
            },
            record,
        })
    }

    pub fn names(&self) -> Result<Vec<String>> {
        let entries = entries(&self.directory)?;
        let names = entries.iter().filter_map(|name| name.to_str().filter(|name| is_name(name)));
        let mut names: Vec<_> = names.map(str::to_owned).collect();
        names.sort();
        Ok(names)
    }

    pub fn look(&self, volume: Volume) -> Result<VolumeState> {
        let devices = loops_of(&volume.image)?;
        let is_attached = volume.mount()?.is_some_and(|mount| devices.contains(&mount.device));
        let image = fs::symlink_metadata(&volume.image).ok().filter(Metadata::is_file);
        Ok(VolumeState {
            devices,
            is_attached,
            bytes: image.as_ref().map_or(0, Metadata::len),
            allocated_bytes: image.map_or(0, |image| image.blocks() * 512),
            host_free_bytes: free_bytes(&self.directory)?,
            volume,
        })
    }

    /// Enlarges the image. [`attach`](Self::attach) lets the file system know.
    pub fn grow(&self, name: &str, bytes: u64) -> Result<()> {
        let _lock = self.lock()?;
        let volume = self.find(name)?;
        let image = volume.open(true)?;
        let (now, bytes) = (image.metadata.len(), bytes & !0xfff);
        if bytes <= now {
            // Again is no mistake: root may have to run the rest.
            return if bytes == now { Ok(()) } else { Err(Error::NotLarger { now, wanted: bytes }) };
        }
        self.demand(bytes.saturating_sub(image.metadata.blocks() * 512))?;
        self.set_size(&image.file, &volume.image, &volume.record, bytes).inspect_err(|_| {
            // If the disk filled up meanwhile, the image has taken all the space that was left.
            let _ = image.file.set_len(now);
        })
    }

    /// Takes back from the host the blocks that a preallocated image has lost by a trim.
    pub(crate) fn preallocate_again(&self, volume: &Volume) -> Result<()> {
        let image = volume.open(true)?;
        self.set_size(&image.file, &volume.image, &volume.record, image.metadata.len())
    }

    fn set_size(&self, file: &File, image: &Path, record: &Record, bytes: u64) -> Result<()> {
        if !record.is_preallocated {
            return file.set_len(bytes).io("set the size of", image);
        }
        let host = rustix::fs::fstatfs(file).io("set the size of", image)?;
        if COPYING_ON_WRITE.contains(&(i128::from(host.f_type) & 0xffff_ffff)) {
            return Err(Error::NoPreallocation(self.directory.clone()));
        }
        match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes) {
            Err(Errno::NOSPC) => {
                let taken = file.metadata().map_or(0, |metadata| metadata.blocks() * 512);
                let demand = bytes.saturating_sub(taken);
                Err(Error::HostFull { path: self.directory.clone(), free: free_bytes(&self.directory)?, demand })
            }
            Err(Errno::OPNOTSUPP) => Err(Error::NoPreallocation(self.directory.clone())),
            done => done.io("set the size of", image),
        }
    }

    /// Deletes a volume with its contents. Returns the space that its image took up.
    pub fn remove(&self, name: &str) -> Result<u64> {
        let _lock = self.lock()?;
        let place = self.directory_of(name)?;
        if existing(&place)?.is_none() {
            return Err(Error::NotFound(name.into()));
        }
        let real = fs::canonicalize(&place).io("resolve", &place)?;
        let image = real.join(IMAGE);
        let devices = loops_of(&image)?;
        let is_mounted = mounts()?.iter().any(|mount| mount.at.starts_with(&real) || devices.contains(&mount.device));
        if is_mounted || !unused(name, &image)?.is_empty() {
            return Err(Error::Attached(name.into()));
        }
        sweep(&place);
        for (directory, known) in [(&place, &[IMAGE, RECORD, TREE][..]), (&place.join(TREE), &[])] {
            only_holds(directory, known)?;
        }
        let image = fs::symlink_metadata(place.join(IMAGE)).ok();
        let removed = self.directory.join(REMOVED);
        #[expect(clippy::disallowed_methods, reason = "whoever has the lock has cleared that name away")]
        std::fs::rename(&place, &removed).io("rename", &place)?;
        sync(&self.directory)?;
        self.clear_away(REMOVED)?;
        Ok(image.filter(Metadata::is_file).map_or(0, |image| image.blocks() * 512))
    }

    pub(crate) fn hand_over(&self, volume: &Volume) -> Result<()> {
        let record = Record { is_handed_over: true, ..volume.record.clone() };
        write_record(&self.directory_of(&volume.name)?, &record)
    }

    fn directory_of(&self, name: &str) -> Result<PathBuf> {
        if is_name(name) { Ok(self.directory.join(name)) } else { Err(Error::BadName(name.into())) }
    }

    /// Keeps a volume from filling the host's file system: a btrfs that gets no more room from below becomes read-only.
    fn demand(&self, demand: u64) -> Result<()> {
        let free = free_bytes(&self.directory)?;
        if demand > free / 10 * 9 {
            return Err(Error::HostFull { path: self.directory.clone(), free, demand });
        }
        Ok(())
    }
}

impl Volume {
    /// Returns the mount options. `nosuid` and `nodev`: the image's owner can write anything into it. `discard` returns
    /// deleted blocks to the host at each commit; `discard=async` would wait two minutes for a partly used block group
    /// (BTRFS_DISCARD_DELAY, fs/btrfs/discard.c). A preallocated volume keeps its blocks: the host might lack them.
    pub fn options(&self) -> [&'static str; 5] {
        let discards = if self.record.is_preallocated { "nodiscard" } else { "discard" };
        ["nosuid", "nodev", "noatime", discards, "user_subvol_rm_allowed"]
    }

    /// Opens the image, if it was made for this volume.
    pub(crate) fn open(&self, writable: bool) -> Result<OpenImage> {
        let unusable = |problem| Error::Unusable { name: self.name.clone(), problem };
        let file = match own_file().read(true).write(writable).open(&self.image) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(unusable(Problem::ImageMissing)),
            Err(error) if self.image.is_symlink() || error.kind() == ErrorKind::IsADirectory => {
                return Err(unusable(Problem::ImageNotAFile));
            }
            file => File::from(file.io("open", &self.image)?),
        };
        let metadata = file.metadata().io("look at", &self.image)?;
        if !metadata.is_file() {
            return Err(unusable(Problem::ImageNotAFile));
        }
        own(&self.image, &metadata)?;
        let read = superblock::read(&file).io("read", &self.image)?;
        match read {
            None => Err(unusable(Problem::NoFileSystem)),
            Some(found) if found.uuid != self.uuid => Err(unusable(Problem::AnotherFileSystem)),
            Some(Superblock { total_bytes, .. }) if total_bytes > metadata.len() => {
                Err(unusable(Problem::Truncated { bytes: metadata.len(), needed: total_bytes }))
            }
            Some(Superblock { total_bytes, .. }) => Ok(OpenImage { file, metadata, total_bytes }),
        }
    }

    pub(crate) fn mount(&self) -> Result<Option<Mount>> {
        let at = fs::canonicalize(&self.mount_point).unwrap_or_else(|_| self.mount_point.clone());
        Ok(mounts()?.into_iter().rev().find(|mount| mount.at == at))
    }

    /// Returns the last mount below its mount point.
    pub(crate) fn mount_below(&self) -> Result<Option<PathBuf>> {
        let at = fs::canonicalize(&self.mount_point).unwrap_or_else(|_| self.mount_point.clone());
        let is_below = |mount: &Mount| mount.at != at && mount.at.starts_with(&at);
        Ok(mounts()?.into_iter().rev().find(is_below).map(|mount| mount.at))
    }

    /// Returns whether its top directory belongs, or once belonged, to its owner.
    pub(crate) fn is_handed_over(&self) -> Result<bool> {
        if self.record.is_handed_over || self.mount()?.is_none() {
            return Ok(self.record.is_handed_over);
        }
        let top = fs::metadata(&self.mount_point).io("look at", &self.mount_point)?;
        Ok((top.uid(), top.gid()) == self.record.owner && top.mode() & 0o7777 == self.record.mode)
    }
}

/// A volume's image, checked to be the one made for it.
pub(crate) struct OpenImage {
    file: File,
    metadata: Metadata,
    /// The size of its file system.
    total_bytes: u64,
}

impl OpenImage {
    /// Returns whether a preallocated image has lost blocks by a trim, which `nodiscard` does not forbid.
    pub(crate) fn is_trimmed(&self, volume: &Volume) -> bool {
        volume.record.is_preallocated && self.metadata.blocks() * 512 < self.metadata.len()
    }

    pub(crate) fn is_to_be_resized(&self) -> bool {
        self.total_bytes < self.metadata.len()
    }
}

/// Returns the mount point beside an image. Another process may have mounted it by another path to that directory.
fn beside(image: &Path, place: &Path) -> Result<PathBuf> {
    let wanted = identity(image);
    let is_beside = |at: &PathBuf| at.ends_with(TREE) && identity(&at.with_file_name(IMAGE)) == wanted;
    let found = mounts()?.into_iter().map(|mount| mount.at).find(|at| wanted.is_some() && is_beside(at));
    Ok(found.unwrap_or_else(|| place.join(TREE)))
}

fn is_name(name: &str) -> bool {
    calve_core::internal::is_record_name(name, 64)
}

/// Returns the metadata of an empty directory that can be mounted on.
pub(crate) fn mount_point(at: &Path) -> Result<Metadata> {
    let refused = |why| Err(Error::MountPoint { path: at.into(), why });
    let Some(metadata) = existing(at)? else { return refused("there is no such directory") };
    if !metadata.is_dir() {
        return refused("it is not a directory");
    }
    let real = fs::canonicalize(at).io("resolve", at)?;
    if mounts()?.iter().any(|mount| mount.at == real) {
        return refused("something is mounted there");
    }
    if entries(at)?.is_empty() { Ok(metadata) } else { refused("it is not empty") }
}

fn only_holds(directory: &Path, known: &[&str]) -> Result<()> {
    match entries(directory)?.iter().find(|name| !known.iter().any(|known| name.as_os_str() == *known)) {
        Some(foreign) => Err(Error::Foreign(directory.join(foreign))),
        None => Ok(()),
    }
}

/// Lists a directory; nothing if it is missing.
fn entries(directory: &Path) -> Result<Vec<OsString>> {
    let entries = if_there(fs::read_dir(directory)).io("list", directory)?.into_iter().flatten();
    entries.map(|entry| Ok(entry.io("list", directory)?.file_name())).collect()
}

fn existing(path: &Path) -> Result<Option<Metadata>> {
    if_there(fs::symlink_metadata(path)).io("look at", path)
}

/// Lets other users search the directory, but not list it: another user's mkfs.btrfs has to find out whether its own
/// image is one of those that are mounted.
fn make_directory(directory: &Path) -> Result<()> {
    match DirBuilder::new().mode(0o711).create(directory) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made.io("create", directory),
    }
}

fn read_record(path: &Path) -> Result<Option<Vec<u8>>> {
    let file = if_there(own_file().read(true).open(path));
    let Some(file) = file.io("read", path)? else { return Ok(None) };
    own(path, &file.metadata().io("look at", path)?)?;
    let mut text = Vec::new();
    file.take(1 << 16).read_to_end(&mut text).io("read", path)?;
    Ok(Some(text))
}

/// Fails if another user may have made or changed the entry.
fn own(path: &Path, found: &Metadata) -> Result<()> {
    if is_own(found.uid(), found.mode()) { Ok(()) } else { Err(Error::NotOwn(path.into())) }
}

fn write_record(directory: &Path, record: &Record) -> Result<()> {
    let path = directory.join(RECORD);
    let text = serde_json::to_vec(record).io("write", &path)?;
    let opened = fs::File::open(directory).io("open", directory)?;
    sweep_records(opened.file());
    replace_record(opened.file(), RECORD, Durability::Synced, |file| file.write_all(&text)).io("write", &path)
}

fn sweep(directory: &Path) {
    let _ = fs::File::open(directory).map(|directory| sweep_records(directory.file()));
}

fn sync(directory: &Path) -> Result<()> {
    let synced = fs::File::open(directory).and_then(|directory| directory.sync_all());
    synced.io("sync", directory)
}

pub(crate) fn clone(lock: &OwnedFd, path: &Path) -> Result<OwnedFd> {
    lock.try_clone().io("share the lock for", path)
}

fn free_bytes(directory: &Path) -> Result<u64> {
    let found = statvfs(directory).io("look at the file system of", directory)?;
    Ok(found.f_bavail * found.f_frsize)
}

fn new_uuid() -> Result<String> {
    let path = Path::new("/proc/sys/kernel/random/uuid");
    let uuid = fs::read_to_string(path).io("read", path)?;
    Ok(uuid.trim().to_owned())
}

/// Returns options that follow no link, and let only this user read a new file.
fn own_file() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.mode(0o600).custom_flags((OFlags::NOFOLLOW | OFlags::CLOEXEC).bits().cast_signed());
    options
}
