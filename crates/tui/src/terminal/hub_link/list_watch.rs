//! Follows the lists of sessions and open requests, and reports the state of the connection.

use super::{
    DaemonStart, UpdateSender,
    access::{HubAccess, LinkError, call_hub},
    retry::RetryDelay,
};
use crate::hub::{AnsweredRequest, ConnectionState, HubUpdate};
use jackfield_hub_client::{HubConnection, HubMessage};
use jackfield_protocol::acp::Method;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Runs until the interface ends. Opens the connection again when it is lost.
pub(super) async fn run_watch(hub: HubAccess, updates: UpdateSender) {
    let (mut start, mut delay) = (DaemonStart::Always, RetryDelay::default());
    loop {
        let error = match open_watch(&hub, start).await {
            Ok((connection, lists)) => {
                delay.reset();
                let connected = HubUpdate::Connection(ConnectionState::Connected);
                for update in [connected, to_lists(lists)] {
                    if updates.send(update).await.is_err() {
                        return;
                    }
                }
                match read_changes(connection, &updates).await {
                    Ok(()) => return,
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
        let lost = HubUpdate::Connection(ConnectionState::Lost(error.describe()));
        if updates.send(lost).await.is_err() {
            return;
        }
        start = DaemonStart::IfKilled;
        delay.wait().await;
    }
}

async fn open_watch(
    hub: &HubAccess,
    start: DaemonStart,
) -> Result<(HubConnection, Value), LinkError> {
    let mut connection = hub.connect(start).await?;
    let lists = call_hub(&mut connection, Method::ControlWatch, &json!({})).await?;
    Ok((connection, lists))
}

/// Reports changes until the interface ends, or the connection does.
async fn read_changes(
    mut connection: HubConnection,
    updates: &UpdateSender,
) -> Result<(), LinkError> {
    loop {
        let update = match connection.next_message().await? {
            HubMessage::Frame(frame) if frame.is_method(Method::ControlChanges) => {
                let changes = frame.params_value();
                if changes["restart"] == true {
                    connection.send_request(Method::ControlWatch, &json!({})).await?;
                    continue;
                }
                to_changes(changes)
            }
            // The answer to the repeated request.
            HubMessage::Response(response) => {
                to_lists(response.into_result().map_err(|it| LinkError::Client(it.into()))?)
            }
            HubMessage::Frame(_) | HubMessage::Event(_) => continue,
        };
        if updates.send(update).await.is_err() {
            return Ok(());
        }
    }
}

fn to_lists(mut lists: Value) -> HubUpdate {
    HubUpdate::Lists {
        sessions: take_rows(&mut lists, "sessions"),
        requests: take_rows(&mut lists, "asks"),
    }
}

fn to_changes(mut changes: Value) -> HubUpdate {
    let answered = take_rows::<Value>(&mut changes, "answered");
    let text = |it: &Value| it.as_str().map(str::to_owned);
    let answered = answered.into_iter().filter_map(|it| {
        Some(AnsweredRequest {
            session: text(&it["sessionId"])?,
            number: it["ask"].as_u64()?,
            by: text(&it["by"]),
            option: text(&it["option"]),
        })
    });
    HubUpdate::Changes {
        sessions: take_rows(&mut changes, "sessions"),
        requests: take_rows(&mut changes, "asks"),
        removed: take_rows(&mut changes, "removed"),
        answered: answered.collect(),
    }
}

/// The rows of a list. A row that has another form is skipped.
fn take_rows<Row: DeserializeOwned>(lists: &mut Value, name: &str) -> Vec<Row> {
    let Some(Value::Array(rows)) = lists.get_mut(name).map(Value::take) else { return Vec::new() };
    rows.into_iter().filter_map(|it| serde_json::from_value(it).ok()).collect()
}
