//! Attacks with sockets.

use crate::check;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

pub(crate) fn run(attack: &str, args: &[&str]) -> Option<io::Result<()>> {
    Some(match (attack, args) {
        ("unix", [path]) => UnixStream::connect(path).map(drop),
        ("unix-relative", [directory, path]) => {
            std::env::set_current_dir(directory).and_then(|()| UnixStream::connect(path).map(drop))
        }
        ("unix-link", [target, link]) => connect_through_link(target, link),
        ("unix-datagram", [path]) => {
            UnixDatagram::unbound().and_then(|it| it.send_to(b"x", path)).map(drop)
        }
        ("unix-pair-datagram", [path]) => {
            UnixDatagram::pair().and_then(|(it, _)| it.send_to(b"x", path)).map(drop)
        }
        ("abstract", [name]) => SocketAddr::from_abstract_name(name)
            .and_then(|it| UnixStream::connect_addr(&it))
            .map(drop),
        ("own-unix", [path]) => serve_unix(path),
        ("tcp", [address]) => TcpStream::connect(address).map(drop),
        ("own-tcp", [bound, connected]) => serve_tcp(bound, connected),
        ("tcp-fast-open", [address]) => send_fast_open(address),
        ("tcp-listen", [address]) => TcpListener::bind(address).map(drop),
        ("tcp-listen-unbound", []) => listen_unbound(),
        ("tcp-source-route", []) => set_source_route(),
        ("udp", [address]) => {
            UdpSocket::bind("127.0.0.1:0").and_then(|it| it.send_to(b"x", address)).map(drop)
        }
        ("socket", [family, kind, protocol]) => make_socket(family, kind, protocol),
        ("race", [permitted, forbidden, count]) => race_addresses(permitted, forbidden, count),
        ("fetch", [url]) => fetch_through_proxy(url),
        _ => return None,
    })
}

fn connect_through_link(target: &str, link: &str) -> io::Result<()> {
    let _old = std::fs::remove_file(link);
    std::os::unix::fs::symlink(target, link)?;
    UnixStream::connect(link).map(drop)
}

/// Not an attack: the process connects to a socket of its own, also if it has protected its memory.
fn serve_unix(path: &str) -> io::Result<()> {
    // SAFETY: the call takes numbers.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) })?;
    let listener = UnixListener::bind(path)?;
    let client = UnixStream::connect(path)?;
    listener.accept()?;
    drop(client);
    std::fs::remove_file(path)
}

/// Not an attack: the process connects to a server of its own.
fn serve_tcp(bound: &str, connected: &str) -> io::Result<()> {
    let listener = TcpListener::bind(bound)?;
    let local = listener.local_addr()?.to_string();
    let connected = if connected.is_empty() { &local } else { connected };
    let mut client = TcpStream::connect(connected)?;
    listener.accept()?.0.write_all(b"x")?;
    client.read_exact(&mut [0])?;
    drop(listener);
    let refusal = TcpStream::connect(connected).err().map(|it| it.kind());
    let is_refused = refusal == Some(io::ErrorKind::ConnectionRefused);
    if is_refused { Ok(()) } else { Err(io::Error::other("the server is still reached")) }
}

fn make_socket(family: &str, kind: &str, protocol: &str) -> io::Result<()> {
    let number = |text: &str| text.parse::<i32>().map_err(io::Error::other);
    // SAFETY: the call takes numbers.
    check(unsafe { libc::socket(number(family)?, number(kind)?, number(protocol)?) }).map(drop)
}

/// Sends data with the first packet, without `connect`.
fn send_fast_open(address: &str) -> io::Result<()> {
    let address: std::net::SocketAddrV4 = address.parse().map_err(io::Error::other)?;
    let raw = libc::sockaddr_in {
        sin_family: u16::try_from(libc::AF_INET).map_err(io::Error::other)?,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
        sin_zero: [0; 8],
    };
    // SAFETY: the address and the data are valid for the lengths that are passed.
    unsafe {
        let socket = check(libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0))?;
        let socket = i32::try_from(socket).map_err(io::Error::other)?;
        let sent = libc::sendto(
            socket,
            b"x".as_ptr().cast(),
            1,
            libc::MSG_FASTOPEN,
            (&raw const raw).cast(),
            16,
        );
        check(sent as i64).map(drop)
    }
}

/// The kernel chooses a port on all interfaces.
fn listen_unbound() -> io::Result<()> {
    // SAFETY: the calls take numbers.
    unsafe {
        let socket = check(libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0))?;
        check(libc::listen(i32::try_from(socket).map_err(io::Error::other)?, 1)).map(drop)
    }
}

/// The packets of a connection with this option go to another host first.
fn set_source_route() -> io::Result<()> {
    let route: [u8; 8] = [131, 7, 4, 192, 0, 2, 1, 0];
    // SAFETY: the option has the length that is passed.
    unsafe {
        let socket = check(libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0))?;
        let socket = i32::try_from(socket).map_err(io::Error::other)?;
        let option =
            libc::setsockopt(socket, libc::IPPROTO_IP, libc::IP_OPTIONS, route.as_ptr().cast(), 8);
        check(option).map(drop)
    }
}

/// Two threads: one connects, the other changes the address in memory. Works if a connection reaches the
/// forbidden socket. Only calls during which the address has changed are counted.
fn race_addresses(permitted: &str, forbidden: &str, count: &str) -> io::Result<()> {
    let count: usize = count.parse().map_err(io::Error::other)?;
    let address = |path: &str| {
        let mut bytes = [0_u8; 110];
        bytes[..2].copy_from_slice(&1_u16.to_ne_bytes());
        bytes[2..2 + path.len()].copy_from_slice(path.as_bytes());
        bytes
    };
    let (permitted, forbidden) = (address(permitted), address(forbidden));
    let mut memory = permitted;
    let shared = SharedAddress(&raw mut memory);
    let (is_over, changes) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let shared = &shared;
            while !is_over.load(Ordering::Relaxed) {
                for bytes in [forbidden, permitted] {
                    // SAFETY: only the kernel reads the memory meanwhile.
                    unsafe { shared.0.write_volatile(bytes) };
                }
                changes.fetch_add(1, Ordering::Relaxed);
            }
        });
        let races = (0..100 * count).filter_map(|_| {
            let before = changes.load(Ordering::Relaxed);
            let peer = connect_raw(shared.0);
            let has_changed = changes.load(Ordering::Relaxed) != before;
            (has_changed || matches!(peer, Ok(true))).then_some(peer)
        });
        let peers: Vec<bool> = races.take(count).filter_map(Result::ok).collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(peers.contains(&false), "no connection reached the permitted socket");
        if peers.contains(&true) {
            Ok(())
        } else {
            Err(io::Error::other("no forbidden connection"))
        }
    })
}

struct SharedAddress(*mut [u8; 110]);
// SAFETY: the memory lives longer than both threads, and torn addresses are a part of the attack.
unsafe impl Sync for SharedAddress {}

/// Whether the peer is the forbidden socket, which sends an `f`.
fn connect_raw(address: *const [u8; 110]) -> io::Result<bool> {
    use std::os::fd::FromRawFd;
    // SAFETY: the address is valid for its length, and the descriptor is new.
    let mut stream = unsafe {
        let socket = check(libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0))?;
        let socket = i32::try_from(socket).map_err(io::Error::other)?;
        let stream = UnixStream::from_raw_fd(socket);
        check(libc::connect(socket, address.cast(), 110))?;
        stream
    };
    let mut byte = [0];
    stream.read_exact(&mut byte)?;
    Ok(byte == *b"f")
}

/// Not an attack: a request as an HTTP client makes it from the proxy variables.
#[expect(clippy::print_stdout, reason = "the test reads the response")]
fn fetch_through_proxy(url: &str) -> io::Result<()> {
    let proxy = std::env::var("HTTP_PROXY").map_err(io::Error::other)?;
    let address = proxy.strip_prefix("http://").unwrap_or(&proxy);
    let address: std::net::SocketAddr = address.parse().map_err(io::Error::other)?;
    // With a limit the standard library connects without waiting and then polls.
    let mut stream = TcpStream::connect_timeout(&address, std::time::Duration::from_secs(5))?;
    write!(stream, "GET {url} HTTP/1.1\r\n\r\n")?;
    stream.shutdown(std::net::Shutdown::Write)?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    println!("{response}");
    Ok(())
}
