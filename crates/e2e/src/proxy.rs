//! A proxy that forwards bytes between a client and a server until it cuts the connection.

use std::{
    io::{self, Read as _},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard},
    thread,
};

/// Listens on a port of its own until it is dropped, which also cuts its connections.
pub struct Proxy {
    pub at: SocketAddr,
    wires: Arc<Mutex<Wires>>,
}

/// What the proxy does with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Lives,
    /// Cut after this many bytes from the server.
    IsCutAfter(u64),
    /// The same, but without closing the connection.
    FallsSilentAfter(u64),
}

struct Wires {
    server: SocketAddr,
    sockets: Vec<TcpStream>,
    closed: bool,
    broken: usize,
}

impl Proxy {
    /// A proxy that forwards until `cut` is called.
    pub fn to(server: SocketAddr) -> Proxy {
        Proxy::that_breaks(server, |_| Fate::Lives)
    }

    /// The behavior of a connection depends on how many there were before.
    pub fn that_breaks(server: SocketAddr, fate: fn(usize) -> Fate) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let at = listener.local_addr().expect("it is bound");
        let wires = Wires { server, sockets: Vec::new(), closed: false, broken: 0 };
        let wires = Arc::new(Mutex::new(wires));
        let theirs = Arc::clone(&wires);
        thread::spawn(move || {
            for (index, client) in listener.incoming().map_while(Result::ok).enumerate() {
                if lock(&theirs).closed {
                    return;
                }
                carry(&theirs, &client, fate(index));
            }
        });
        Proxy { at, wires }
    }

    /// The server has moved: new connections are forwarded there.
    pub fn lead_to(&self, server: SocketAddr) {
        lock(&self.wires).server = server;
    }

    /// Cuts all connections. New ones are forwarded again.
    pub fn cut(&self) {
        for socket in lock(&self.wires).sockets.drain(..) {
            let _gone = socket.shutdown(Shutdown::Both);
        }
    }

    /// The number of connections that were cut by their limit.
    pub fn broken(&self) -> usize {
        lock(&self.wires).broken
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        lock(&self.wires).closed = true;
        self.cut();
        // Wakes the listening thread, which checks the flag.
        let _woken = TcpStream::connect(self.at);
    }
}

/// Starts to forward both directions.
fn carry(wires: &Arc<Mutex<Wires>>, client: &TcpStream, fate: Fate) {
    let server = lock(wires).server;
    let Ok(server) = TcpStream::connect(server) else { return };
    let another = |it: &TcpStream| it.try_clone().expect("a second handle");
    let (limit, silently) = match fate {
        Fate::Lives => (u64::MAX, false),
        Fate::IsCutAfter(bytes) => (bytes, false),
        Fate::FallsSilentAfter(bytes) => (bytes, true),
    };
    for (from, into, limit) in [(client, &server, u64::MAX), (&server, client, limit)] {
        let (from, mut into, wires) = (another(from), another(into), Arc::clone(wires));
        lock(&wires).sockets.push(another(&from));
        thread::spawn(move || {
            // When one direction ends, the other one is closed, too.
            let carried = io::copy(&mut (&from).take(limit), &mut into);
            if carried.is_ok_and(|it| it == limit) {
                lock(&wires).broken += 1;
                if silently {
                    return;
                }
            }
            let _gone = into.shutdown(Shutdown::Both);
            let _gone = from.shutdown(Shutdown::Both);
        });
    }
}

fn lock(wires: &Mutex<Wires>) -> MutexGuard<'_, Wires> {
    wires.lock().expect("no thread panics while it holds the lock")
}
