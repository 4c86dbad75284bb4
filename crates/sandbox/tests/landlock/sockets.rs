//! Connections.

use super::attack_world::{AttackWorld, assert_refused, assert_works, text_of, words};
use jackfield_sandbox::plan::NetworkPlan;
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::Path;
use std::thread;

/// Serves a Unix socket until the test ends: sends one byte to each client.
fn serve_byte(path: impl AsRef<Path>, byte: u8) {
    let listener = UnixListener::bind(path).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let _gone = stream.unwrap().write_all(&[byte]);
        }
    });
}

fn loopback_listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

/// A proxy plan without a proxy, for attacks that must not reach it.
fn proxy() -> NetworkPlan {
    NetworkPlan::Proxy { socket: "/nonexistent".into() }
}

#[test]
fn unix_socket_outside_the_writable_folder_cannot_be_reached() {
    for network in [NetworkPlan::None, NetworkPlan::All] {
        for folder in ["hidden", "readonly"] {
            let socket = |world: &AttackWorld| {
                let path = world.path(&format!("{folder}/socket"));
                serve_byte(&path, b'f');
                path
            };
            assert_refused(&network, |world| words(&["unix", &socket(world)]));
            assert_refused(&network, |world| {
                socket(world);
                words(&["unix-relative", &world.path(folder), "socket"])
            });
            assert_refused(&network, |world| {
                words(&["unix-link", &socket(world), &world.path("workspace/link")])
            });
        }
    }
}

#[test]
fn unix_socket_in_the_writable_folder_can_be_reached() {
    let world = AttackWorld::new(NetworkPlan::None);
    serve_byte(world.path("workspace/socket"), b'p');
    assert_works(&world, &words(&["unix", &world.path("workspace/socket")]));
    assert_works(&world, &words(&["unix-relative", &world.path("workspace"), "socket"]));
    assert_works(&world, &words(&["own-unix", &world.path("workspace/own")]));
}

#[test]
fn datagram_and_abstract_unix_sockets_are_refused() {
    for network in [NetworkPlan::None, NetworkPlan::All] {
        for attack in ["unix-datagram", "unix-pair-datagram"] {
            let receivers = std::cell::RefCell::new(Vec::new());
            assert_refused(&network, |world| {
                let path = world.path("hidden/datagram");
                receivers.borrow_mut().push(UnixDatagram::bind(&path).unwrap());
                words(&[attack, &path])
            });
        }
        let name = format!("jackfield-test-{}-{network:?}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let _listener = UnixListener::bind_addr(&address).unwrap();
        assert_refused(&network, |_| words(&["abstract", &name]));
    }
}

#[test]
fn port_of_the_loopback_interface_cannot_be_reached() {
    let (_listener, address) = loopback_listener();
    for network in [NetworkPlan::None, proxy()] {
        assert_refused(&network, |_| words(&["tcp", &address]));
        assert_refused(&network, |_| words(&["tcp-fast-open", &address]));
    }
    assert_works(&AttackWorld::new(NetworkPlan::All), &words(&["tcp", &address]));
}

#[test]
fn server_of_the_process_is_reached_by_the_process_only() {
    for (bound, connected) in [
        ("127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("[::]", "127.0.0.1"),
        ("[::]", "[::1]"),
    ] {
        // The port has a server of the machine, which the process neither disturbs nor reaches.
        let (other, address) = loopback_listener();
        let port = address.rsplit(':').next().unwrap();
        let world = AttackWorld::new(proxy());
        let args = [format!("{bound}:{port}"), format!("{connected}:{port}")];
        assert_works(&world, &words(&["own-tcp", &args[0], &args[1]]));
        other.set_nonblocking(true).unwrap();
        assert_eq!(other.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    }
    assert_works(&AttackWorld::new(NetworkPlan::None), &words(&["own-tcp", "127.0.0.1:0", ""]));
}

#[test]
fn connections_from_other_machines_are_refused() {
    assert_refused(&proxy(), |_| words(&["tcp-listen-unbound"]));
    // An address of another interface; this one is reserved for documentation.
    let world = AttackWorld::new(proxy());
    let output = world.attack(&words(&["tcp-listen", "192.0.2.1:0"])).output().unwrap();
    assert!(text_of(&output).contains("code: 13"), "{}", text_of(&output));
}

#[test]
fn sockets_and_options_without_supervision_are_refused() {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = receiver.local_addr().unwrap().to_string();
    assert_refused(&proxy(), |_| words(&["udp", &address]));
    assert_refused(&proxy(), |_| words(&["tcp-source-route"]));
    let multipath = 262;
    let mut sockets = vec![(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_KOBJECT_UEVENT)];
    let number = |it: i32| it.to_string();
    let args =
        |it: (i32, i32, i32)| words(&["socket", &number(it.0), &number(it.1), &number(it.2)]);
    let free = AttackWorld::new(NetworkPlan::None);
    // Programs list the interfaces with it.
    assert_works(&free, &args((libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)));
    // Raw sockets need root, and multipath TCP a module of the kernel.
    let rare = [
        (libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP),
        (libc::AF_PACKET, libc::SOCK_RAW, 0),
        (libc::AF_INET, libc::SOCK_STREAM, multipath),
        (libc::AF_VSOCK, libc::SOCK_STREAM, 0),
    ];
    sockets
        .extend(rare.iter().filter(|it| free.free_attack(&args(**it)).status().unwrap().success()));
    for socket in sockets {
        assert_refused(&proxy(), |_| args(socket));
    }
}

#[test]
fn address_that_changes_during_the_call_does_not_lead_out() {
    assert_races_refused("1000");
}

#[test]
#[ignore = "nightly: takes half a minute"]
fn address_that_changes_during_many_calls_does_not_lead_out() {
    assert_races_refused("10000");
}

/// A thread of the attacker changes the address in memory while another one connects.
fn assert_races_refused(count: &str) {
    assert_refused(&NetworkPlan::None, |world| {
        let (permitted, forbidden) = (world.path("workspace/socket"), world.path("hidden/socket"));
        serve_byte(&permitted, b'p');
        serve_byte(&forbidden, b'f');
        words(&["race", &permitted, &forbidden, count])
    });
}

#[test]
fn request_reaches_the_proxy_through_the_variables_only() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("proxy");
    let listener = UnixListener::bind(&socket).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = String::new();
            stream.read_to_string(&mut request).unwrap();
            stream.write_all(format!("answer to {request}").as_bytes()).unwrap();
        }
    });
    let world = AttackWorld::new(NetworkPlan::Proxy { socket });
    let fetch = words(&["fetch", "http://example.com/"]);
    assert!(assert_works(&world, &fetch).contains("answer to GET http://example.com/ HTTP/1.1"));
    // Nothing listens on the address of the variables, so another process cannot use it.
    let mut free = world.free_attack(&fetch);
    let output = free.env("HTTP_PROXY", "http://127.0.0.1:3128").output().unwrap();
    assert!(text_of(&output).contains("ConnectionRefused"), "{}", text_of(&output));
}
