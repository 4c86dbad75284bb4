//! Drives the HTTP and WebSocket client of the official Rust SDK by lines of JSON, in the same words
//! as `../node/client.mjs` does with the TypeScript SDK; see there.

use agent_client_protocol::{
    Agent, Client, Error, Result, UntypedMessage, on_receive_notification, on_receive_request,
    v1::{
        ConnectionTo, Responder,
        schema::{RequestPermissionRequest, RequestPermissionResponse, SessionNotification},
    },
};
use agent_client_protocol_http::HttpClient;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io::{BufRead as _, Write as _},
    sync::{Arc, Mutex},
};
use tokio::{sync::mpsc, task::LocalSet};

type Asks = Arc<Mutex<BTreeMap<u64, Responder<RequestPermissionResponse>>>>;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, drive());
    // The thread that reads stdin need not be waited for.
    std::process::exit(0);
}

/// Reads commands until there are no more.
async fn drive() {
    let (sender, mut commands) = mpsc::channel(64);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(std::io::Result::ok) {
            let command: Value = serde_json::from_str(&line).expect("a command is JSON");
            if sender.blocking_send(command).is_err() {
                return;
            }
        }
    });
    say(&json!({ "ready": true }));
    let mut open: Option<mpsc::Sender<Value>> = None;
    while let Some(command) = commands.recv().await {
        if command["do"] == "connect" {
            let (told, orders) = mpsc::channel(64);
            open = Some(told);
            tokio::task::spawn_local(async move {
                if let Err(error) = connect(&command, orders).await {
                    eprintln!("the connection has ended: {error}");
                }
                say(&json!({ "closed": true }));
            });
        } else if let Some(open) = &open {
            // What is told to a connection that has ended is told to nobody.
            let _ended = open.send(command).await;
        }
    }
}

/// One connection, until it is closed or breaks.
async fn connect(command: &Value, mut orders: mpsc::Receiver<Value>) -> Result<()> {
    let base = command["url"].as_str().unwrap().trim_end_matches("/acp").to_owned();
    let base = if command["over"] == "ws" { base.replace("http", "ws") } else { base };
    let mut headers = HeaderMap::new();
    let token = std::env::var("JACKFIELD_TOKEN").expect("a token");
    headers.insert(AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
    let transport = HttpClient::builder(base).configure_http(|it| it.default_headers(headers));
    let transport = transport.build().map_err(Error::into_internal_error)?;
    let asks = Asks::default();
    let asked = Arc::clone(&asks);
    Client
        .v1()
        .on_receive_notification(
            async move |it: SessionNotification, _cx| {
                say(&json!({ "update": it }));
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |it: RequestPermissionRequest, responder, _cx| {
                let mut asks = asked.lock().unwrap();
                let ask = asks.last_key_value().map_or(1, |it| it.0 + 1);
                asks.insert(ask, responder);
                say(&json!({ "ask": ask, "params": it }));
                Ok(())
            },
            on_receive_request!(),
        )
        .connect_with(transport, async move |hub: ConnectionTo<Agent>| {
            while let Some(order) = orders.recv().await {
                match order["do"].as_str() {
                    Some("request") => request(&hub, &order)?,
                    Some("notify") => hub.send_notification(message(&order)?)?,
                    Some("answer") => {
                        let ask = order["ask"].as_u64().unwrap();
                        let responder = asks.lock().unwrap().remove(&ask).expect("an open ask");
                        let answer = serde_json::from_value(order["result"].clone());
                        responder.respond(answer.map_err(Error::into_internal_error)?)?;
                    }
                    Some("close") => return Ok(()),
                    other => panic!("no such command: {other:?}"),
                }
            }
            Ok(())
        })
        .await
}

/// Sends a request, and tells its answer when it comes.
fn request(hub: &ConnectionTo<Agent>, order: &Value) -> Result<()> {
    let id = order["id"].clone();
    let sent = hub.send_request(message(order)?);
    tokio::task::spawn_local(async move {
        match sent.block_task().await {
            Ok(result) => say(&json!({ "id": id, "result": result })),
            Err(error) => say(&json!({ "id": id, "error": error })),
        }
    });
    Ok(())
}

fn message(order: &Value) -> Result<UntypedMessage> {
    UntypedMessage::new(order["method"].as_str().unwrap(), &order["params"])
}

fn say(what: &Value) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{what}").and_then(|()| out.flush()).expect("somebody listens");
}
