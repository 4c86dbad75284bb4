//! ACP over a WebSocket, tested from the client's and the hub's side.

use crate::support::{run_blocking, within};
use crate::web_server::TestServer;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use tungstenite::client::IntoClientRequest as _;
use tungstenite::handshake::client::Response;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Message, WebSocket};

const NOTE: &str = r#"{"jsonrpc":"2.0","method":"test/note","params":{}}"#;

type Client = WebSocket<TcpStream>;

/// Opens a WebSocket that requests the subprotocol.
async fn connect(at: SocketAddr) -> (Client, Response) {
    run_blocking(move || {
        let mut request = format!("ws://{at}/acp").into_client_request().unwrap();
        request.headers_mut().insert("sec-websocket-protocol", "acp".parse().unwrap());
        let stream = TcpStream::connect(at).unwrap();
        tungstenite::client(request, stream).unwrap()
    })
    .await
}

async fn send(mut client: Client, message: Message) -> Client {
    run_blocking(move || {
        client.send(message).unwrap();
        client
    })
    .await
}

/// The next message that is not a ping, and the client.
async fn read(mut client: Client) -> (Message, Client) {
    run_blocking(move || {
        loop {
            match client.read().unwrap() {
                Message::Ping(_) => {}
                message => return (message, client),
            }
        }
    })
    .await
}

/// All bytes until the connection ends.
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
async fn every_text_frame_is_one_message_in_both_directions() {
    let server = TestServer::open().await;
    let (client, response) = connect(server.at).await;
    let mut hub = server.accept_dialed().await;
    let id = response.headers()["acp-connection-id"].to_str().unwrap();
    assert_eq!(id.len(), 32);
    assert_eq!(response.headers()["sec-websocket-protocol"], "acp");
    let (_other, response) = connect(server.at).await;
    assert_ne!(response.headers()["acp-connection-id"], id);

    let client = send(client, Message::text(NOTE)).await;
    assert_eq!(hub.next_line().await.unwrap(), NOTE);
    hub.send_line(&format!("{NOTE}\n{NOTE}")).await;
    let (first, client) = read(client).await;
    let (second, client) = read(client).await;
    assert_eq!((first, second), (Message::text(NOTE), Message::text(NOTE)));
    drop(client);
    assert_eq!(hub.next_line().await, None, "who hangs up is hung up for");
}

#[tokio::test]
async fn invalid_message_is_answered_and_binary_is_skipped() {
    let server = TestServer::open().await;
    let (mut client, _) = connect(server.at).await;
    let mut hub = server.accept_dialed().await;
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
    assert_eq!(hub.next_line().await.unwrap(), NOTE.replace(',', ", "));
    assert_eq!(hub.next_line().await, None);
}

#[tokio::test]
async fn oversized_message_closes_the_websocket_with_1009() {
    let server = TestServer::open().await;
    let (mut client, _) = connect(server.at).await;
    let mut hub = server.accept_dialed().await;
    let told = run_blocking(move || {
        // The server stops reading in the middle of it.
        let _cut_off = client.send(Message::text("x".repeat((16 << 20) + 1)));
        everything(client.get_ref())
    });
    let close =
        [&[0x88, 41][..], &1009_u16.to_be_bytes(), b"the message exceeds the limit of 16 MiB"]
            .concat();
    assert!(told.await.ends_with(&close));
    assert_eq!(hub.next_line().await, None);
}

#[tokio::test]
async fn last_frames_of_the_hub_arrive_before_close_1001() {
    let server = TestServer::open().await;
    let (client, _) = connect(server.at).await;
    let mut hub = server.accept_dialed().await;
    hub.send_line(NOTE).await;
    drop(hub);
    let (last, client) = read(client).await;
    assert_eq!(last, Message::text(NOTE));
    let (close, _) = read(client).await;
    assert_eq!(closed(close).0, CloseCode::Away);
}

#[tokio::test]
async fn upgrade_is_refused_without_a_hub() {
    let server = TestServer::open().await;
    let at = server.at;
    drop(server);
    let refused = run_blocking(move || {
        let stream = TcpStream::connect(at).unwrap();
        tungstenite::client(format!("ws://{at}/acp"), stream).unwrap_err().to_string()
    });
    assert!(refused.await.contains("503"), "the status shows that it is not the client's fault");
}

#[tokio::test]
async fn hub_is_not_read_while_the_client_does_not_read() {
    const TEXTS: usize = 64;
    let server = TestServer::open().await;
    let (client, _) = connect(server.at).await;
    let mut hub = server.accept_dialed().await;
    let text = |it: usize| format!(r#"{{"method":"{it}","params":"{}"}}"#, "x".repeat(1 << 20));
    let mut writing = tokio::spawn(async move {
        for it in 0..TEXTS {
            hub.send_line(&text(it)).await;
        }
        hub
    });
    // The sockets buffer some of it, and nothing buffers the rest.
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
async fn silent_client_is_disconnected() {
    let server = TestServer::open().await;
    let mut client = TcpStream::connect(server.at).unwrap();
    let request = "GET /acp HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    client.write_all(request.as_bytes()).unwrap();
    let mut hub = server.accept_dialed().await;
    let begun = tokio::time::Instant::now();
    hub.expect_close().await;
    assert!((60..=90).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    tokio::time::resume();
    let heard = run_blocking(move || everything(&client)).await;
    let pings = heard.windows(2).filter(|it| it == b"\x89\x00").count();
    assert!((2..=4).contains(&pings), "{pings} pings");
}
