//! Ports that nobody else gets.

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{SocketAddrV4, bind, getsockname, sockopt};

use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::sys;

/// A port on 127.0.0.1 that is held for the server, for as long as this is.
///
/// The socket is bound without SO_REUSEADDR, which fails when anybody has the port, and keeps everybody out who binds in the
/// same way. SO_REUSEADDR is set afterwards, so that the server, which sets it too, can listen beside it: a port that is
/// bound but not listened on may be shared by those who both permit it (socket(7)). So there is no moment at which the port
/// is free.
///
/// Connections that have ended keep a port for a minute (TIME_WAIT), for those without SO_REUSEADDR. A port that is asked for is then
/// bound with it, which fails when anybody listens there. That another server of Calve's is about to, its name tells.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) number: u16,
    _held: OwnedFd,
    _name: Option<OwnedFd>,
}

impl Port {
    /// Takes the port `wanted`, or any that is free if it is 0.
    pub(crate) fn take(wanted: u16) -> Result<Self> {
        let failed = |errno| failed(wanted, errno);
        if wanted != 0 {
            let name = sys::hold_name(&name(wanted)).map_err(failed)?;
            return Ok(Self { number: wanted, _held: hold(wanted).map_err(failed)?, _name: name });
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
                name => return Ok(Self { number, _held: held, _name: name.ok().flatten() }),
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
