//! Port leases of worktrees: one file of the user's, replaced as a whole under a lock. `choose_ports` chooses the numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use calve_core::Durability;
use calve_core::internal::{ShownPath, replace_record, sweep_records};
use serde::Serialize;

use crate::environment::leasing_worktree::{Identity, LeasingWorktree, Presence};
use crate::error::{Error, Result, failed};
use crate::file_lock::lock_directory;
use crate::paths::{if_there, make_private, path_of, real};
use crate::remedy::Remedy;
use crate::repository::Worktree;

/// Size of the range that a port is leased from, beginning with the number in `.calve.toml`.
const RANGE: u16 = 2000;

const FILE: &str = "leases";

/// The first line. Each lease follows as `PORT.FIRST NAME INODE.MADE PATH` and a NUL: a path may contain anything else.
const HEADING: &[u8] = b"calve ports 1\n";

/// A port of a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename = "PortReceipt")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeasedPort {
    /// The name in .calve.toml.
    pub name: String,
    /// The variable: `WEB_PORT` for the name `web`.
    pub variable: String,
    /// The number.
    #[serde(rename = "port")]
    pub number: u16,
}

impl LeasedPort {
    fn new(name: &str, number: u16) -> LeasedPort {
        LeasedPort { name: name.to_owned(), variable: port_variable(name), number }
    }
}

/// Returns a port's variable. The ending keeps a project from setting variables that programs heed, like `PATH`.
pub(crate) fn port_variable(name: &str) -> String {
    format!("{}_PORT", name.to_ascii_uppercase().replace('-', "_"))
}

#[derive(Debug, Clone)]
pub struct Leases {
    directory: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Lease {
    number: u16,
    /// The number in `.calve.toml` for which it was leased.
    first: u16,
    name: String,
    identity: Identity,
    entry: PathBuf,
}

impl Lease {
    /// Returns whether it belongs to this worktree, and not to a former one at its place.
    fn is_of(&self, worktree: &LeasingWorktree) -> bool {
        self.entry == worktree.entry && self.identity.is(&worktree.identity)
    }

    /// A main worktree's counts only for the number in its configuration.
    fn counts(&self, worktree: &LeasingWorktree, wanted: &BTreeMap<String, u16>) -> bool {
        self.is_of(worktree) && (worktree.is_linked || wanted.get(&self.name) == Some(&self.first))
    }

    fn is_linked(&self) -> bool {
        self.entry.parent().is_some_and(|all| all.ends_with("worktrees"))
    }
}

impl Leases {
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    pub fn held(&self, worktree: &LeasingWorktree, wanted: &BTreeMap<String, u16>) -> Result<Vec<LeasedPort>> {
        Ok(held(&self.read()?, worktree, wanted))
    }

    /// Returns a port for each name: the held one, else in a main worktree the wanted one, else the next free one.
    pub fn lease(&self, worktree: &LeasingWorktree, wanted: &BTreeMap<String, u16>) -> Result<Vec<LeasedPort>> {
        // Readers need no lock: the file is replaced as a whole.
        let ports = self.held(worktree, wanted)?;
        if ports.len() == wanted.len() {
            return Ok(ports);
        }
        self.change(|all| {
            follow_moved(all, Some(worktree));
            choose_ports(all, worktree, wanted, &BTreeSet::new())
        })
    }

    /// Returns ports for a new worktree. A former one's programs may still listen on the ports leased under its name.
    pub fn lease_anew(&self, worktree: &LeasingWorktree, wanted: &BTreeMap<String, u16>) -> Result<Vec<LeasedPort>> {
        self.change(|all| {
            follow_moved(all, None);
            all.retain(|lease| lease.entry != worktree.entry);
            choose_ports(all, worktree, wanted, &BTreeSet::new())
        })
    }

    pub fn renew(
        &self,
        worktree: &LeasingWorktree,
        wanted: &BTreeMap<String, u16>,
    ) -> Result<(Vec<LeasedPort>, Vec<LeasedPort>)> {
        self.change(|all| {
            follow_moved(all, Some(worktree));
            let former = held(all, worktree, wanted);
            all.retain(|lease| !lease.is_of(worktree));
            let ports = choose_ports(all, worktree, wanted, &former.iter().map(|port| port.number).collect())?;
            Ok((former, ports))
        })
    }

    /// Keeps the ports of a main worktree whose directory was replaced by a new one at the same path.
    pub fn carry(&self, former: &LeasingWorktree, root: &Path) -> Result<()> {
        let now = LeasingWorktree::find(root)?;
        if !self.read()?.iter().any(|lease| lease.is_of(former)) {
            return Ok(());
        }
        self.change(|all| {
            all.iter_mut().filter(|lease| lease.is_of(former)).for_each(|lease| lease.identity = now.identity);
            Ok(())
        })
    }

    /// Changes the file under the lock, or not at all if `change` fails.
    fn change<T>(&self, change: impl FnOnce(&mut Vec<Lease>) -> Result<T>) -> Result<T> {
        make_private(&self.directory)?;
        let turn = lock_directory(&self.directory)?;
        sweep_records(&turn);
        let mut all = self.read()?;
        let changed = change(&mut all)?;
        self.write(&turn, &all)?;
        Ok(changed)
    }

    /// Returns the ports of each worktree, including those that its configuration no longer names.
    pub fn of_worktrees<'w>(&self, worktrees: impl IntoIterator<Item = &'w Worktree>) -> Result<Vec<Vec<LeasedPort>>> {
        let all = self.read()?;
        let ports = |Worktree { path, entry, is_main, .. }: &Worktree| {
            let own = match *is_main {
                true => LeasingWorktree::find(path).ok().map(|worktree| worktree.entry),
                false => entry.as_deref().map(real),
            };
            let own = all.iter().filter(|lease| Some(&lease.entry) == own.as_ref());
            let own = own.filter(|lease| !lease.identity.is_replaced_at(&lease.entry));
            let mut own: Vec<_> = own.map(|lease| LeasedPort::new(&lease.name, lease.number)).collect();
            own.sort_unstable_by(|one, other| one.name.cmp(&other.name));
            own
        };
        Ok(worktrees.into_iter().map(ports).collect())
    }

    fn file(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    fn read(&self) -> Result<Vec<Lease>> {
        let file = self.file();
        let Some(bytes) = if_there(fs_err::read(&file))? else { return Ok(Vec::new()) };
        let text = || format!("`{}` is damaged, or of another version", ShownPath(&file));
        parse(&bytes).ok_or_else(|| Error::refused(text(), Remedy::RemoveLeases(file.clone())))
    }

    fn write(&self, directory: &File, all: &[Lease]) -> Result<()> {
        let mut bytes = HEADING.to_vec();
        for Lease { number, first, name, identity: Identity { inode, made }, entry } in all {
            bytes.extend_from_slice(format!("{number}.{first} {name} {inode}.{made} ").as_bytes());
            bytes.extend_from_slice(entry.as_os_str().as_bytes());
            bytes.push(0);
        }
        // Not even after a crash of the machine may another worktree get these ports.
        let written = replace_record(directory, FILE, Durability::Synced, |file| file.write_all(&bytes));
        Ok(written.map_err(|error| failed("failed to write to file", &self.file(), error))?)
    }
}

fn parse(bytes: &[u8]) -> Option<Vec<Lease>> {
    let records = bytes.strip_prefix(HEADING)?.split_inclusive(|&byte| byte == 0);
    records.map(|record| parse_lease(record.strip_suffix(b"\0")?)).collect()
}

fn parse_lease(record: &[u8]) -> Option<Lease> {
    let mut parts = record.splitn(4, |&byte| byte == b' ');
    let mut text = || std::str::from_utf8(parts.next()?).ok();
    let (number, name, identity) = (text()?, text()?.to_owned(), text()?);
    // Earlier versions wrote the port and the inode number alone.
    let (number, first) = number.split_once('.').unwrap_or((number, number));
    let (inode, made) = identity.split_once('.').unwrap_or((identity, "0"));
    let identity = Identity { inode: inode.parse().ok()?, made: made.parse().ok()? };
    let (number, first) = (number.parse().ok()?, first.parse().ok()?);
    Some(Lease { number, first, name, identity, entry: path_of(parts.next()?) })
}

fn held(all: &[Lease], worktree: &LeasingWorktree, wanted: &BTreeMap<String, u16>) -> Vec<LeasedPort> {
    let own = |name: &String| all.iter().find(|lease| lease.name == *name && lease.counts(worktree, wanted));
    wanted.keys().filter_map(own).map(|lease| LeasedPort::new(&lease.name, lease.number)).collect()
}

/// Leases missing ports, but none of the numbers in `except`. Returns all that the worktree has then.
fn choose_ports(
    all: &mut Vec<Lease>,
    worktree: &LeasingWorktree,
    wanted: &BTreeMap<String, u16>,
    except: &BTreeSet<u16>,
) -> Result<Vec<LeasedPort>> {
    // Those that the main worktree's file does not name any more would be in the way of others.
    all.retain(|lease| lease.entry != worktree.entry || lease.counts(worktree, wanted));
    for (name, &first) in wanted {
        if all.iter().any(|lease| lease.name == *name && lease.entry == worktree.entry) {
            continue;
        }
        let range = first..=first.saturating_add(RANGE - 1);
        let free = |all: &[Lease]| {
            let mut taken: BTreeSet<u16> = all.iter().map(|lease| lease.number).chain(except.iter().copied()).collect();
            // The program that listens there is most probably this worktree's own server.
            if !worktree.is_linked && !taken.contains(&first) {
                return Some(first);
            }
            // Reserved for the main worktree.
            taken.extend(wanted.values());
            range.clone().find(|&number| !taken.contains(&number) && !is_in_use(number))
        };
        let mut number = free(all);
        if number.is_none() {
            // Worktrees that are away lose their ports.
            let is_away = |lease: &Lease| lease.identity.presence_at(&lease.entry) == Presence::Away;
            all.retain(|lease| !range.contains(&lease.number) || !is_away(lease));
            number = free(all);
        }
        let number = number.ok_or_else(|| {
            let last = range.end();
            let reason = format!("no port is free for `{name}`: worktrees or programs have all of {first} to {last}");
            Error::refused(reason, Remedy::FreePorts)
        })?;
        let (name, entry) = (name.clone(), worktree.entry.clone());
        all.push(Lease { number, first, name, identity: worktree.identity, entry });
    }
    Ok(held(all, worktree, wanted))
}

/// Lets leases follow moved repositories, and drops those of worktrees that are gone. `moved` may come from anywhere. A
/// main worktree that was replaced in its place is looked for beside it. If an inode number matches by chance, its true
/// owner is away, and loses only ports that would be given to others anyway.
fn follow_moved(all: &mut Vec<Lease>, moved: Option<&LeasingWorktree>) {
    let is_replaced = |lease: &&Lease| !lease.is_linked() && lease.identity.is_replaced_at(&lease.entry);
    let is_away = |lease: &&Lease| lease.identity.presence_at(&lease.entry) == Presence::Away || is_replaced(lease);
    let own = moved.and_then(|worktree| {
        let former = all.iter().find(|lease| lease.identity.is(&worktree.identity) && is_away(lease))?;
        Some((former.entry.clone(), worktree.entry.clone()))
    });
    for (from, to) in own.into_iter().chain(all.iter().filter(is_replaced).filter_map(beside)).collect::<Vec<_>>() {
        for lease in all.iter_mut() {
            let Ok(rest) = lease.entry.strip_prefix(&from) else { continue };
            // Joining with nothing would append a slash.
            let there: PathBuf = to.iter().chain(rest).collect();
            if lease.identity.is_at(&there) {
                lease.entry = there;
            }
        }
    }
    all.retain(|lease| lease.identity.presence_at(&lease.entry) != Presence::Gone);
}

/// Looks beside its place for a main worktree that was replaced there. Returns its former entry and its present one.
fn beside(lease: &Lease) -> Option<(PathBuf, PathBuf)> {
    let (root, name) = (lease.entry.parent()?, lease.entry.file_name()?);
    let others = fs_err::read_dir(root.parent()?).ok()?.flatten();
    // A tree that a conversion has replaced waits there to be deleted.
    let others = others.filter(|other| !calve_core::internal::is_trash(other.file_name().as_bytes()));
    let others = others.map(|other| other.path().join(name));
    let mut found = others.filter(|other| lease.identity.is_at(other));
    Some((lease.entry.clone(), found.next()?))
}

/// Returns whether a program listens on the port at any usual address.
pub(crate) fn is_in_use(port: u16) -> bool {
    let addresses: [SocketAddr; 4] = [
        (Ipv4Addr::UNSPECIFIED, port).into(),
        (Ipv4Addr::LOCALHOST, port).into(),
        (Ipv6Addr::UNSPECIFIED, port).into(),
        (Ipv6Addr::LOCALHOST, port).into(),
    ];
    // Other errors say nothing about the port: no IPv6, no permission for sockets.
    addresses.iter().any(|address| TcpListener::bind(address).is_err_and(|error| error.kind() == ErrorKind::AddrInUse))
}
