//! A stand-in for `git upload-pack` that reports the server's cost: clients run it as `remote.origin.uploadpack`.
//!
//! It is this program under another name, without a command line of its own. A client waits for it, so its report is
//! complete when the client has ended.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use rustix::time::{ClockId, clock_gettime};
use wait4::Wait4;

/// Its name, in the HOME of the bench's git programs.
pub(super) const NAME: &str = "calve-upload-pack";

/// git runs it in a shell: so the path may have any bytes.
pub(super) const COMMAND: &str = "\"$HOME/calve-upload-pack\"";

/// Environment variable with the directory for reports.
pub(super) const REPORTS: &str = "CALVE_UPLOAD_PACK_REPORTS";

/// The server's cost of one operation of a client, in all its connections.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct ServerCost {
    pub(super) connections: u64,
    pub(super) user_seconds: f64,
    pub(super) system_seconds: f64,
    /// The time of the stand-in itself, which counts for neither side.
    pub(super) own_seconds: f64,
    /// Peak of the largest process.
    pub(super) peak_memory_bytes: u64,
    pub(super) sent_bytes: u64,
}

/// Runs `git upload-pack`, if this process was started for that.
pub fn when_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    let own = arguments.next()?;
    if Path::new(&own).file_name() != Some(OsStr::new(NAME)) {
        return None;
    }
    let mut command = Command::new("git");
    command.arg("upload-pack").args(arguments).stdout(Stdio::piped());
    Some(relay(&mut command).unwrap_or(ExitCode::FAILURE))
}

fn relay(command: &mut Command) -> io::Result<ExitCode> {
    let mut child = command.spawn()?;
    let mut out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    // Closing its output ends the child of a client that has gone.
    let sent = child.stdout.take().map_or(Ok(0), |mut answer| io::copy(&mut answer, &mut out)).unwrap_or(0);
    let used = child.wait4()?;
    if let Some(reports) = std::env::var_os(REPORTS) {
        let (user, system) = (used.rusage.utime.as_secs_f64(), used.rusage.stime.as_secs_f64());
        let own = clock_gettime(ClockId::ProcessCPUTime);
        let own = own.tv_sec as f64 + own.tv_nsec as f64 / 1e9;
        let report = format!("{user} {system} {own} {} {sent}", used.rusage.maxrss);
        fs_err::write(Path::new(&reports).join(std::process::id().to_string()), report)?;
    }
    let code = used.status.code().unwrap_or_else(|| 128 + used.status.signal().unwrap_or(0));
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

impl ServerCost {
    /// Adds up the reports of an operation that has ended, and removes them.
    pub(super) fn take(reports: &Path) -> io::Result<Self> {
        let mut sum = Self::default();
        for entry in fs_err::read_dir(reports)? {
            let path = entry?.path();
            let text = fs_err::read_to_string(&path)?;
            fs_err::remove_file(&path)?;
            let numbers: Vec<f64> = text.split(' ').map_while(|number| number.parse().ok()).collect();
            let [user, system, own, memory, sent] = numbers[..] else { return Err(io::ErrorKind::InvalidData.into()) };
            sum.connections += 1;
            sum.user_seconds += user;
            sum.system_seconds += system;
            sum.own_seconds += own;
            sum.peak_memory_bytes = sum.peak_memory_bytes.max(memory as u64);
            sum.sent_bytes += sent as u64;
        }
        Ok(sum)
    }
}
