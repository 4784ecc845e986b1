//! Extents of a btrfs and their users (BTRFS_IOC_TREE_SEARCH_V2, which needs CAP_SYS_ADMIN).
//! The item layouts are those of linux/btrfs_tree.h.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use rustix::io::{Errno, Result};
use rustix::ioctl::{Direction, Opcode, Updater, ioctl, opcode};

use crate::sys::{DiskExtent, ExtentUser};

const MAGIC: u8 = 0x94;
const BUFFER_BYTES: usize = 64 * 1024;

/// `struct btrfs_ioctl_search_key`.
#[repr(C)]
#[derive(Default)]
struct SearchKey {
    tree: u64,
    min_object: u64,
    max_object: u64,
    min_offset: u64,
    max_offset: u64,
    min_transaction: u64,
    max_transaction: u64,
    min_kind: u32,
    max_kind: u32,
    items: u32,
    unused: u32,
    unused_more: [u64; 4],
}

/// `struct btrfs_ioctl_search_args_v2` with its buffer.
#[repr(C)]
struct Search {
    key: SearchKey,
    buffer_bytes: u64,
    buffer: [u64; BUFFER_BYTES / 8],
}

const SEARCH_HEADER: usize = 112;
const TREE_SEARCH_V2: Opcode = opcode::from_components(Direction::ReadWrite, MAGIC, 17, SEARCH_HEADER);
const _: () = assert!(size_of::<Search>() == SEARCH_HEADER + BUFFER_BYTES);

const ROOT_TREE: u64 = 1;
const EXTENT_TREE: u64 = 2;
const ROOT_ITEM: u32 = 132;
const EXTENT_ITEM: u32 = 168;
const EXTENT_DATA_REF: u32 = 178;
const SHARED_DATA_REF: u32 = 184;
const OWNER_REF: u32 = 188;
const DATA: u64 = 1;
/// Longest possible extent (BTRFS_MAX_EXTENT_SIZE).
const LONGEST_EXTENT: u64 = 128 << 20;

/// Reads eight bytes at any alignment. Returns zero beyond the item's end.
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..at + 8).and_then(|part| part.try_into().ok());
    u64::from_le_bytes(found.unwrap_or_default())
}

/// Runs one search, passes each item found (object, kind, offset, contents) to `each`, and returns their number.
fn search(directory: BorrowedFd<'_>, search: &mut Search, mut each: impl FnMut(u64, u32, u64, &[u8])) -> Result<usize> {
    search.key.items = u32::MAX;
    search.buffer_bytes = BUFFER_BYTES as u64;
    crate::sys::retry(|| {
        // SAFETY: the opcode takes a pointer to `struct btrfs_ioctl_search_args_v2`, followed by `buf_size` bytes; `Search` is laid
        // out as both together (size checked above), and the kernel writes no more than that.
        unsafe { ioctl(directory, Updater::<TREE_SEARCH_V2, Search>::new(search)) }
    })?;
    let bytes: Vec<u8> = search.buffer.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let mut at = 0;
    for _ in 0..search.key.items {
        const HEADER: usize = 32;
        let Some(header) = bytes.get(at..at + HEADER) else { break };
        // The header is in the machine's own byte order, the contents are little-endian.
        let native = |at: usize| u64::from_ne_bytes(header[at..at + 8].try_into().unwrap_or_default());
        let small = |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().unwrap_or_default());
        let (object, offset, kind, length) = (native(8), native(16), small(24), small(28) as usize);
        let Some(contents) = bytes.get(at + HEADER..at + HEADER + length) else { break };
        each(object, kind, offset, contents);
        at += HEADER + length;
    }
    Ok(search.key.items as usize)
}

fn new_search(tree: u64) -> Box<Search> {
    let key = SearchKey {
        tree,
        max_object: u64::MAX,
        max_offset: u64::MAX,
        max_transaction: u64::MAX,
        max_kind: u32::from(u8::MAX),
        ..SearchKey::default()
    };
    Box::new(Search { key, buffer_bytes: 0, buffer: [0; BUFFER_BYTES / 8] })
}

/// `struct btrfs_ioctl_ino_lookup_args`.
#[repr(C)]
struct RootOf {
    tree: u64,
    object: u64,
    name: [u8; 4080],
}

pub(crate) fn btrfs_subvolume(directory: BorrowedFd<'_>) -> Result<u64> {
    const INO_LOOKUP: Opcode = opcode::read_write::<RootOf>(MAGIC, 18);
    const _: () = assert!(size_of::<RootOf>() == 4096);
    let mut lookup = RootOf { tree: 0, object: 256, name: [0; 4080] };
    // SAFETY: the opcode takes a pointer to `struct btrfs_ioctl_ino_lookup_args`, whose layout `RootOf` has (size checked above);
    // the kernel reads and writes it.
    unsafe { ioctl(directory, Updater::<INO_LOOKUP, RootOf>::new(&mut lookup)) }?;
    Ok(lookup.tree)
}

/// Returns whether a subvolume may share parts of its tree with a snapshot: extent items then do not name all users.
pub(crate) fn btrfs_was_snapshotted(directory: BorrowedFd<'_>, subvolume: u64) -> Result<bool> {
    /// Offset of `last_snapshot` in `struct btrfs_root_item`.
    const LAST_SNAPSHOT: usize = 200;
    let mut query = new_search(ROOT_TREE);
    (query.key.min_object, query.key.max_object) = (subvolume, subvolume);
    (query.key.min_kind, query.key.max_kind) = (ROOT_ITEM, ROOT_ITEM);
    let mut answer = None;
    search(directory, &mut query, |_, kind, _, item| {
        if kind == ROOT_ITEM {
            answer = Some(item.len() < LAST_SNAPSHOT + 8 || u64_at(item, LAST_SNAPSHOT) != 0);
        }
    })?;
    answer.ok_or(Errno::NOENT)
}

/// The data extents of a btrfs in the order of their addresses, from any address on.
pub(crate) struct DiskExtents<'a> {
    directory: BorrowedFd<'a>,
    query: Box<Search>,
    read: VecDeque<DiskExtent>,
    /// The key to read from; `None` before the first call.
    next: Option<(u64, u32, u64)>,
    ended: bool,
}

impl<'a> DiskExtents<'a> {
    pub(crate) fn new(directory: BorrowedFd<'a>) -> Self {
        Self { directory, query: new_search(EXTENT_TREE), read: VecDeque::new(), next: None, ended: false }
    }

    /// Returns the first extent that ends after `address`. Calls must have ascending addresses.
    pub(crate) fn at(&mut self, address: u64) -> Result<Option<&DiskExtent>> {
        let far = self.next.is_none_or(|(object, ..)| address.saturating_sub(object) > 2 * LONGEST_EXTENT);
        if far && !self.ended {
            self.read.clear();
            self.next = Some((address.saturating_sub(LONGEST_EXTENT), 0, 0));
        }
        loop {
            while self.read.front().is_some_and(|extent| extent.end() <= address) {
                // The last one may still get users from the next buffer.
                if self.read.len() == 1 && !self.ended {
                    break;
                }
                self.read.pop_front();
            }
            // An extent with a successor is complete.
            if self.ended || self.read.len() > 1 {
                return Ok(self.read.front());
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> Result<()> {
        let (object, kind, offset) = self.next.unwrap_or_default();
        (self.query.key.min_object, self.query.key.min_kind, self.query.key.min_offset) = (object, kind, offset);
        let read = &mut self.read;
        let mut last = None;
        let found = search(self.directory, &mut self.query, |object, kind, offset, item| {
            last = Some((object, kind, offset));
            match kind {
                EXTENT_ITEM if u64_at(item, 16) & DATA != 0 => read.push_back(parse(object, offset, item)),
                EXTENT_DATA_REF | SHARED_DATA_REF => {
                    let Some(extent) = read.back_mut().filter(|extent| extent.start == object) else { return };
                    if kind == EXTENT_DATA_REF {
                        extent.users.push(ExtentUser { subvolume: u64_at(item, 0), inode: u64_at(item, 8) });
                    } else {
                        extent.all_known = false;
                    }
                }
                _ => {}
            }
        })?;
        match last {
            Some((object, kind, offset)) if found > 0 => {
                self.next = Some(match offset.checked_add(1) {
                    Some(offset) => (object, kind, offset),
                    None => (object, kind + 1, 0),
                });
            }
            _ => self.ended = true,
        }
        Ok(())
    }
}

fn parse(start: u64, bytes: u64, item: &[u8]) -> DiskExtent {
    let mut extent = DiskExtent { start, bytes, users: Vec::new(), all_known: true };
    let mut at = 24;
    while let Some(&kind) = item.get(at) {
        at += match u32::from(kind) {
            EXTENT_DATA_REF => {
                extent.users.push(ExtentUser { subvolume: u64_at(item, at + 1), inode: u64_at(item, at + 9) });
                29
            }
            SHARED_DATA_REF => {
                extent.all_known = false;
                13
            }
            OWNER_REF => 9,
            _ => {
                extent.all_known = false;
                break;
            }
        };
    }
    extent
}

/// Returns how many copies of its metadata a btrfs writes: its profile. BTRFS_IOC_SPACE_INFO needs no privilege.
pub(crate) fn btrfs_metadata_copies(directory: BorrowedFd<'_>) -> Result<u64> {
    const SLOTS: usize = 64;
    #[repr(C)]
    struct Spaces {
        slots: u64,
        total: u64,
        spaces: [[u64; 3]; SLOTS],
    }
    const SPACE_INFO: Opcode = opcode::from_components(Direction::ReadWrite, MAGIC, 20, 16);
    const METADATA: u64 = 1 << 2;
    let mut spaces = Spaces { slots: SLOTS as u64, total: 0, spaces: [[0; 3]; SLOTS] };
    // SAFETY: the opcode takes a pointer to `struct btrfs_ioctl_space_args`, followed by `space_slots` times `struct
    // btrfs_ioctl_space_info` of three 64-bit numbers; `Spaces` is laid out as both together.
    unsafe { ioctl(directory, Updater::<SPACE_INFO, Spaces>::new(&mut spaces)) }?;
    let found = spaces.spaces.iter().take(spaces.total as usize).filter(|space| space[0] & METADATA != 0);
    let copies = found.map(|space| match space[0] {
        flags if flags & (1 << 10) != 0 => 4,
        flags if flags & (1 << 9) != 0 => 3,
        // DUP, RAID1, RAID10.
        flags if flags & (1 << 5 | 1 << 4 | 1 << 6) != 0 => 2,
        _ => 1,
    });
    copies.max().ok_or(Errno::NOENT)
}
