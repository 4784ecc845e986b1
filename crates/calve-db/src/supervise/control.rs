//! Requests to the supervisors of servers that run.

use std::io::BufReader;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::copy_up::Copied;
use crate::error::{Error, Result};
use crate::registry::Home;
use crate::registry::{self, Record};
use crate::supervise::messages::{Answer, Request, Starting, answer, send};
use crate::sys::ProcessHandle;

/// A server that was stopped.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Stopped {
    /// What it was.
    pub record: Record,
    /// What its overlay copied as a whole, because the server opened it for writing.
    pub copied: Vec<Copied>,
    /// From the request to the answer.
    pub took: Duration,
}

/// Ends a server. Its files are out of sight on return, and deleted a little later.
pub fn stop(home: &Home, name: &str) -> Result<Stopped> {
    let started = Instant::now();
    let record = registry::find(home, name)?;
    let mut copied = Vec::new();
    match ask(&record, Request::Stop, &mut |_| ()) {
        Ok(Answer::Stopped { copied: told }) => copied = told,
        Ok(_) => {}
        // Nobody listens, because the socket was removed; or it ended in this moment.
        Err(Error::SupervisorGone(_)) => end(home, &record)?,
        Err(error) => return Err(error),
    }
    Ok(Stopped { record, copied, took: started.elapsed() })
}

/// A server that was put back.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Reset {
    /// What it is now.
    pub record: Record,
    /// What its overlay had copied until then.
    pub copied: Vec<Copied>,
}

/// Puts a server back to its template. It keeps its name and address; sessions are cut off. `tell`: as in [`crate::start`].
pub fn reset(home: &Home, name: &str, tell: &mut dyn FnMut(&Starting)) -> Result<Reset> {
    let record = registry::find(home, name)?;
    match ask(&record, Request::Reset, tell)?.into_result()? {
        Answer::Ready(ready) => Ok(Reset { record: ready.record, copied: ready.copied }),
        _ => Err(Error::SupervisorGone(name.into())),
    }
}

fn ask(record: &Record, request: Request, tell: &mut dyn FnMut(&Starting)) -> Result<Answer> {
    let gone = || Error::SupervisorGone(record.name.clone());
    let mut stream = UnixStream::connect(&record.control).map_err(|_| gone())?;
    send(&mut stream, &request).map_err(|_| gone())?;
    answer(&mut BufReader::new(stream), tell).ok().flatten().ok_or_else(gone)
}

/// Asks by signal, and waits.
fn end(home: &Home, record: &Record) -> Result<()> {
    if let Some(supervisor) = ProcessHandle::open(record.supervisor, record.supervisor_started) {
        supervisor.signal(Signal::TERM);
        let started = Instant::now();
        while supervisor.lives() && started.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    crate::registry::sweep::sweep(home).map(|_| ())
}
