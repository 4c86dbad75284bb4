//! ACP over a WebSocket, seen from both of its ends.

use crate::desk::{elsewhere, within};
use crate::front::Front;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use tungstenite::client::IntoClientRequest as _;
use tungstenite::handshake::client::Response;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Message, WebSocket};

const NOTE: &str = r#"{"jsonrpc":"2.0","method":"test/note","params":{}}"#;

type Client = WebSocket<TcpStream>;

/// A WebSocket that asks for the protocol by name.
async fn connect(at: SocketAddr) -> (Client, Response) {
    elsewhere(move || {
        let mut request = format!("ws://{at}/acp").into_client_request().unwrap();
        request.headers_mut().insert("sec-websocket-protocol", "acp".parse().unwrap());
        let stream = TcpStream::connect(at).unwrap();
        tungstenite::client(request, stream).unwrap()
    })
    .await
}

async fn send(mut client: Client, message: Message) -> Client {
    elsewhere(move || {
        client.send(message).unwrap();
        client
    })
    .await
}

/// The next message that is no ping, and the client.
async fn read(mut client: Client) -> (Message, Client) {
    elsewhere(move || {
        loop {
            match client.read().unwrap() {
                Message::Ping(_) => {}
                message => return (message, client),
            }
        }
    })
    .await
}

/// The bytes up to the end of the connection, however it ends.
fn everything(mut stream: &TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _reset = stream.read_to_end(&mut bytes);
    bytes
}

fn closed(message: Message) -> (CloseCode, String) {
    let Message::Close(Some(frame)) = message else { panic!("{message:?}") };
    (frame.code, frame.reason.to_string())
}

#[tokio::test]
async fn every_text_frame_is_one_message_to_the_hub_and_back() {
    let front = Front::open().await;
    let (client, response) = connect(front.at).await;
    let mut hub = front.dialled().await;
    let id = response.headers()["acp-connection-id"].to_str().unwrap();
    assert_eq!(id.len(), 32);
    assert_eq!(response.headers()["sec-websocket-protocol"], "acp");
    let (_other, response) = connect(front.at).await;
    assert_ne!(response.headers()["acp-connection-id"], id);

    let client = send(client, Message::text(NOTE)).await;
    assert_eq!(hub.hears().await.unwrap(), NOTE);
    hub.says(&format!("{NOTE}\n{NOTE}")).await;
    let (first, client) = read(client).await;
    let (second, client) = read(client).await;
    assert_eq!((first, second), (Message::text(NOTE), Message::text(NOTE)));
    drop(client);
    assert_eq!(hub.hears().await, None, "who hangs up is hung up for");
}

#[tokio::test]
async fn what_is_no_message_is_answered_and_what_is_binary_is_skipped() {
    let front = Front::open().await;
    let (mut client, _) = connect(front.at).await;
    let mut hub = front.dialled().await;
    for (text, code) in [("{", -32700), ("[]", -32600), (&format!("[{NOTE}]"), -32600)] {
        client = send(client, Message::text(text)).await;
        let (answer, back) = read(client).await;
        client = back;
        let answer: serde_json::Value = serde_json::from_str(answer.to_text().unwrap()).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&().into(), &code.into()), "{text}");
    }
    client = send(client, Message::binary(NOTE)).await;
    // A raw line break would make two lines of it.
    send(client, Message::text(NOTE.replace(',', ",\n"))).await;
    assert_eq!(hub.hears().await.unwrap(), NOTE.replace(',', ", "));
    assert_eq!(hub.hears().await, None);
}

#[tokio::test]
async fn a_message_that_is_too_long_ends_the_connection_with_1009() {
    let front = Front::open().await;
    let (mut client, _) = connect(front.at).await;
    let mut hub = front.dialled().await;
    let told = elsewhere(move || {
        // The front stops reading in the middle of it.
        let _cut_off = client.send(Message::text("x".repeat((16 << 20) + 1)));
        everything(client.get_ref())
    });
    let close = [&[0x88, 27][..], &1009_u16.to_be_bytes(), b"a message may have 16 MiB"].concat();
    assert!(told.await.ends_with(&close));
    assert_eq!(hub.hears().await, None);
}

#[tokio::test]
async fn when_the_hub_ends_its_last_words_are_heard_and_then_1001() {
    let front = Front::open().await;
    let (client, _) = connect(front.at).await;
    let mut hub = front.dialled().await;
    hub.says(NOTE).await;
    drop(hub);
    let (last, client) = read(client).await;
    assert_eq!(last, Message::text(NOTE));
    let (close, _) = read(client).await;
    assert_eq!(closed(close).0, CloseCode::Away);
}

#[tokio::test]
async fn without_a_hub_nobody_is_upgraded() {
    let front = Front::open().await;
    let at = front.at;
    drop(front);
    let refused = elsewhere(move || {
        let stream = TcpStream::connect(at).unwrap();
        tungstenite::client(format!("ws://{at}/acp"), stream).unwrap_err().to_string()
    });
    assert!(refused.await.contains("503"), "it says that it is not the client's fault");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_not_read_for() {
    const TEXTS: usize = 64;
    let front = Front::open().await;
    let (client, _) = connect(front.at).await;
    let mut hub = front.dialled().await;
    let text = |it: usize| format!(r#"{{"method":"{it}","params":"{}"}}"#, "x".repeat(1 << 20));
    let mut writing = tokio::spawn(async move {
        for it in 0..TEXTS {
            hub.says(&text(it)).await;
        }
        hub
    });
    // The sockets on the way hold some of it, and nobody holds the rest.
    let done = tokio::time::timeout(Duration::from_millis(500), &mut writing).await;
    assert!(done.is_err(), "64 MiB went somewhere");
    let mut client = client;
    for it in 0..TEXTS {
        let (message, back) = read(client).await;
        client = back;
        assert_eq!(message.to_text().unwrap(), text(it));
    }
    within(writing).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_gives_no_sign_of_life_is_let_go() {
    let front = Front::open().await;
    let mut client = TcpStream::connect(front.at).unwrap();
    let request = "GET /acp HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    client.write_all(request.as_bytes()).unwrap();
    let mut hub = front.dialled().await;
    let begun = tokio::time::Instant::now();
    hub.is_hung_up_on().await;
    assert!((60..=90).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    tokio::time::resume();
    let heard = elsewhere(move || everything(&client)).await;
    let pings = heard.windows(2).filter(|it| it == b"\x89\x00").count();
    assert!((2..=4).contains(&pings), "{pings} pings");
}
