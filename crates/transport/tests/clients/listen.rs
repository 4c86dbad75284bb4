//! The socket file: private, and never taken from a running daemon.

use crate::harness::{EventCollector, SocketFolder, start_blocking, within};
use jackfield_transport::{
    AcceptError, AuthRefusal, BindError, ClientAuthenticator, ClientListener, DialError,
    EndpointAddress, dial_daemon, dial_daemon_blocking, dial_until_ready,
};
use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const NOBODY: u32 = 65534;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn refused(folder: &SocketFolder) -> String {
    ClientListener::bind(&folder.address(), None).unwrap_err().to_string()
}

#[tokio::test]
async fn socket_is_private_regardless_of_the_umask() {
    let folder = SocketFolder::new();
    let umask = rustix::process::umask(rustix::fs::Mode::empty());
    let listener = ClientListener::bind(&folder.address(), None);
    rustix::process::umask(umask);
    let listener = listener.unwrap();
    assert_eq!(listener.address(), &folder.address());
    assert_eq!(mode(&folder.path()), 0o600);
    drop(listener);
    assert!(!folder.path().exists(), "it is removed with its listener");
}

#[tokio::test]
async fn stale_socket_is_replaced() {
    let folder = SocketFolder::new();
    drop(UnixListener::bind(folder.path()).unwrap());
    assert!(folder.path().exists());
    let mut listener = ClientListener::bind(&folder.address(), None).unwrap();
    let _there = dial_daemon(&folder.address(), None).await.unwrap();
    within(listener.accept()).await.unwrap();
}

#[tokio::test]
async fn socket_in_use_is_refused_and_keeps_working() {
    let folder = SocketFolder::new();
    let mut listener = ClientListener::bind(&folder.address(), None).unwrap();
    let error = refused(&folder);
    assert!(error.contains("a daemon answers on"), "{error}");
    // The check for a running daemon was itself a client.
    within(listener.accept()).await.unwrap();
    let _there = dial_daemon(&folder.address(), None).await.unwrap();
    within(listener.accept()).await.unwrap();
}

#[tokio::test]
async fn only_one_of_many_concurrent_starts_gets_a_stale_socket() {
    let folder = SocketFolder::new();
    drop(UnixListener::bind(folder.path()).unwrap());
    let attempts: Vec<_> = (0..8)
        .map(|_| {
            let address = folder.address();
            start_blocking(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = runtime.unwrap();
                let _entered = runtime.enter();
                let bound = ClientListener::bind(&address, None);
                // Keeps the listener until all threads have tried.
                bound.map(|listener| (listener, runtime))
            })
        })
        .collect();
    let mut listeners = Vec::new();
    for attempt in attempts {
        match attempt.await {
            Ok(listener) => listeners.push(listener),
            Err(error) => assert!(matches!(error, BindError::InUse { .. }), "{error}"),
        }
    }
    assert_eq!(listeners.len(), 1);
    dial_daemon(&folder.address(), None).await.unwrap();
    // A runtime must not end inside another one.
    for (listener, runtime) in listeners {
        drop(listener);
        runtime.shutdown_background();
    }
}

#[tokio::test]
async fn socket_file_of_another_process_is_not_removed() {
    let folder = SocketFolder::new();
    let listener = ClientListener::bind(&folder.address(), None).unwrap();
    fs::remove_file(folder.path()).unwrap();
    let _other = UnixListener::bind(folder.path()).unwrap();
    drop(listener);
    assert!(folder.path().exists());
}

#[tokio::test]
async fn existing_file_that_is_not_a_socket_is_kept() {
    let folder = SocketFolder::new();
    fs::write(folder.path(), "precious").unwrap();
    assert!(refused(&folder).contains("not a socket: move it"), "{}", refused(&folder));
    assert_eq!(fs::read_to_string(folder.path()).unwrap(), "precious");
}

#[tokio::test]
async fn folder_accessible_to_others_is_refused() {
    let folder = SocketFolder::new();
    for open in [0o755, 0o710, 0o701, 0o1777] {
        chmod(folder.dir.path(), open);
        let error = refused(&folder);
        assert!(error.contains(&format!("(mode {open:o})")), "{error}");
        assert!(error.contains("chmod 700"), "{error}");
    }
    assert!(!folder.path().exists());
}

#[tokio::test]
async fn missing_folder_and_long_path_are_refused_with_a_hint() {
    let folder = SocketFolder::new();
    let bind = |path| ClientListener::bind(&EndpointAddress::Unix(path), None).unwrap_err();
    let error = bind(folder.dir.path().join("no/socket")).to_string();
    assert!(error.contains("mkdir -m 700"), "{error}");
    let error = bind(folder.dir.path().join("x".repeat(120))).to_string();
    assert!(error.contains("to a shorter directory"), "{error}");
}

#[tokio::test]
async fn tcp_is_bound_only_on_loopback_and_only_with_a_token() {
    let folder = SocketFolder::new();
    let bind = |text: &str, keys| {
        ClientListener::bind(&text.parse().unwrap(), keys).unwrap_err().to_string()
    };
    let keys = ClientAuthenticator::from(&folder.token());
    assert!(bind("tcp://0.0.0.0:0", Some(&keys)).contains("without TLS"));
    assert!(bind("tcp://127.0.0.1:0", None).contains("needs a token"));
    let insecure = ClientListener::bind_insecure("0.0.0.0:0".parse().unwrap(), Some(&keys));
    assert!(insecure.unwrap().address().require_private().is_err());
    let listener = folder.tcp();
    assert!(!listener.address().to_string().ends_with(":0"), "the port that was chosen is known");
    let error = bind(&listener.address().to_string(), Some(&keys));
    assert!(error.contains("cannot listen on"), "{error}");
}

#[tokio::test]
async fn bind_open_accepts_this_machine_only() {
    let folder = SocketFolder::new();
    for (safe, mode_of_folder) in [(true, 0o755), (true, 0o1777), (false, 0o777), (false, 0o720)] {
        chmod(folder.dir.path(), mode_of_folder);
        match ClientListener::bind_open(&folder.address()) {
            Ok(_listener) if safe => assert_eq!(mode(&folder.path()), 0o600),
            Err(error) if !safe => assert!(error.to_string().contains("only you"), "{error}"),
            other => panic!("{mode_of_folder:o}: {other:?}"),
        }
    }
    let error = ClientListener::bind_open(&"tcp://0.0.0.0:0".parse().unwrap()).unwrap_err();
    assert!(error.to_string().contains("without TLS"), "{error}");
    let mut listener = ClientListener::bind_open(&"tcp://127.0.0.1:0".parse().unwrap()).unwrap();
    let EndpointAddress::Tcp(at) = *listener.address() else { panic!("no TCP") };
    let mut there = std::net::TcpStream::connect(at).unwrap();
    let mut collector = EventCollector::new();
    let _handle = collector.open(within(listener.accept()).await.unwrap(), 1).await;
    there.write_all(b"{\"id\":1,\"method\":\"a\"}\n").unwrap();
    assert_eq!(collector.texts(1).await, [r#"{"id":1,"method":"a"}"#]);
}

#[tokio::test]
async fn stdio_has_only_one_client() {
    let mut listener = ClientListener::bind(&"stdio://".parse().unwrap(), None).unwrap();
    assert_eq!(listener.address().to_string(), "stdio://");
    // The first one is this test's own stdin and stdout, and is not read.
    drop(within(listener.accept()).await);
    let mut second = Box::pin(listener.accept());
    for _ in 0..50 {
        tokio::select! {
            biased;
            _ = &mut second => panic!("stdio is there once"),
            () = tokio::task::yield_now() => {}
        }
    }
}

/// Python as another user; `None` if we may not change the user.
fn as_nobody(script: &str, path: &Path) -> Option<Command> {
    if rustix::process::geteuid().as_raw() != 0 {
        return None;
    }
    let mut python = Command::new("python3");
    python.args(["-c", script]).arg(path).uid(NOBODY).gid(NOBODY).current_dir("/");
    python.stdin(Stdio::null()).stdout(Stdio::piped());
    Some(python)
}

#[tokio::test]
async fn other_user_is_refused_even_if_the_file_is_accessible() {
    let folder = SocketFolder::new();
    let mut listener = ClientListener::bind(&folder.address(), None).unwrap();
    let script = "import socket,sys;s=socket.socket(socket.AF_UNIX);s.connect(sys.argv[1])\n\
                  sys.stdout.write(s.makefile().read())";
    let Some(mut python) = as_nobody(script, &folder.path()) else { return };
    let closed = python.stderr(Stdio::null()).output().unwrap();
    assert!(!closed.status.success(), "the folder alone keeps others out");
    chmod(folder.dir.path(), 0o755);
    chmod(&folder.path(), 0o666);
    let answer =
        start_blocking(move || as_nobody(script, &folder.path()).unwrap().output().unwrap());
    let error = within(listener.accept()).await.unwrap_err();
    let AcceptError::Refused { why: AuthRefusal::OtherUser { uid: NOBODY, own_uid: 0 }, .. } =
        error
    else {
        panic!("{error:?}");
    };
    let heard = String::from_utf8(answer.await.stdout).unwrap();
    assert!(heard.starts_with(r#"{"jsonrpc":"2.0","id":null,"error":"#), "{heard}");
    assert!(heard.contains("uid 65534 may not use"), "{heard}");
}

#[test]
fn socket_of_another_user_is_refused_by_the_client() {
    let folder = SocketFolder::new();
    let script = "import socket,sys;s=socket.socket(socket.AF_UNIX);s.bind(sys.argv[1]);\
                  s.listen();print(flush=True);s.accept()[0].recv(1)";
    chmod(folder.dir.path(), 0o777);
    let Some(mut python) = as_nobody(script, &folder.path()) else { return };
    let mut python = python.spawn().unwrap();
    std::io::Read::read_exact(python.stdout.as_mut().unwrap(), &mut [0]).unwrap();
    let error = dial_daemon_blocking(&folder.address(), None).unwrap_err();
    assert!(matches!(error, DialError::NotOurs { uid: NOBODY, .. }), "{error}");
    assert!(python.wait().unwrap().success(), "it heard nothing but our end");
}

#[tokio::test]
async fn client_that_disconnects_before_the_accept_is_reported_gone() {
    let folder = SocketFolder::new();
    let mut listener = ClientListener::bind(&folder.address(), None).unwrap();
    drop(dial_daemon_blocking(&folder.address(), None).unwrap());
    let mut collector = EventCollector::new();
    let stream = within(listener.accept()).await.unwrap();
    let _handle = collector.open(stream, 1).await;
    assert!(collector.until_gone().await.is_empty());
}

/// A listener like that of the bus, which does not create its folder.
#[tokio::test]
async fn removed_socket_file_is_created_again() {
    let folder = SocketFolder::new();
    let mut listener = ClientListener::bind_open(&folder.address()).unwrap();
    fs::remove_file(folder.path()).unwrap();
    let (path, address) = (folder.path(), folder.address());
    let dialling = tokio::task::spawn_blocking(move || {
        dial_until_ready(&address, None, Duration::from_secs(10), || Ok(()))
    });
    within(listener.accept()).await.unwrap();
    dialling.await.unwrap().unwrap();
    assert_eq!(mode(&path), 0o600);
    drop(listener);

    let folder = folder.dir.path().join("own");
    fs::create_dir(&folder).unwrap();
    chmod(&folder, 0o700);
    let path = folder.join("s");
    let mut listener = ClientListener::bind_own(&path).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let address = EndpointAddress::Unix(path.clone());
    let dialling = tokio::task::spawn_blocking(move || {
        dial_until_ready(&address, None, Duration::from_secs(10), || Ok(()))
    });
    within(listener.accept()).await.unwrap();
    dialling.await.unwrap().unwrap();
    assert_eq!((mode(&folder), mode(&path)), (0o700, 0o600));
}
