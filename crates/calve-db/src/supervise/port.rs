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
    held: Option<OwnedFd>,
    _name: Option<OwnedFd>,
}

impl Port {
    /// Takes the port `wanted`, or any that is free if it is 0.
    pub(crate) fn take(wanted: u16) -> Result<Self> {
        let failed = |errno| match errno {
            Errno::ADDRINUSE => Error::PortTaken(wanted),
            Errno::ACCESS => Error::PortNotPermitted(wanted),
            errno => Error::io(Operation::TakePort, "127.0.0.1", errno),
        };
        let name = if wanted == 0 { None } else { sys::hold_name(&name(wanted)).map_err(failed)? };
        let held = sys::stream_socket().map_err(failed)?;
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, wanted);
        let bound = bind(&held, &address);
        sockopt::set_socket_reuseaddr(&held, true).map_err(failed)?;
        match bound {
            Err(Errno::ADDRINUSE) if wanted != 0 => bind(&held, &address).map_err(failed)?,
            bound => bound.map_err(failed)?,
        }
        let address: SocketAddrV4 = getsockname(&held).map_err(failed)?.try_into().map_err(failed)?;
        let number = address.port();
        // The kernel has given a port that nobody has: should somebody have its name, it is of no use to him.
        let name = name.or_else(|| sys::hold_name(&self::name(number)).ok().flatten());
        Ok(Self { number, held: Some(held), _name: name })
    }

    /// Frees the port for a program of somebody else's, which may not permit that it is shared. Servers of Calve's still do not ask for it.
    pub(crate) fn free(&mut self) {
        self.held = None;
    }
}

fn name(port: u16) -> String {
    format!("calve-port-{port}")
}
