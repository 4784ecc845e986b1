//! Sending to a client.

use std::io::{self, Write as _};
use std::net::TcpStream;

/// Sends all pieces at once, in order.
pub(super) fn send(mut socket: &TcpStream, parts: &[&[u8]]) -> io::Result<()> {
    let mut slices: Vec<io::IoSlice<'_>> = parts.iter().map(|part| io::IoSlice::new(part)).collect();
    let mut left = &mut slices[..];
    io::IoSlice::advance_slices(&mut left, 0);
    while !left.is_empty() {
        match socket.write_vectored(left) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => io::IoSlice::advance_slices(&mut left, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
