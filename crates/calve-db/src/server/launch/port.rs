//! Ports that no other program gets.

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{SocketAddrV4, bind, getsockname, sockopt};

use crate::error::{Error, Operation, Remedy, Result};
use crate::sys;

/// A port on 127.0.0.1 that is held for the server, for as long as this is.
///
/// The socket is bound without SO_REUSEADDR, which fails when anybody has the port, and keeps everybody out. While a server starts,
/// [`HeldPort::lend`] sets it, so that the server, which sets it too, can listen beside it: a port that is bound but not listened on may be
/// shared by those who both permit it (socket(7)). So the port is never free, also not between two servers.
///
/// Connections that have ended keep a port for a minute (TIME_WAIT), for those without SO_REUSEADDR. A port that is asked for is then
/// bound with it, which fails when anybody listens there. That another server of Calve's is about to, its name tells.
#[derive(Debug)]
pub(crate) struct HeldPort {
    pub(crate) number: u16,
    held: OwnedFd,
    _name: Option<OwnedFd>,
}

impl HeldPort {
    /// Takes the port `wanted`, or any that is free if it is 0.
    pub(crate) fn take(wanted: u16) -> Result<Self> {
        let failed = |errno| failed(wanted, errno);
        if wanted != 0 {
            let name = sys::hold_name(&name(wanted)).map_err(failed)?;
            return Ok(Self { number: wanted, held: hold(wanted).map_err(failed)?, _name: name });
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
                name => return Ok(Self { number, held, _name: name.ok().flatten() }),
            }
        }
    }

    /// Lets a server listen on the port, which keeps everybody else out from then on.
    pub(crate) fn lend(&self) -> LentPort<'_> {
        let _ = sockopt::set_socket_reuseaddr(&self.held, true);
        LentPort(&self.held)
    }
}

/// A port that a server may listen on, until this is dropped.
pub(crate) struct LentPort<'a>(&'a OwnedFd);

impl Drop for LentPort<'_> {
    fn drop(&mut self) {
        let _ = sockopt::set_socket_reuseaddr(self.0, false);
    }
}

fn failed(wanted: u16, errno: Errno) -> Error {
    match errno {
        Errno::ADDRINUSE => Error::failed(format!("port {wanted} of 127.0.0.1 is taken"), Remedy::ChooseAnotherPort),
        Errno::ACCESS => {
            let text = format!("port {wanted} needs a privilege that this user does not have");
            Error::failed(text, Remedy::ChooseUnprivilegedPort)
        }
        errno => Error::io(Operation::TakePort, "127.0.0.1", errno),
    }
}

fn hold(wanted: u16) -> rustix::io::Result<OwnedFd> {
    let held = sys::stream_socket()?;
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, wanted);
    match bind(&held, &address) {
        Err(Errno::ADDRINUSE) if wanted != 0 => {
            sockopt::set_socket_reuseaddr(&held, true)?;
            bind(&held, &address)?;
            sockopt::set_socket_reuseaddr(&held, false)?;
        }
        bound => bound?,
    }
    Ok(held)
}

fn name(port: u16) -> String {
    format!("calve-port-{port}")
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_port_is_shared_only_while_it_is_lent() {
        let mut wanted = 0;
        for _ in 0..2 {
            let port = HeldPort::take(wanted).unwrap();
            wanted = port.number;
            // It has SO_REUSEADDR, and a connection that ended leaves the port in TIME_WAIT.
            let listen = || TcpListener::bind(("127.0.0.1", port.number));
            assert!(listen().is_err());
            let lent = port.lend();
            let server = listen().unwrap();
            drop(lent);
            assert!(listen().is_err());
            let client = std::net::TcpStream::connect(("127.0.0.1", port.number)).unwrap();
            drop((server.accept().unwrap(), client, server));
            assert!(listen().is_err(), "the server has gone, and its port is held");
        }
    }
}
