//! A listener on 127.0.0.1 for test servers in this process, and loopback addresses for test servers that are programs.

use std::{
    io,
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread::{self, JoinHandle},
};

/// Accepts connections, each on its own thread. When dropped, it stops accepting and waits for these threads; the owner
/// must have closed their connections.
#[derive(Debug)]
pub(crate) struct Loopback {
    pub(crate) addr: SocketAddr,
    stopping: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Loopback {
    /// Listens on this port; 0 is a free one.
    pub(crate) fn start(
        port: u16,
        serve: impl Fn(TcpStream) + Send + Sync + 'static,
    ) -> io::Result<Loopback> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let (addr, stopping) = (listener.local_addr()?, Arc::new(AtomicBool::new(false)));
        let flag = Arc::clone(&stopping);
        let acceptor = thread::spawn(move || accept(&listener, &flag, &Arc::new(serve)));
        Ok(Loopback { addr, stopping, acceptor: Some(acceptor) })
    }

    /// Waits until the listener ends, which only happens if its socket fails.
    pub(crate) fn wait(mut self) {
        self.join();
    }

    fn join(&mut self) {
        if let Some(acceptor) = self.acceptor.take() {
            // The thread has printed its panic.
            let _ = acceptor.join();
        }
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Wakes the acceptor, which checks the flag.
        let _ = TcpStream::connect(self.addr).and_then(|it| it.shutdown(Shutdown::Both));
        self.join();
    }
}

fn accept(
    listener: &TcpListener,
    stopping: &AtomicBool,
    serve: &Arc<impl Fn(TcpStream) + Send + Sync + 'static>,
) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    for stream in listener.incoming() {
        if stopping.load(Ordering::SeqCst) {
            break;
        }
        let Ok(stream) = stream else { break };
        threads.retain(|it| !it.is_finished());
        let serve = Arc::clone(serve);
        threads.push(thread::spawn(move || serve(stream)));
    }
    for thread in threads {
        let _ = thread.join();
    }
}

/// A loopback address for this process alone, so that no other process takes the port of a server that is down. It is
/// made of the pid, which has 22 bits, and a number.
pub(crate) fn own_loopback() -> Ipv4Addr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed) % 4;
    let below = (std::process::id() << 2 | number) & 0x00FF_FFFF;
    Ipv4Addr::from_bits(Ipv4Addr::new(127, 0, 0, 0).to_bits() | below)
}
