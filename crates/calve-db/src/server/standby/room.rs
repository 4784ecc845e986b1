//! Room for another standby: memory and disk space.

use std::path::Path;

use fs_err as fs;

use crate::engine::Engine;

/// The share of all space that must stay free: a tenth.
const FREE_PART: u64 = 10;

/// Returns whether a server in use on this data fits in memory, with a tenth of all left free. Unknown memory fits.
pub(crate) fn has_room(engine: &dyn Engine, data: &Path) -> bool {
    let limits = [machine(), group(), group_of_version_1()];
    let needed = engine.memory_bytes(data);
    limits.into_iter().flatten().all(|(total, free)| free >= needed + total / FREE_PART)
}

/// Returns whether a tenth of the disk, or a gigabyte of a large one, is free for others. An unknown disk has room.
pub(crate) fn has_disk(slot: &Path) -> bool {
    const ENOUGH: u64 = 1 << 30;
    rustix::fs::statvfs(slot).ok().is_none_or(|room| {
        let [total, free] = [room.f_blocks, room.f_bavail].map(|blocks| blocks.saturating_mul(room.f_frsize));
        free >= (total / FREE_PART).min(ENOUGH)
    })
}

/// Total and free bytes.
type Memory = (u64, u64);

/// Returns the memory of the machine (proc_meminfo(5)).
fn machine() -> Option<Memory> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.split_ascii_whitespace().next()?.parse::<u64>().ok()? * 1024)
    };
    Some((field("MemTotal:")?, field("MemAvailable:")?))
}

/// Returns the memory of this process's control group, as in a container (cgroups(7)).
fn group() -> Option<Memory> {
    let own = own_group("")?;
    let mounts = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    mounts.iter().find_map(|mount| limit(Path::new(mount), &own, "memory.max", "memory.current", ""))
}

fn group_of_version_1() -> Option<Memory> {
    let (mount, own) = (Path::new("/sys/fs/cgroup/memory"), own_group("memory")?);
    limit(mount, &own, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
}

/// Returns a limit and its free part. The page cache counts as free: it is not the servers' shared memory. In a
/// container, its own group may be all that is mounted.
fn limit(mount: &Path, own: &str, limit: &str, used: &str, prefix: &str) -> Option<Memory> {
    let directory = Some(mount.join(own)).filter(|directory| directory.is_dir()).unwrap_or_else(|| mount.to_path_buf());
    let number = |name: &str| fs::read_to_string(directory.join(name)).ok()?.trim().parse::<u64>().ok();
    let total = number(limit)?;
    let statistics = fs::read_to_string(directory.join("memory.stat")).unwrap_or_default();
    let lists = statistics.lines().filter_map(|line| line.strip_prefix(prefix)?.split_once("active_file "));
    let cache: u64 =
        lists.filter(|(rest, _)| ["", "in"].contains(rest)).filter_map(|(_, bytes)| bytes.parse::<u64>().ok()).sum();
    Some((total, total.saturating_sub(number(used)?.saturating_sub(cache))))
}

/// Returns this process's group for a controller, relative to the mount of groups.
fn own_group(controller: &str) -> Option<String> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    text.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers.split(',').any(|name| name == controller).then(|| path.trim_start_matches('/').to_owned())
    })
}
