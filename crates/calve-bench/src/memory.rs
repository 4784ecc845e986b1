//! Memory that a run will need, made free before its time begins.

/// The results of earlier runs fill the memory with what nobody will read again. Once it is full, the kernel has to look for pages to
/// give up while a program writes, which takes that program's time: commands that write much were seen to take twice as long then. So
/// where less than `bytes` is free, as many pages are asked for here, and freed again. The kernel gives up what has not been used for
/// the longest time, which is not the tree. The pages are never mapped, so that they do not count as the bench's own memory.
///
/// Nothing depends on it, so that it may fail.
#[cfg(target_os = "linux")]
pub(super) fn make_free(bytes: u64) {
    use rustix::fs::{FallocateFlags, MemfdFlags};

    let Some(missing) = missing_bytes(bytes) else { return };
    if let Ok(memory) = rustix::fs::memfd_create(c"calve-bench", MemfdFlags::CLOEXEC) {
        let _ = rustix::fs::fallocate(&memory, FallocateFlags::empty(), 0, missing);
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn make_free(_bytes: u64) {}

/// How much to ask for so that `bytes` are free: all of it, because what is free now is given out first. `None` when they are already.
#[cfg(target_os = "linux")]
fn missing_bytes(bytes: u64) -> Option<u64> {
    use super::machine::kibibytes;
    let known = |name| kibibytes("/proc/meminfo", name);
    // The numbers are the machine's. Where there is a limit below them, asking for too much would be the end of the bench.
    if is_limited(&fs_err::read_to_string("/proc/self/cgroup").unwrap_or_default(), known("MemTotal")?) {
        return None;
    }
    // The kernel begins to look for more while some is still free.
    let wanted = bytes + known("MemTotal")? / 50;
    let (free, to_be_had) = (known("MemFree")?, known("MemAvailable")?);
    // Never so much that other programs would feel it.
    (free < wanted).then(|| wanted.min(to_be_had / 2))
}

/// Whether the control group that a process is in, or one above it, may have less memory than the machine (cgroups(7), both versions).
#[cfg(target_os = "linux")]
fn is_limited(own_groups: &str, machine_bytes: u64) -> bool {
    use std::path::Path;
    let limit_below = |folder: &str, file: &str, group: &str| {
        let group = group.trim_start_matches('/');
        Path::new(group).ancestors().any(|group| {
            let path = Path::new(folder).join(group).join(file);
            let limit = fs_err::read_to_string(path).ok().and_then(|text| text.trim().parse::<u64>().ok());
            limit.is_some_and(|limit| limit < machine_bytes)
        })
    };
    own_groups.lines().any(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        match (fields.next(), fields.next()) {
            (Some(""), Some(group)) => limit_below("/sys/fs/cgroup", "memory.max", group),
            (Some(controllers), Some(group)) if controllers.split(',').any(|name| name == "memory") => {
                limit_below("/sys/fs/cgroup/memory", "memory.limit_in_bytes", group)
            }
            _ => false,
        }
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::machine::{kibibytes, own_peak_memory_bytes};

    #[test]
    fn only_what_is_missing_is_asked_for_and_it_does_not_count_as_its_own() {
        let before = own_peak_memory_bytes().unwrap();
        make_free(1 << 30);
        let more = own_peak_memory_bytes().unwrap() - before;
        assert!(more < 1 << 28, "{more} bytes");
        let all = kibibytes("/proc/meminfo", "MemTotal").unwrap();
        if is_limited(&fs_err::read_to_string("/proc/self/cgroup").unwrap_or_default(), all) {
            assert_eq!(missing_bytes(1 << 50), None);
            return;
        }
        // More than there is: what can be had without harm, and that by half.
        let available = kibibytes("/proc/meminfo", "MemAvailable").unwrap();
        assert!(missing_bytes(1 << 50).unwrap() < available * 3 / 4);
    }

    #[test]
    fn groups_that_are_not_there_have_no_limit() {
        for groups in ["", "0::/no/such/group", "7:memory:/no/such/group\n3:cpu,cpuacct:/", "nonsense"] {
            assert!(!is_limited(groups, 1), "{groups}");
        }
    }
}
