//! Ports that nobody else gets.

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{SocketAddrV4, bind, getsockname, sockopt};

use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::sys;

/// The longest time for an engine to close the port of a container that has ended.
const CLOSED_IN: Duration = Duration::from_secs(2);

/// A port on 127.0.0.1 that is held for the server, for as long as this is.
///
/// The socket is bound without SO_REUSEADDR, which fails when anybody has the port, and keeps everybody out who binds in the
/// same way. SO_REUSEADDR is set afterwards, so that the server, which sets it too, can listen beside it: a port that is
/// bound but not listened on may be shared by those who both permit it (socket(7)). So there is no moment at which the port
/// is free.
///
/// Connections that have ended keep a port for a minute (TIME_WAIT), for those without SO_REUSEADDR. A port that is asked for is then
/// bound with it, which fails when anybody listens there. That another server of Calve's is about to, its name tells.
///
/// To publish the port, Docker's engine needs it free, so it is freed right before the container is started. From then on, only the
/// engine knows who answers there.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) number: u16,
    held: Mutex<Option<OwnedFd>>,
    _name: Option<OwnedFd>,
}

impl Port {
    /// Takes the port `wanted`, or any that is free if it is 0.
    pub(crate) fn take(wanted: u16) -> Result<Self> {
        let failed = |errno| failed(wanted, errno);
        if wanted != 0 {
            let name = sys::hold_name(&name(wanted)).map_err(failed)?;
            return Ok(Self { number: wanted, held: Mutex::new(Some(hold(wanted).map_err(failed)?)), _name: name });
        }
        // Ports whose name another server holds, which may be about to listen. While they are held, the kernel gives others.
        let mut others = Vec::new();
        loop {
            let held = hold(wanted).map_err(failed)?;
            let address: SocketAddrV4 = getsockname(&held).map_err(failed)?.try_into().map_err(failed)?;
            let number = address.port();
            match sys::hold_name(&name(number)) {
                Err(Errno::ADDRINUSE) => others.push(held),
                // Where there are no such names, there is only the port.
                name => return Ok(Self { number, held: Mutex::new(Some(held)), _name: name.ok().flatten() }),
            }
        }
    }

    /// Frees the port for Docker's engine, which may not share it. Until the engine listens, other programs can take it; servers of Calve's
    /// do not, because its name is held.
    pub(crate) fn free(&self) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Holds the port again if it was freed: its container has ended, and the engine is about to close it. If another program takes it, the
    /// next container fails to start.
    pub(crate) fn hold(&self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let started = Instant::now();
        while held.is_none() && started.elapsed() < CLOSED_IN {
            *held = hold(self.number).ok();
            if held.is_none() {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

fn failed(wanted: u16, errno: Errno) -> Error {
    match errno {
        Errno::ADDRINUSE => Error::PortTaken(wanted),
        Errno::ACCESS => Error::PortNotPermitted(wanted),
        errno => Error::io(Operation::TakePort, "127.0.0.1", errno),
    }
}

/// Returns a socket that has the port.
fn hold(wanted: u16) -> rustix::io::Result<OwnedFd> {
    let held = sys::stream_socket()?;
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, wanted);
    let bound = bind(&held, &address);
    sockopt::set_socket_reuseaddr(&held, true)?;
    match bound {
        Err(Errno::ADDRINUSE) if wanted != 0 => bind(&held, &address)?,
        bound => bound?,
    }
    Ok(held)
}

fn name(port: u16) -> String {
    format!("calve-port-{port}")
}
