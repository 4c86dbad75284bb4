//! Authentication over TCP.

use crate::harness::{EventCollector, SocketFolder, start_blocking, within};
use jackfield_transport::{
    AcceptError, AuthRefusal, BearerToken, ClientAuthenticator, ClientListener, DialError,
    EndpointAddress, dial_daemon, dial_daemon_blocking,
};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::{fs, thread};

fn tcp_address(listener: &ClientListener) -> SocketAddr {
    let EndpointAddress::Tcp(address) = listener.address() else { panic!("no TCP") };
    *address
}

fn secret(folder: &SocketFolder) -> String {
    folder.token();
    fs::read_to_string(folder.dir.path().join("token")).unwrap()
}

fn auth_line(token: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"_jackfield/auth","params":{{"token":"{token}"}}}}{}"#,
        "\n"
    )
}

/// The response to a peer that sends these bytes, and the reason of the refusal.
async fn refused(folder: &SocketFolder, said: Vec<u8>) -> (String, AuthRefusal) {
    let mut listener = folder.tcp();
    let address = tcp_address(&listener);
    let heard = start_blocking(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(&said).unwrap();
        let mut heard = String::new();
        stream.read_to_string(&mut heard).unwrap();
        heard
    });
    let error = within(listener.accept()).await.unwrap_err();
    assert!(error.to_string().starts_with("the client at 127.0.0.1:"), "{error}");
    let AcceptError::Refused { why, .. } = error else { panic!("{error:?}") };
    let heard = heard.await;
    assert!(heard.starts_with(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"#), "{heard}");
    assert!(heard.ends_with("}\n") && heard.lines().count() == 1, "{heard}");
    (heard, why)
}

#[tokio::test]
async fn valid_token_is_accepted_and_following_bytes_are_read() {
    let folder = SocketFolder::new();
    let mut listener = folder.tcp();
    let mut stream = TcpStream::connect(tcp_address(&listener)).unwrap();
    let said = format!("{}{{\"id\":1,\"method\":\"a\"}}\n{{\"id\":2,", auth_line(&secret(&folder)));
    stream.write_all(said.as_bytes()).unwrap();
    let mut collector = EventCollector::new();
    let admitted = within(listener.accept()).await.unwrap();
    let _handle = collector.open(admitted, 1).await;
    assert_eq!(collector.texts(1).await, [r#"{"id":1,"method":"a"}"#]);
    stream.write_all(b"\"method\":\"b\"}\n").unwrap();
    assert_eq!(collector.texts(1).await, [r#"{"id":2,"method":"b"}"#]);
}

#[tokio::test]
async fn wrong_token_is_refused_without_revealing_the_right_one() {
    let folder = SocketFolder::new();
    let right = secret(&folder);
    for wrong in ["", "x", &right[1..], &right.replace(|_: char| true, "0")] {
        let (heard, why) = refused(&folder, auth_line(wrong).into()).await;
        assert!(matches!(why, AuthRefusal::WrongToken), "{why:?}");
        assert!(heard.contains("the token is wrong") && !heard.contains(&right), "{heard}");
    }
}

#[tokio::test]
async fn first_line_without_a_token_is_refused() {
    let folder = SocketFolder::new();
    let right = secret(&folder);
    let lines = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#.to_owned(),
        auth_line(&right).replace("{\"jsonrpc\"", "{\"id\":1,\"jsonrpc\""),
        auth_line(&right).replace("_jackfield/auth", "_jackfield/connect"),
        auth_line(&right).replace("\"token\"", "\"key\""),
        auth_line(&right).replace("{\"token\":", "[").replace("\"}}", "\"]}"),
        r#"{"method":"_jackfield/auth"}"#.to_owned(),
        right.clone(),
        "GET / HTTP/1.1\r".to_owned(),
    ];
    for line in lines {
        let (_, why) = refused(&folder, format!("{}\n", line.trim_end()).into()).await;
        assert!(matches!(why, AuthRefusal::NoToken), "{line}: {why:?}");
    }
}

#[tokio::test]
async fn endless_first_line_is_refused_at_its_limit() {
    let folder = SocketFolder::new();
    for length in [4096, 5000, 500_000] {
        let (heard, why) = refused(&folder, vec![b'x'; length]).await;
        assert!(matches!(why, AuthRefusal::TooLong), "{why:?}");
        assert!(heard.contains("longer than 4096 bytes"), "{heard}");
    }
}

#[tokio::test]
async fn peer_that_disconnects_silently_is_reported() {
    let folder = SocketFolder::new();
    let mut listener = folder.tcp();
    drop(TcpStream::connect(tcp_address(&listener)).unwrap());
    let error = within(listener.accept()).await.unwrap_err();
    assert!(
        matches!(error, AcceptError::Refused { why: AuthRefusal::Disconnected, .. }),
        "{error:?}"
    );
}

// Time is paused and jumps to the next timer.
#[tokio::test(start_paused = true)]
async fn peer_that_sends_its_token_too_late_is_refused() {
    let folder = SocketFolder::new();
    let mut listener = folder.tcp();
    let mut stream = TcpStream::connect(tcp_address(&listener)).unwrap();
    stream.write_all(&auth_line(&secret(&folder)).as_bytes()[..100]).unwrap();
    let error = listener.accept().await.unwrap_err();
    assert!(matches!(error, AcceptError::Refused { why: AuthRefusal::TimedOut, .. }), "{error:?}");
    let mut heard = String::new();
    stream.read_to_string(&mut heard).unwrap();
    assert!(heard.contains("received no token within 5 s"), "{heard}");
}

#[tokio::test]
async fn token_in_several_pieces_is_accepted() {
    let folder = SocketFolder::new();
    let mut listener = folder.tcp();
    let (address, said) = (tcp_address(&listener), auth_line(&secret(&folder)));
    let stream = start_blocking(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        for byte in said.bytes() {
            stream.write_all(&[byte]).unwrap();
            thread::yield_now();
        }
        stream
    });
    within(listener.accept()).await.unwrap();
    stream.await;
}

#[tokio::test]
async fn silent_peer_does_not_block_others() {
    let folder = SocketFolder::new();
    let mut listener = folder.tcp();
    let silent: Vec<_> =
        (0..100).map(|_| TcpStream::connect(tcp_address(&listener)).unwrap()).collect();
    let (address, token) = (listener.address().clone(), folder.token());
    let (there, here) =
        tokio::join!(dial_daemon(&address, Some(&token)), within(listener.accept()));
    there.unwrap();
    here.unwrap();
    drop(silent);
}

#[tokio::test]
async fn our_own_client_is_accepted_without_sending_the_token() {
    let folder = SocketFolder::new();
    let (mut listener, token) = (folder.tcp(), folder.token());
    let address = listener.address().clone();
    let blocking = start_blocking(move || dial_daemon_blocking(&address, Some(&token)).unwrap());
    let mut collector = EventCollector::new();
    let _handle = collector.open(within(listener.accept()).await.unwrap(), 1).await;
    let socket = blocking.await;
    (&socket).write_all(b"{\"id\":1,\"method\":\"a\"}\n").unwrap();
    assert_eq!(collector.texts(1).await, [r#"{"id":1,"method":"a"}"#]);
}

/// Listens on a port, sends `answer` to every client and returns everything received.
fn fake_daemon(answer: &'static [u8]) -> (EndpointAddress, thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = EndpointAddress::Tcp(listener.local_addr().unwrap());
    let told = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // The client may close the connection at any moment.
        let _closed = stream.write_all(answer).and_then(|()| stream.shutdown(Shutdown::Write));
        let mut told = String::new();
        let _reset = stream.read_to_string(&mut told);
        told
    });
    (address, told)
}

#[tokio::test]
async fn program_on_the_port_of_the_daemon_never_gets_the_token() {
    let folder = SocketFolder::new();
    let token = folder.token();
    let stranger = BearerToken::random().unwrap();
    let mut foreign = ClientListener::bind(
        &"tcp://127.0.0.1:0".parse().unwrap(),
        Some(&ClientAuthenticator::from(&stranger)),
    )
    .unwrap();
    let at = foreign.address().clone();
    let (accept_dialed, refused) =
        tokio::join!(dial_daemon(&at, Some(&token)), within(foreign.accept()));
    assert!(
        matches!(accept_dialed, Err(DialError::NotTheDaemon { .. })),
        "another token: {accept_dialed:?}"
    );
    refused.unwrap_err();
    for answer in [
        &b""[..],
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"nonce\":\"00\",\"proof\":\"00\"}}\n",
        &[b'x'; 10_000],
    ] {
        let (address, told) = fake_daemon(answer);
        let error = dial_daemon(&address, Some(&token)).await.unwrap_err();
        assert!(error.to_string().contains("is not the daemon"), "{error}");
        let (again, told_again) = fake_daemon(answer);
        let shown = token.clone();
        let error =
            start_blocking(move || dial_daemon_blocking(&again, Some(&shown)).unwrap_err()).await;
        assert!(matches!(error, DialError::NotTheDaemon { .. }), "{error}");
        for told in [told, told_again] {
            let told = told.join().unwrap();
            assert!(told.contains("_jackfield/challenge"), "{told}");
            assert!(!told.contains(token.reveal()) && !told.contains("proof"), "{told}");
        }
    }
}

#[tokio::test]
async fn wrong_proof_is_refused() {
    let folder = SocketFolder::new();
    let nonce = "0".repeat(64);
    let challenge = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"_jackfield/challenge","params":{{"nonce":"{nonce}"}}}}"#
    );
    let auth =
        format!(r#"{{"jsonrpc":"2.0","method":"_jackfield/auth","params":{{"proof":"{nonce}"}}}}"#);
    let mut listener = folder.tcp();
    let address = tcp_address(&listener);
    let heard = start_blocking(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(format!("{challenge}\n{auth}\n").as_bytes()).unwrap();
        let mut heard = String::new();
        stream.read_to_string(&mut heard).unwrap();
        heard
    });
    let error = within(listener.accept()).await.unwrap_err();
    assert!(
        matches!(error, AcceptError::Refused { why: AuthRefusal::WrongProof, .. }),
        "{error:?}"
    );
    let heard = heard.await;
    assert!(heard.starts_with(r#"{"jsonrpc":"2.0","id":7,"result":{"nonce":"#), "{heard}");
    assert!(heard.lines().last().unwrap().contains("the proof"), "{heard}");
}
