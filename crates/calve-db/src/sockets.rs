//! Ports that nobody else gets.

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

use rustix::net::{SocketAddrV4, bind, getsockname, sockopt};

use crate::error::{Error, Result};

/// A port on 127.0.0.1 that is held for the server, for as long as this is.
///
/// The socket is bound without SO_REUSEADDR, which fails when anybody has the port, and keeps everybody out who binds in the
/// same way. SO_REUSEADDR is set afterwards, so that the server, which sets it too, can listen beside it: a port that is
/// bound but not listened on may be shared by those who both permit it (socket(7)). So there is no moment at which the port
/// is free.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) number: u16,
    _held: OwnedFd,
}

impl Port {
    /// `wanted`: 0 is any that is free.
    pub(crate) fn take(wanted: u16) -> Result<Self> {
        let failed = |errno| match errno {
            rustix::io::Errno::ADDRINUSE => Error::PortTaken(wanted),
            errno => Error::io("take a port of", "127.0.0.1", errno),
        };
        let held = crate::sys::stream_socket().map_err(failed)?;
        let wanted_address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, wanted);
        let bound = bind(&held, &wanted_address);
        sockopt::set_socket_reuseaddr(&held, true).map_err(failed)?;
        match bound {
            // Connections that have ended keep it for a minute (TIME_WAIT). Only who listens, or wants it alone, still does then.
            Err(rustix::io::Errno::ADDRINUSE) if wanted != 0 => bind(&held, &wanted_address).map_err(failed)?,
            bound => bound.map_err(failed)?,
        }
        let address: SocketAddrV4 = getsockname(&held).map_err(failed)?.try_into().map_err(failed)?;
        Ok(Self { number: address.port(), _held: held })
    }
}
