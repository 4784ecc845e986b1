//! A stand-in for `git pack-objects` that tells what it took: git runs it as `uploadpack.packObjectsHook`.
//!
//! It is this program under another name, without reading a command line. What it takes itself it tells too, so that it is not charged
//! to anybody.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use wait4::Wait4;

use super::host::ledger::Charge;

/// The name that it goes by.
pub(crate) const NAME: &str = "calve-pack-objects";

/// The environment variable that says where to report to.
pub(crate) const REPORT: &str = "CALVE_PACK_OBJECTS_REPORT";

/// Runs the command that git gives, if this process was started for that.
pub fn when_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    let own = arguments.next()?;
    if Path::new(&own).file_name() != Some(OsStr::new(NAME)) {
        return None;
    }
    let program = arguments.next()?;
    let Ok(mut child) = Command::new(program).args(arguments).spawn() else { return Some(ExitCode::from(127)) };
    let Ok(used) = child.wait4() else { return Some(ExitCode::FAILURE) };
    if let Some(report) = std::env::var_os(REPORT) {
        let its = used.rusage.utime + used.rusage.stime;
        let own = clock_gettime(ClockId::ProcessCPUTime);
        let own = u128::from(own.tv_sec.unsigned_abs()) * 1_000_000_000 + u128::from(own.tv_nsec.unsigned_abs());
        // The reader does without it when it is not there.
        let _ = fs_err::write(Path::new(&report), format!("{} {own}", its.as_nanos()));
    }
    let code = used.status.code().unwrap_or_else(|| 128 + used.status.signal().unwrap_or(0));
    Some(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// The CPU time that the stand-in reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PackObjectsCost {
    pack_objects: Duration,
    own: Duration,
}

impl PackObjectsCost {
    /// Reads a report, and removes its file. `None` where no objects were packed.
    fn take(report: &Path) -> Option<Self> {
        let text = fs_err::read_to_string(report).ok()?;
        let _ = fs_err::remove_file(report);
        let (its, own) = text.split_once(' ')?;
        Some(Self {
            pack_objects: Duration::from_nanos(its.parse().ok()?),
            own: Duration::from_nanos(own.parse().ok()?),
        })
    }
}

/// Waits for a process of the server, and adds what it took to a charge: without what the stand-in took, which reported to `report`.
pub(crate) fn wait_and_charge(child: &mut Child, report: &Path, charge: &mut Charge) -> io::Result<()> {
    let used = child.wait4()?;
    charge.cpu = used.rusage.utime + used.rusage.stime;
    charge.peak_memory_bytes = used.rusage.maxrss;
    if let Some(cost) = PackObjectsCost::take(report) {
        charge.pack_objects = cost.pack_objects;
        charge.own = cost.own.min(charge.cpu);
        charge.cpu = charge.cpu.saturating_sub(cost.own);
    }
    Ok(())
}

/// Quotes the value of `uploadpack.packObjectsHook` for the stand-in at that path: git gives it to a shell.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+:@,".contains(c));
    if is_plain { text.into_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
