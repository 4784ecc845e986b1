//! The machine, and how busy others kept it.

use std::time::SystemTime;

use calve_core::report::FileSystemReport;
use calve_receipt::bench::Machine;
use chrono::{DateTime, SecondsFormat, Utc};

pub(crate) fn here() -> Machine {
    let uname = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    Machine {
        cpu: first_field("/proc/cpuinfo", "model name").unwrap_or_else(|| text(uname.machine())),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory_bytes: kibibytes("/proc/meminfo", "MemTotal"),
        kernel: format!("{} {}", text(uname.sysname()), text(uname.release())),
        load_average_before: fs_err::read_to_string("/proc/loadavg")
            .ok()
            .and_then(|text| text.split_whitespace().next()?.parse().ok()),
    }
}

fn first_field(file: &str, name: &str) -> Option<String> {
    let text = fs_err::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

pub(crate) fn kibibytes(file: &str, name: &str) -> Option<u64> {
    first_field(file, name)?.split_whitespace().next()?.parse::<u64>().ok().map(|number| number * 1024)
}

/// Returns the options of the mount, and those of its file system.
pub(crate) fn mount_options(place: &FileSystemReport) -> String {
    let Some((mount, system)) = place.mount_options.split_once(';') else { return "unknown options".into() };
    // The mount's own options have `rw` or `ro` already.
    let own = system.split(',').filter(|option| !["", "rw", "ro"].contains(option));
    mount.split(',').chain(own).collect::<Vec<_>>().join(",")
}

/// Unit of the kernel's times for programs, on all common architectures.
const TICKS_PER_SECOND: f64 = 100.0;

/// Such ticks say nothing about shorter times.
const SHORTEST_SECONDS: f64 = 0.3;

/// Returns the processors' time for programs and other virtual machines. The kernel's is left out, since it works for
/// the measured programs as well.
pub(crate) fn busy_seconds() -> Option<f64> {
    let text = fs_err::read_to_string("/proc/stat").ok()?;
    let fields = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    let ticks: Vec<f64> = fields.map_while(|field| field.parse().ok()).collect();
    // user, nice, …, steal: see proc(5).
    Some((ticks.first()? + ticks.get(1)? + ticks.get(7).unwrap_or(&0.0)) / TICKS_PER_SECOND)
}

/// Returns how many processors others kept busy for `seconds`, on average. `before`: [`busy_seconds`] at their start.
pub(crate) fn others_since(before: f64, seconds: f64, own_user_seconds: f64) -> Option<f64> {
    if seconds < SHORTEST_SECONDS {
        return None;
    }
    Some(((busy_seconds()? - before - own_user_seconds) / seconds).max(0.0))
}

/// Formats a time as "2026-05-04T03:02:01Z".
pub(crate) fn utc(time: SystemTime) -> String {
    DateTime::<Utc>::from(time).to_rfc3339_opts(SecondsFormat::Secs, true)
}
