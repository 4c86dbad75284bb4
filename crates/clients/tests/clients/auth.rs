//! TCP: the first line is the token, or the connection ends.

use crate::desk::{Desk, Home, beside, within};
use jackfield_clients::{
    AcceptError, Address, DialError, Keys, Listener, Refusal, Token, dial, dial_blocking,
};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::{fs, thread};

fn place(listener: &Listener) -> SocketAddr {
    let Address::Tcp(address) = listener.address() else { panic!("no TCP") };
    *address
}

fn secret(home: &Home) -> String {
    home.token();
    fs::read_to_string(home.dir.path().join("token")).unwrap()
}

fn introduction(token: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"_jackfield/auth","params":{{"token":"{token}"}}}}{}"#,
        "\n"
    )
}

/// What a peer that says this is told, and why it was refused.
async fn refused(home: &Home, said: Vec<u8>) -> (String, Refusal) {
    let mut listener = home.tcp();
    let address = place(&listener);
    let heard = beside(move || {
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
async fn the_right_token_lets_in_and_what_follows_it_at_once_is_heard() {
    let home = Home::new();
    let mut listener = home.tcp();
    let mut stream = TcpStream::connect(place(&listener)).unwrap();
    let said =
        format!("{}{{\"id\":1,\"method\":\"a\"}}\n{{\"id\":2,", introduction(&secret(&home)));
    stream.write_all(said.as_bytes()).unwrap();
    let mut desk = Desk::new();
    let admitted = within(listener.accept()).await.unwrap();
    let _handle = desk.open(admitted, 1).await;
    assert_eq!(desk.texts(1).await, [r#"{"id":1,"method":"a"}"#]);
    stream.write_all(b"\"method\":\"b\"}\n").unwrap();
    assert_eq!(desk.texts(1).await, [r#"{"id":2,"method":"b"}"#]);
}

#[tokio::test]
async fn a_wrong_token_is_refused_without_a_hint_of_the_right_one() {
    let home = Home::new();
    let right = secret(&home);
    for wrong in ["", "x", &right[1..], &right.replace(|_: char| true, "0")] {
        let (heard, why) = refused(&home, introduction(wrong).into()).await;
        assert!(matches!(why, Refusal::WrongToken), "{why:?}");
        assert!(heard.contains("the token is wrong") && !heard.contains(&right), "{heard}");
    }
}

#[tokio::test]
async fn a_first_line_that_is_something_else_is_refused() {
    let home = Home::new();
    let right = secret(&home);
    let lines = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#.to_owned(),
        introduction(&right).replace("{\"jsonrpc\"", "{\"id\":1,\"jsonrpc\""),
        introduction(&right).replace("_jackfield/auth", "_jackfield/connect"),
        introduction(&right).replace("\"token\"", "\"key\""),
        introduction(&right).replace("{\"token\":", "[").replace("\"}}", "\"]}"),
        r#"{"method":"_jackfield/auth"}"#.to_owned(),
        right.clone(),
        "GET / HTTP/1.1\r".to_owned(),
    ];
    for line in lines {
        let (_, why) = refused(&home, format!("{}\n", line.trim_end()).into()).await;
        assert!(matches!(why, Refusal::NoToken), "{line}: {why:?}");
    }
}

#[tokio::test]
async fn a_first_line_without_an_end_is_refused_at_its_limit() {
    let home = Home::new();
    for length in [4096, 5000, 500_000] {
        let (heard, why) = refused(&home, vec![b'x'; length]).await;
        assert!(matches!(why, Refusal::TooLong), "{why:?}");
        assert!(heard.contains("longer than 4096 bytes"), "{heard}");
    }
}

#[tokio::test]
async fn a_peer_that_leaves_without_a_word_is_only_noted() {
    let home = Home::new();
    let mut listener = home.tcp();
    drop(TcpStream::connect(place(&listener)).unwrap());
    let error = within(listener.accept()).await.unwrap_err();
    assert!(matches!(error, AcceptError::Refused { why: Refusal::Left, .. }), "{error:?}");
}

// The clock jumps as soon as everyone waits: five seconds take none.
#[tokio::test(start_paused = true)]
async fn a_peer_that_is_slow_with_its_token_is_refused() {
    let home = Home::new();
    let mut listener = home.tcp();
    let mut stream = TcpStream::connect(place(&listener)).unwrap();
    stream.write_all(&introduction(&secret(&home)).as_bytes()[..100]).unwrap();
    let error = listener.accept().await.unwrap_err();
    assert!(matches!(error, AcceptError::Refused { why: Refusal::Late, .. }), "{error:?}");
    let mut heard = String::new();
    stream.read_to_string(&mut heard).unwrap();
    assert!(heard.contains("no token came within 5 s"), "{heard}");
}

#[tokio::test]
async fn a_token_that_comes_in_pieces_is_good() {
    let home = Home::new();
    let mut listener = home.tcp();
    let (address, said) = (place(&listener), introduction(&secret(&home)));
    let stream = beside(move || {
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
async fn a_silent_peer_keeps_nobody_out() {
    let home = Home::new();
    let mut listener = home.tcp();
    let silent: Vec<_> = (0..100).map(|_| TcpStream::connect(place(&listener)).unwrap()).collect();
    let (address, token) = (listener.address().clone(), home.token());
    let (there, here) = tokio::join!(dial(&address, Some(&token)), within(listener.accept()));
    there.unwrap();
    here.unwrap();
    drop(silent);
}

#[tokio::test]
async fn our_own_client_is_let_in_without_showing_the_token() {
    let home = Home::new();
    let (mut listener, token) = (home.tcp(), home.token());
    let address = listener.address().clone();
    let blocking = beside(move || dial_blocking(&address, Some(&token)).unwrap());
    let mut desk = Desk::new();
    let _handle = desk.open(within(listener.accept()).await.unwrap(), 1).await;
    let socket = blocking.await;
    (&socket).write_all(b"{\"id\":1,\"method\":\"a\"}\n").unwrap();
    assert_eq!(desk.texts(1).await, [r#"{"id":1,"method":"a"}"#]);
}

/// Holds a port, says `answer` to everybody and returns all that it was told.
fn fake_daemon(answer: &'static [u8]) -> (Address, thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    let told = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // A client that has seen enough closes the connection at any moment.
        let _closed = stream.write_all(answer).and_then(|()| stream.shutdown(Shutdown::Write));
        let mut told = String::new();
        let _reset = stream.read_to_string(&mut told);
        told
    });
    (address, told)
}

#[tokio::test]
async fn program_that_holds_the_port_of_the_daemon_never_gets_the_token() {
    let home = Home::new();
    let token = home.token();
    let stranger = Token::random().unwrap();
    let mut foreign =
        Listener::bind(&"tcp://127.0.0.1:0".parse().unwrap(), Some(&Keys::from(&stranger)))
            .unwrap();
    let at = foreign.address().clone();
    let (dialled, refused) = tokio::join!(dial(&at, Some(&token)), within(foreign.accept()));
    assert!(matches!(dialled, Err(DialError::NotTheDaemon { .. })), "another token: {dialled:?}");
    refused.unwrap_err();
    for answer in [
        &b""[..],
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"nonce\":\"00\",\"proof\":\"00\"}}\n",
        &[b'x'; 10_000],
    ] {
        let (address, told) = fake_daemon(answer);
        let error = dial(&address, Some(&token)).await.unwrap_err();
        assert!(error.to_string().contains("is not the daemon"), "{error}");
        let (again, told_again) = fake_daemon(answer);
        let shown = token.clone();
        let error = beside(move || dial_blocking(&again, Some(&shown)).unwrap_err()).await;
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
    let home = Home::new();
    let nonce = "0".repeat(64);
    let challenge = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"_jackfield/challenge","params":{{"nonce":"{nonce}"}}}}"#
    );
    let auth =
        format!(r#"{{"jsonrpc":"2.0","method":"_jackfield/auth","params":{{"proof":"{nonce}"}}}}"#);
    let mut listener = home.tcp();
    let address = place(&listener);
    let heard = beside(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(format!("{challenge}\n{auth}\n").as_bytes()).unwrap();
        let mut heard = String::new();
        stream.read_to_string(&mut heard).unwrap();
        heard
    });
    let error = within(listener.accept()).await.unwrap_err();
    assert!(matches!(error, AcceptError::Refused { why: Refusal::WrongProof, .. }), "{error:?}");
    let heard = heard.await;
    assert!(heard.starts_with(r#"{"jsonrpc":"2.0","id":7,"result":{"nonce":"#), "{heard}");
    assert!(heard.lines().last().unwrap().contains("the proof"), "{heard}");
}
