//! A wire that can be cut: passes bytes on between a client and a server.

use std::{
    io,
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard},
    thread,
};

/// Listens on a port of its own for as long as it lives; what is under way ends with it.
pub struct Proxy {
    pub at: SocketAddr,
    wires: Arc<Mutex<Wires>>,
}

#[derive(Default)]
struct Wires {
    sockets: Vec<TcpStream>,
    closed: bool,
}

impl Proxy {
    pub fn to(server: SocketAddr) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let at = listener.local_addr().expect("it is bound");
        let wires = Arc::new(Mutex::new(Wires::default()));
        let theirs = Arc::clone(&wires);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let mut wires = lock(&theirs);
                if wires.closed {
                    return;
                }
                let Ok(server) = TcpStream::connect(server) else { continue };
                for (from, into) in [(&client, &server), (&server, &client)] {
                    let another = |it: &TcpStream| it.try_clone().expect("a second handle");
                    let (mut from, mut into) = (another(from), another(into));
                    wires.sockets.push(another(&from));
                    thread::spawn(move || {
                        // However it ends, the other direction has no purpose any more.
                        let _ended = io::copy(&mut from, &mut into);
                        let _gone = into.shutdown(Shutdown::Both);
                        let _gone = from.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        Proxy { at, wires }
    }

    /// Cuts everything that is under way. Whoever comes then is passed on again.
    pub fn cut(&self) {
        for socket in lock(&self.wires).sockets.drain(..) {
            let _gone = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        lock(&self.wires).closed = true;
        self.cut();
        // The thread that listens wakes up, and sees that it is over.
        let _woken = TcpStream::connect(self.at);
    }
}

fn lock(wires: &Mutex<Wires>) -> MutexGuard<'_, Wires> {
    wires.lock().expect("nobody panics while it holds this")
}
