//! A listener on 127.0.0.1 for the servers that tests talk to, and addresses for those that are programs.

use std::{
    io,
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread::{self, JoinHandle},
};

/// Takes connections, each on a thread of its own. Dropped, it takes no more and waits for those
/// threads: who drops it has ended their connections.
#[derive(Debug)]
pub(crate) struct Loopback {
    pub(crate) addr: SocketAddr,
    stopping: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Loopback {
    /// On this port; 0: a free one.
    pub(crate) fn start(
        port: u16,
        converse: impl Fn(TcpStream) + Send + Sync + 'static,
    ) -> io::Result<Loopback> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let (addr, stopping) = (listener.local_addr()?, Arc::new(AtomicBool::new(false)));
        let flag = Arc::clone(&stopping);
        let acceptor = thread::spawn(move || accept(&listener, &flag, &Arc::new(converse)));
        Ok(Loopback { addr, stopping, acceptor: Some(acceptor) })
    }

    /// Waits until it ends, which it does by itself only if its socket breaks.
    pub(crate) fn wait(mut self) {
        self.join();
    }

    fn join(&mut self) {
        if let Some(acceptor) = self.acceptor.take() {
            // A panic there was printed there.
            let _ = acceptor.join();
        }
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Wakes the acceptor, which sees the flag.
        let _ = TcpStream::connect(self.addr).and_then(|it| it.shutdown(Shutdown::Both));
        self.join();
    }
}

fn accept(
    listener: &TcpListener,
    stopping: &AtomicBool,
    converse: &Arc<impl Fn(TcpStream) + Send + Sync + 'static>,
) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    for stream in listener.incoming() {
        if stopping.load(Ordering::SeqCst) {
            break;
        }
        let Ok(stream) = stream else { break };
        threads.retain(|it| !it.is_finished());
        let converse = Arc::clone(converse);
        threads.push(thread::spawn(move || converse(stream)));
    }
    for thread in threads {
        let _ = thread.join();
    }
}

/// An address of loopback that is ours alone, so that nobody takes the port of a server that is down.
/// It is made of our pid, which has 22 bits, and a number.
pub(crate) fn own_loopback() -> Ipv4Addr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed) % 4;
    let below = (std::process::id() << 2 | number) & 0x00FF_FFFF;
    Ipv4Addr::from_bits(Ipv4Addr::new(127, 0, 0, 0).to_bits() | below)
}
