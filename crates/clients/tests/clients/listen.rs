//! The socket file: private, ours, and never taken from a living daemon.

use crate::desk::{Desk, Home, beside, within};
use jackfield_clients::{
    AcceptError, Address, BindError, DialError, Keys, Listener, Refusal, dial, dial_blocking,
    dial_until_up,
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

fn refused(home: &Home) -> String {
    Listener::bind(&home.address(), None).unwrap_err().to_string()
}

#[tokio::test]
async fn a_socket_is_private_whatever_the_umask_says() {
    let home = Home::new();
    let umask = rustix::process::umask(rustix::fs::Mode::empty());
    let listener = Listener::bind(&home.address(), None);
    rustix::process::umask(umask);
    let listener = listener.unwrap();
    assert_eq!(listener.address(), &home.address());
    assert_eq!(mode(&home.path()), 0o600);
    drop(listener);
    assert!(!home.path().exists(), "it is removed with its listener");
}

#[tokio::test]
async fn a_stale_socket_is_replaced() {
    let home = Home::new();
    drop(UnixListener::bind(home.path()).unwrap());
    assert!(home.path().exists());
    let mut listener = Listener::bind(&home.address(), None).unwrap();
    let _there = dial(&home.address(), None).await.unwrap();
    within(listener.accept()).await.unwrap();
}

#[tokio::test]
async fn a_living_socket_is_refused_and_lives_on() {
    let home = Home::new();
    let mut listener = Listener::bind(&home.address(), None).unwrap();
    let error = refused(&home);
    assert!(error.contains("a daemon answers on"), "{error}");
    // The question itself was a client that came and went.
    within(listener.accept()).await.unwrap();
    let _there = dial(&home.address(), None).await.unwrap();
    within(listener.accept()).await.unwrap();
}

#[tokio::test]
async fn of_many_that_start_at_once_on_a_stale_socket_one_listens() {
    let home = Home::new();
    drop(UnixListener::bind(home.path()).unwrap());
    let attempts: Vec<_> = (0..8)
        .map(|_| {
            let address = home.address();
            beside(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = runtime.unwrap();
                let _entered = runtime.enter();
                let bound = Listener::bind(&address, None);
                // Keeps it alive until all have tried; the last one out removes nothing twice.
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
    dial(&home.address(), None).await.unwrap();
    // A runtime must not end inside another one.
    for (listener, runtime) in listeners {
        drop(listener);
        runtime.shutdown_background();
    }
}

#[tokio::test]
async fn a_socket_that_is_another_s_by_now_is_not_removed() {
    let home = Home::new();
    let listener = Listener::bind(&home.address(), None).unwrap();
    fs::remove_file(home.path()).unwrap();
    let _other = UnixListener::bind(home.path()).unwrap();
    drop(listener);
    assert!(home.path().exists());
}

#[tokio::test]
async fn a_file_in_the_way_is_refused_and_kept() {
    let home = Home::new();
    fs::write(home.path(), "precious").unwrap();
    assert!(refused(&home).contains("not a socket: move it"), "{}", refused(&home));
    assert_eq!(fs::read_to_string(home.path()).unwrap(), "precious");
}

#[tokio::test]
async fn a_folder_that_others_may_enter_is_refused() {
    let home = Home::new();
    for open in [0o755, 0o710, 0o701, 0o1777] {
        chmod(home.dir.path(), open);
        let error = refused(&home);
        assert!(error.contains(&format!("(mode {open:o})")), "{error}");
        assert!(error.contains("chmod 700"), "{error}");
    }
    assert!(!home.path().exists());
}

#[tokio::test]
async fn a_missing_folder_and_a_long_path_are_refused_with_a_way_out() {
    let home = Home::new();
    let bind = |path| Listener::bind(&Address::Unix(path), None).unwrap_err();
    let error = bind(home.dir.path().join("no/socket")).to_string();
    assert!(error.contains("mkdir -m 700"), "{error}");
    let error = bind(home.dir.path().join("x".repeat(120))).to_string();
    assert!(error.contains("to a shorter directory"), "{error}");
}

#[tokio::test]
async fn only_loopback_may_be_listened_on_and_only_with_a_token() {
    let home = Home::new();
    let bind =
        |text: &str, keys| Listener::bind(&text.parse().unwrap(), keys).unwrap_err().to_string();
    let keys = Keys::from(&home.token());
    assert!(bind("tcp://0.0.0.0:0", Some(&keys)).contains("without TLS"));
    assert!(bind("tcp://127.0.0.1:0", None).contains("needs a token"));
    let listener = home.tcp();
    assert!(!listener.address().to_string().ends_with(":0"), "the port that was chosen is known");
    let error = bind(&listener.address().to_string(), Some(&keys));
    assert!(error.contains("cannot listen on"), "{error}");
}

#[tokio::test]
async fn who_asks_for_it_is_open_to_this_machine_and_no_further() {
    let home = Home::new();
    for (safe, mode_of_folder) in [(true, 0o755), (true, 0o1777), (false, 0o777), (false, 0o720)] {
        chmod(home.dir.path(), mode_of_folder);
        match Listener::bind_open(&home.address()) {
            Ok(_listener) if safe => assert_eq!(mode(&home.path()), 0o600),
            Err(error) if !safe => assert!(error.to_string().contains("only you"), "{error}"),
            other => panic!("{mode_of_folder:o}: {other:?}"),
        }
    }
    let error = Listener::bind_open(&"tcp://0.0.0.0:0".parse().unwrap()).unwrap_err();
    assert!(error.to_string().contains("without TLS"), "{error}");
    let mut listener = Listener::bind_open(&"tcp://127.0.0.1:0".parse().unwrap()).unwrap();
    let Address::Tcp(at) = *listener.address() else { panic!("no TCP") };
    let mut there = std::net::TcpStream::connect(at).unwrap();
    let mut desk = Desk::new();
    let _handle = desk.open(within(listener.accept()).await.unwrap(), 1).await;
    there.write_all(b"{\"id\":1,\"method\":\"a\"}\n").unwrap();
    assert_eq!(desk.texts(1).await, [r#"{"id":1,"method":"a"}"#]);
}

#[tokio::test]
async fn stdio_has_no_second_client() {
    let mut listener = Listener::bind(&"stdio://".parse().unwrap(), None).unwrap();
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

/// Python as another user, or nothing where we may not become one.
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
async fn another_user_is_refused_even_if_the_file_lets_him_in() {
    let home = Home::new();
    let mut listener = Listener::bind(&home.address(), None).unwrap();
    let script = "import socket,sys;s=socket.socket(socket.AF_UNIX);s.connect(sys.argv[1])\n\
                  sys.stdout.write(s.makefile().read())";
    let Some(mut python) = as_nobody(script, &home.path()) else { return };
    let closed = python.stderr(Stdio::null()).output().unwrap();
    assert!(!closed.status.success(), "the folder alone keeps others out");
    chmod(home.dir.path(), 0o755);
    chmod(&home.path(), 0o666);
    let answer = beside(move || as_nobody(script, &home.path()).unwrap().output().unwrap());
    let error = within(listener.accept()).await.unwrap_err();
    let AcceptError::Refused { why: Refusal::Stranger { uid: NOBODY, ours: 0 }, .. } = error else {
        panic!("{error:?}");
    };
    let heard = String::from_utf8(answer.await.stdout).unwrap();
    assert!(heard.starts_with(r#"{"jsonrpc":"2.0","id":null,"error":"#), "{heard}");
    assert!(heard.contains("uid 65534 may not use"), "{heard}");
}

#[test]
fn a_socket_of_another_user_is_not_spoken_to() {
    let home = Home::new();
    let script = "import socket,sys;s=socket.socket(socket.AF_UNIX);s.bind(sys.argv[1]);\
                  s.listen();print(flush=True);s.accept()[0].recv(1)";
    chmod(home.dir.path(), 0o777);
    let Some(mut python) = as_nobody(script, &home.path()) else { return };
    let mut python = python.spawn().unwrap();
    std::io::Read::read_exact(python.stdout.as_mut().unwrap(), &mut [0]).unwrap();
    let error = dial_blocking(&home.address(), None).unwrap_err();
    assert!(matches!(error, DialError::NotOurs { uid: NOBODY, .. }), "{error}");
    assert!(python.wait().unwrap().success(), "it heard nothing but our end");
}

#[tokio::test]
async fn a_client_that_left_before_it_was_accepted_is_gone() {
    let home = Home::new();
    let mut listener = Listener::bind(&home.address(), None).unwrap();
    drop(dial_blocking(&home.address(), None).unwrap());
    let mut desk = Desk::new();
    let stream = within(listener.accept()).await.unwrap();
    let _handle = desk.open(stream, 1).await;
    assert!(desk.until_gone().await.is_empty());
}

/// As the bus listens: its folder is not ours to create.
#[tokio::test]
async fn socket_file_that_was_removed_is_created_again_and_its_folder_only_if_it_is_ours() {
    let home = Home::new();
    let mut listener = Listener::bind_open(&home.address()).unwrap();
    fs::remove_file(home.path()).unwrap();
    let (path, address) = (home.path(), home.address());
    let dialling = tokio::task::spawn_blocking(move || {
        dial_until_up(&address, None, Duration::from_secs(10), || Ok(()))
    });
    within(listener.accept()).await.unwrap();
    dialling.await.unwrap().unwrap();
    assert_eq!(mode(&path), 0o600);
    drop(listener);

    let folder = home.dir.path().join("own");
    fs::create_dir(&folder).unwrap();
    chmod(&folder, 0o700);
    let path = folder.join("s");
    let mut listener = Listener::bind_own(&path).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let address = Address::Unix(path.clone());
    let dialling = tokio::task::spawn_blocking(move || {
        dial_until_up(&address, None, Duration::from_secs(10), || Ok(()))
    });
    within(listener.accept()).await.unwrap();
    dialling.await.unwrap().unwrap();
    assert_eq!((mode(&folder), mode(&path)), (0o700, 0o600));
}
