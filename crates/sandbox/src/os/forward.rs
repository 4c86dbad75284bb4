//! Forwards TCP connections on the loopback interface to the Unix socket of the network proxy.

use std::{
    io,
    net::{Shutdown, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

/// Browsers and package managers open a few dozen connections.
const CONNECTIONS_MAX: usize = 512;
const STACK_BYTES: usize = 128 * 1024;
/// After a failed `accept`, which happens if too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Serves until the process ends.
pub(crate) fn forward_connections(listener: &TcpListener, socket: &Path) -> ! {
    static OPEN: AtomicUsize = AtomicUsize::new(0);
    loop {
        let Ok((client, _)) = listener.accept() else {
            thread::sleep(ACCEPT_PAUSE);
            continue;
        };
        if CONNECTIONS_MAX <= OPEN.load(Ordering::Relaxed) {
            continue;
        }
        OPEN.fetch_add(1, Ordering::Relaxed);
        let socket = socket.to_owned();
        let started = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
            // The client sees the end of its connection.
            let _closed = forward_connection(&client, &socket);
            OPEN.fetch_sub(1, Ordering::Relaxed);
        });
        if started.is_err() {
            OPEN.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn forward_connection(client: &TcpStream, socket: &Path) -> io::Result<()> {
    copy_both_ways(client, &UnixStream::connect(socket)?)
}

/// Returns when both directions have ended.
pub(crate) fn copy_both_ways(client: &TcpStream, proxy: &UnixStream) -> io::Result<()> {
    client.set_nodelay(true)?;
    thread::scope(|scope| {
        let upwards = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, || {
            let copied = io::copy(&mut &*client, &mut &*proxy);
            let _is_closed = proxy.shutdown(Shutdown::Write);
            copied
        })?;
        let copied = io::copy(&mut &*proxy, &mut &*client);
        let _is_closed = client.shutdown(Shutdown::Write);
        if copied.is_err() {
            let _is_closed = proxy.shutdown(Shutdown::Both);
        }
        let _ended = upwards.join();
        copied.map(|_| ())
    })
}
