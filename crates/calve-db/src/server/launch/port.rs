//! Ports that no other program gets.

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{SocketAddrV4, bind, getsockname, sockopt};

use crate::error::{Error, Remedy, Result};
use crate::sys;

/// A port on 127.0.0.1, held for a server while this lives.
///
/// Its socket is bound without SO_REUSEADDR, which excludes all others. While a server starts, [`HeldPort::lend`] sets
/// the option, as the server does, so that both share the port: sockets that permit it may share one without a listener
/// (socket(7)). So the port is never free, not even between two servers.
///
/// Ended connections block a port without SO_REUSEADDR for a minute (TIME_WAIT). A requested port is then bound with
/// it, which fails if a socket listens there. A server of Calve's that is about to listen shows by its name.
#[derive(Debug)]
pub(crate) struct HeldPort {
    pub(crate) number: u16,
    held: OwnedFd,
    _name: Option<OwnedFd>,
}

impl HeldPort {
    /// Takes the port `wanted`, or any free one for 0.
    pub(crate) fn take(wanted: u16) -> Result<Self> {
        let failed = |errno| failed(wanted, errno);
        if wanted != 0 {
            let name = sys::hold_name(&name(wanted)).map_err(failed)?;
            return Ok(Self { number: wanted, held: hold(wanted).map_err(failed)?, _name: name });
        }
        // Ports of servers that may be about to listen. They are held here, so that the kernel gives others.
        let mut others = Vec::new();
        loop {
            let held = hold(wanted).map_err(failed)?;
            let address: SocketAddrV4 = getsockname(&held).map_err(failed)?.try_into().map_err(failed)?;
            let number = address.port();
            match sys::hold_name(&name(number)) {
                Err(Errno::ADDRINUSE) => others.push(held),
                // Without such names, only the port counts.
                name => return Ok(Self { number, held, _name: name.ok().flatten() }),
            }
        }
    }

    /// Lets a server listen on the port. The listener then keeps all others out.
    pub(crate) fn lend(&self) -> LentPort<'_> {
        let _ = sockopt::set_socket_reuseaddr(&self.held, true);
        LentPort(&self.held)
    }
}

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
        errno => Error::io("take a port of", "127.0.0.1", errno),
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
