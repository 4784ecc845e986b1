//! The two directions of a connection: as the socket has them, or as a slower link would.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::git::link::Link;

/// Small beside what a link holds, so that it flows and does not come in bursts.
const PIECE: usize = 16 << 10;

/// Bytes that have arrived at their time.
pub(super) struct Piece {
    due: Instant,
    bytes: Vec<u8>,
}

/// When what is sent now will have arrived: after what was sent before it, and then half of the round trip later.
pub(super) struct Schedule {
    link: Link,
    free: Instant,
}

impl Schedule {
    fn due(&mut self, bytes: usize) -> Instant {
        self.free = self.free.max(Instant::now()) + self.link.sending(bytes);
        self.free + self.link.round_trip / 2
    }
}

fn sleep_until(due: Instant) {
    let left = due.saturating_duration_since(Instant::now());
    if left > Duration::ZERO {
        thread::sleep(left);
    }
}

/// Makes a queue of as many pieces as are on their way at most, and the buffer of a socket.
fn queue(link: &Link) -> (SyncSender<Piece>, Receiver<Piece>) {
    let pieces = (link.bytes_in_flight() + (256 << 10)) / PIECE as u64;
    sync_channel(pieces.min(4096) as usize)
}

/// The bytes from the client.
pub(super) enum IncomingBytes {
    Plain(TcpStream),
    Shaped { pieces: Receiver<Piece>, now: Vec<u8>, read: usize },
}

impl IncomingBytes {
    /// Returns the bytes of a client that is gone.
    #[cfg(test)]
    pub(super) fn bytes(bytes: &[u8]) -> Self {
        let (_, pieces) = sync_channel(0);
        Self::Shaped { pieces, now: bytes.to_vec(), read: 0 }
    }

    /// Ends with the socket.
    pub(super) fn of(socket: TcpStream, link: Option<Link>) -> Self {
        let Some(link) = link else { return Self::Plain(socket) };
        let (sender, pieces) = queue(&link);
        // A connection takes a round trip before anything can be sent on it, which loopback spares.
        let mut schedule = Schedule { link, free: Instant::now() + link.round_trip };
        thread::spawn(move || {
            let mut buffer = vec![0; PIECE];
            while let Ok(length @ 1..) = (&socket).read(&mut buffer) {
                let piece = Piece { due: schedule.due(length), bytes: buffer[..length].to_vec() };
                if sender.send(piece).is_err() {
                    break;
                }
            }
        });
        Self::Shaped { pieces, now: Vec::new(), read: 0 }
    }
}

impl Read for IncomingBytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Shaped { pieces, now, read } => {
                if *read == now.len() {
                    let Ok(piece) = pieces.recv() else { return Ok(0) };
                    sleep_until(piece.due);
                    (*now, *read) = (piece.bytes, 0);
                }
                let length = buffer.len().min(now.len() - *read);
                buffer[..length].copy_from_slice(&now[*read..*read + length]);
                *read += length;
                Ok(length)
            }
        }
    }
}

/// The bytes for the client.
pub(super) enum OutgoingBytes {
    Plain(TcpStream),
    Shaped { pieces: SyncSender<Piece>, schedule: Schedule, writer: JoinHandle<()> },
}

impl OutgoingBytes {
    pub(super) fn of(socket: TcpStream, link: Option<Link>) -> Self {
        let Some(link) = link else { return Self::Plain(socket) };
        let (pieces, receiver) = queue(&link);
        let writer = thread::spawn(move || {
            for piece in receiver {
                sleep_until(piece.due);
                if (&socket).write_all(&piece.bytes).is_err() {
                    break;
                }
            }
        });
        Self::Shaped { pieces, schedule: Schedule { link, free: Instant::now() }, writer }
    }

    /// Sends all pieces at once, in order.
    pub(super) fn send(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        match self {
            Self::Plain(socket) => send_plain(socket, parts),
            Self::Shaped { pieces, schedule, .. } => {
                for bytes in parts.concat().chunks(PIECE) {
                    let piece = Piece { due: schedule.due(bytes.len()), bytes: bytes.to_vec() };
                    pieces.send(piece).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
                }
                Ok(())
            }
        }
    }

    /// Waits until everything has been sent.
    pub(super) fn finish(self) {
        if let Self::Shaped { pieces, writer, .. } = self {
            drop(pieces);
            let _ = writer.join();
        }
    }
}

fn send_plain(socket: &mut TcpStream, parts: &[&[u8]]) -> io::Result<()> {
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
