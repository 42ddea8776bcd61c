//! A TCP proxy for one server, that breaks the connection in the ways networks do.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use crate::Result;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the program under test to the server.
    ToServer,
    /// From the server to the program under test.
    ToClient,
}

/// What happens to the bytes of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// They pass.
    Open,
    /// They wait; the sender's socket fills up. What waits is delivered once the flow is open again.
    Stalled,
    /// They vanish without a word, as behind a firewall that has forgotten the connection.
    Swallowed,
    /// They pass at this many bytes a second.
    Slow(u32),
    /// This many more bytes pass; then the whole connection is closed, and the flow is open for the next one.
    CutAfter(u64),
}

#[derive(Debug)]
struct Faults {
    to_server: Flow,
    to_client: Flow,
    refuses: bool,
    closed: bool,
    /// Both sockets of every connection that was accepted, so that a reset can close them.
    sockets: Vec<TcpStream>,
    accepted: usize,
    bytes_to_server: u64,
    bytes_to_client: u64,
}

impl Faults {
    const fn flow(&mut self, direction: Direction) -> &mut Flow {
        match direction {
            Direction::ToServer => &mut self.to_server,
            Direction::ToClient => &mut self.to_client,
        }
    }

    const fn bytes(&mut self, direction: Direction) -> &mut u64 {
        match direction {
            Direction::ToServer => &mut self.bytes_to_server,
            Direction::ToClient => &mut self.bytes_to_client,
        }
    }

    fn close_all(&mut self) {
        for socket in self.sockets.drain(..) {
            // Whoever reads from it wakes up; it may be closed already.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

#[derive(Debug)]
struct Shared {
    faults: Mutex<Faults>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The proxy: listens on a port of its own on 127.0.0.1 until it is dropped.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

impl Proxy {
    /// A proxy to a port on 127.0.0.1.
    ///
    /// # Errors
    /// No port can be listened on.
    pub fn to(server_port: u16) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let port = listener.local_addr()?.port();
        let faults = Faults {
            to_server: Flow::Open,
            to_client: Flow::Open,
            refuses: false,
            closed: false,
            sockets: Vec::new(),
            accepted: 0,
            bytes_to_server: 0,
            bytes_to_client: 0,
        };
        let shared = Arc::new(Shared { faults: Mutex::new(faults), changed: Condvar::new() });
        let for_thread = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, server_port, &for_thread));
        Ok(Self { port, shared })
    }

    /// The port to connect to.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Changes what happens to the bytes of one direction, from the next piece (at most 16 KiB) on.
    pub fn set(&self, direction: Direction, flow: Flow) {
        *self.shared.lock().flow(direction) = flow;
        self.shared.changed.notify_all();
    }

    /// Closes every connection now, in both directions. New ones are accepted.
    pub fn reset(&self) {
        self.shared.lock().close_all();
        self.shared.changed.notify_all();
    }

    /// While `refuses`, new connections are closed before a byte has passed.
    pub fn refuse(&self, refuses: bool) {
        self.shared.lock().refuses = refuses;
    }

    /// Connections accepted so far.
    #[must_use]
    pub fn accepted(&self) -> usize {
        self.shared.lock().accepted
    }

    /// Bytes that have passed in one direction so far.
    #[must_use]
    pub fn bytes(&self, direction: Direction) -> u64 {
        *self.shared.lock().bytes(direction)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        {
            let mut faults = self.shared.lock();
            faults.closed = true;
            faults.close_all();
        }
        self.shared.changed.notify_all();
        // The accepting thread sees `closed` at its next connection: this one.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn accept(listener: &TcpListener, server_port: u16, shared: &Arc<Shared>) {
    for client in listener.incoming() {
        let Ok(client) = client else { continue };
        let mut faults = shared.lock();
        if faults.closed {
            return;
        }
        if faults.refuses {
            continue;
        }
        faults.accepted += 1;
        drop(faults);
        // A server that does not answer looks to the client like a connection closed at once.
        let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)) else { continue };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let (Ok(client_reader), Ok(server_reader)) = (client.try_clone(), server.try_clone()) else { continue };
        if let (Ok(one), Ok(other)) = (client.try_clone(), server.try_clone()) {
            shared.lock().sockets.extend([one, other]);
        }
        for (from, to, direction) in
            [(client_reader, server, Direction::ToServer), (server_reader, client, Direction::ToClient)]
        {
            let shared = Arc::clone(shared);
            thread::spawn(move || pump(from, to, direction, &shared));
        }
    }
}

/// Moves bytes one way until either socket ends, then ends both.
fn pump(mut from: TcpStream, mut to: TcpStream, direction: Direction, shared: &Shared) {
    let mut piece = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut piece) {
        let (passed, goes_on) = admit(length, direction, shared);
        if to.write_all(piece.get(..passed).unwrap_or_default()).is_err() || !goes_on {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// Waits for as long as the flow says; gives how many of `length` bytes pass, and whether the connection goes on.
#[expect(clippy::disallowed_methods, reason = "a slow network is made of sleeping")]
fn admit(length: usize, direction: Direction, shared: &Shared) -> (usize, bool) {
    let mut faults = shared.lock();
    while *faults.flow(direction) == Flow::Stalled && !faults.closed {
        faults = shared.changed.wait(faults).unwrap_or_else(PoisonError::into_inner);
    }
    if faults.closed {
        return (0, false);
    }
    let flow = *faults.flow(direction);
    let outcome = match flow {
        Flow::Swallowed => return (0, true),
        Flow::CutAfter(left) if left <= length as u64 => {
            *faults.flow(direction) = Flow::Open;
            (usize::try_from(left).unwrap_or(length), false)
        }
        Flow::CutAfter(left) => {
            *faults.flow(direction) = Flow::CutAfter(left - length as u64);
            (length, true)
        }
        Flow::Slow(bytes_per_second) => {
            drop(faults);
            thread::sleep(Duration::from_secs_f64(length as f64 / f64::from(bytes_per_second.max(1))));
            faults = shared.lock();
            (length, true)
        }
        Flow::Open | Flow::Stalled => (length, true),
    };
    *faults.bytes(direction) += outcome.0 as u64;
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait;

    /// A server that sends back what it gets, and a connection to it through a proxy.
    fn echo() -> (Proxy, TcpStream) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let proxy = Proxy::to(listener.local_addr().unwrap().port()).unwrap();
        thread::spawn(move || {
            for connection in listener.incoming() {
                let mut reader = connection.unwrap();
                let mut writer = reader.try_clone().unwrap();
                thread::spawn(move || std::io::copy(&mut reader, &mut writer));
            }
        });
        let stream = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        (proxy, stream)
    }

    fn read(stream: &mut TcpStream, length: usize) -> std::io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        stream.read_exact(&mut bytes).map(|()| bytes)
    }

    #[test]
    fn bytes_pass_both_ways_and_are_counted() {
        let (proxy, mut stream) = echo();
        stream.write_all(b"hello").unwrap();
        assert_eq!(read(&mut stream, 5).unwrap(), b"hello");
        assert_eq!((proxy.accepted(), proxy.bytes(Direction::ToServer), proxy.bytes(Direction::ToClient)), (1, 5, 5));
    }

    #[test]
    fn a_stalled_direction_delivers_later_and_a_swallowed_one_never() {
        let (proxy, mut stream) = echo();
        proxy.set(Direction::ToClient, Flow::Stalled);
        stream.write_all(b"late").unwrap();
        assert!(read(&mut stream, 1).is_err(), "nothing arrives while it is stalled");
        proxy.set(Direction::ToClient, Flow::Open);
        assert_eq!(read(&mut stream, 4).unwrap(), b"late");
        proxy.set(Direction::ToServer, Flow::Swallowed);
        stream.write_all(b"lost").unwrap();
        assert!(read(&mut stream, 1).is_err());
        proxy.set(Direction::ToServer, Flow::Open);
        stream.write_all(b"next").unwrap();
        assert_eq!(read(&mut stream, 4).unwrap(), b"next");
    }

    #[test]
    fn a_connection_is_cut_after_exactly_so_many_bytes() {
        let (proxy, mut stream) = echo();
        proxy.set(Direction::ToClient, Flow::CutAfter(7));
        stream.write_all(b"0123456789").unwrap();
        let mut arrived = Vec::new();
        let _ = stream.read_to_end(&mut arrived);
        assert_eq!(arrived, b"0123456");
    }

    #[test]
    fn a_reset_ends_connections_and_refusing_ends_new_ones() {
        let (proxy, mut stream) = echo();
        stream.write_all(b"x").unwrap();
        read(&mut stream, 1).unwrap();
        proxy.reset();
        let ended = wait::until("the end", wait::LONG, || Ok(matches!(stream.read(&mut [0]), Ok(0)).then_some(())));
        ended.unwrap();
        proxy.refuse(true);
        let mut refused = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
        assert!(!matches!(refused.read(&mut [0]), Ok(1..)));
        proxy.refuse(false);
        let mut again = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
        again.write_all(b"y").unwrap();
        assert_eq!(read(&mut again, 1).unwrap(), b"y");
    }
}
