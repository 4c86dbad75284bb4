//! Requests that the hub itself answers. They are sent in order on one connection.

use super::{
    DaemonStart, UpdateSender,
    access::{HubAccess, LinkError, call_hub, read_event, within},
};
use crate::hub::{
    HubRequest, HubUpdate, LogPage, LogRange, QueuedPrompt, RequestNumber, SessionCommand,
    SessionSettings,
};
use jackfield_events::ReceivedEvent;
use jackfield_hub_client::HubConnection;
use jackfield_protocol::acp::Method;
use jackfield_views::options::{SessionSetting, StoredSettings, find_offer, take_commands};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::mpsc;

/// How long a request about a session may take: a gateway searches for the session's host for 30 s.
const SESSION_HOST_MAX: Duration = Duration::from_secs(40);

/// Runs until the interface ends.
pub(super) async fn run_requests(
    hub: HubAccess,
    mut requests: mpsc::Receiver<(RequestNumber, HubRequest)>,
    updates: UpdateSender,
) {
    let mut kept = None;
    while let Some((number, request)) = requests.recv().await {
        let update = match send_request(&hub, &mut kept, &request).await {
            Ok(RequestResult::Update(update)) => update,
            Ok(RequestResult::Done(result)) => HubUpdate::Outcome { number, result: Ok(result) },
            Err(error) => HubUpdate::Outcome { number, result: Err(error.describe()) },
        };
        if updates.send(update).await.is_err() {
            return;
        }
    }
}

/// What a request has brought.
enum RequestResult {
    Update(HubUpdate),
    Done(Value),
}

/// Sends a request on the kept connection, or on a new one if that was closed.
async fn send_request(
    hub: &HubAccess,
    kept: &mut Option<HubConnection>,
    request: &HubRequest,
) -> Result<RequestResult, LinkError> {
    if let Some(mut connection) = kept.take() {
        match perform_request(&mut connection, request).await {
            Err(error) if error.is_lost_connection() => {}
            result => {
                *kept = Some(connection);
                return result;
            }
        }
    }
    let mut connection = hub.connect(DaemonStart::Always).await?;
    let result = perform_request(&mut connection, request).await;
    if !matches!(&result, Err(error) if error.is_lost_connection()) {
        *kept = Some(connection);
    }
    result
}

async fn perform_request(
    connection: &mut HubConnection,
    request: &HubRequest,
) -> Result<RequestResult, LinkError> {
    match request {
        HubRequest::ReadLog { session, range, limit } => {
            let page = read_page(connection, session, *range, *limit).await?;
            return Ok(RequestResult::Update(HubUpdate::LogPage(page)));
        }
        HubRequest::ReadSettings { session } => {
            return read_settings(connection, session).await.map(RequestResult::Update);
        }
        HubRequest::ReadQueue { session } => {
            let params = json!({ "sessionId": session });
            let queue = call_hub(connection, Method::ControlQueue, &params).await?;
            return Ok(RequestResult::Update(to_queue(session, &queue)));
        }
        HubRequest::Cancel { session } => {
            let params = json!({ "sessionId": session });
            connection.send_notification(Method::SessionCancel, &params).await?;
            // A notification has no response: the response to a later request shows that it has arrived.
            let arrived =
                within(SESSION_HOST_MAX, connection.call_method(Method::ControlQueue, &params));
            return arrived.await.map(|_| RequestResult::Done(Value::Null));
        }
        _ => {}
    }
    let Some((method, params)) = to_call(request) else {
        return Ok(RequestResult::Done(Value::Null));
    };
    let result = within(SESSION_HOST_MAX, connection.call_method(method, &params)).await?;
    Ok(RequestResult::Done(result))
}

/// The method and the params of a request that is one call.
fn to_call(request: &HubRequest) -> Option<(Method, Value)> {
    Some(match request {
        HubRequest::WithdrawPrompt { session, prompt } => {
            (Method::ControlWithdraw, json!({ "sessionId": session, "prompt": prompt }))
        }
        HubRequest::MovePrompt { session, prompt, before } => {
            let params = json!({ "sessionId": session, "prompt": prompt, "before": before });
            (Method::ControlMove, params)
        }
        HubRequest::RunHeldPrompt { session, prompt } => {
            (Method::ControlRelease, json!({ "sessionId": session, "prompt": prompt }))
        }
        HubRequest::AnswerOption { session, number, option } => {
            let result = json!({ "outcome": { "outcome": "selected", "optionId": option } });
            (Method::ControlAnswer, answer_params(session, *number, &result))
        }
        HubRequest::AnswerForm { session, number, result } => {
            (Method::ControlAnswer, answer_params(session, *number, result))
        }
        HubRequest::RenameSession { session, name } => {
            let name = Some(name.trim()).filter(|it| !it.is_empty());
            (Method::ControlRename, json!({ "sessionId": session, "name": name }))
        }
        HubRequest::CloseSession { session } => {
            (Method::SessionClose, json!({ "sessionId": session }))
        }
        HubRequest::DeleteSession { session } => {
            (Method::SessionDelete, json!({ "sessionId": session }))
        }
        _ => return None,
    })
}

fn answer_params(session: &str, number: u64, result: &Value) -> Value {
    json!({ "sessionId": session, "ask": number, "result": result })
}

async fn read_page(
    connection: &mut HubConnection,
    session: &str,
    range: LogRange,
    limit: u64,
) -> Result<LogPage, LinkError> {
    let mut params = json!({ "sessionId": session, "limit": limit });
    match range {
        LogRange::End => {}
        LogRange::Before(seq) => params["before"] = json!(seq),
        LogRange::After(seq) => params["after"] = json!(seq),
    }
    let call = connection.call_method(Method::ControlReadLog, &params);
    let page = within(SESSION_HOST_MAX, call).await?;
    let lines = page["lines"].as_str().unwrap_or_default();
    let (mut events, mut bounds) = (Vec::new(), None);
    for line in lines.lines() {
        if let Some(seq) = read_seq(line) {
            bounds = Some((bounds.map_or(seq, |(first, _)| first), seq));
        }
        events.extend(parse_event(session, line));
    }
    let end = page["last"].as_u64().unwrap_or_default();
    Ok(LogPage { session: session.to_owned(), range, events, bounds, end })
}

/// The number of an event, which is its first member. It is read without parsing, because some events nest too deep.
fn read_seq(line: &str) -> Option<u64> {
    let digits = line.strip_prefix(r#"{"seq":"#)?;
    digits[..digits.find(|it: char| !it.is_ascii_digit())?].parse().ok()
}

fn parse_event(session: &str, line: &str) -> Option<ReceivedEvent> {
    let mut event: Value = serde_json::from_str(line).ok()?;
    event["sessionId"] = json!(session);
    ReceivedEvent::from_value(event).ok()
}

/// Reads what the agent of a session offers.
pub(super) async fn read_settings(
    connection: &mut HubConnection,
    session: &str,
) -> Result<HubUpdate, LinkError> {
    let (stored, setup) = read_setup(connection, session).await?;
    let commands = read_event(connection, session, stored.commands_seq).await?;
    let commands = commands.and_then(take_commands).unwrap_or_default();
    let command = |it: &Value| {
        let description = it["description"].as_str().unwrap_or_default().to_owned();
        Some(SessionCommand { name: it["name"].as_str()?.to_owned(), description })
    };
    let settings = SessionSettings {
        mode: find_offer(&setup, SessionSetting::Mode),
        model: find_offer(&setup, SessionSetting::Model),
        reasoning: find_offer(&setup, SessionSetting::Reasoning),
        commands: commands.as_array().into_iter().flatten().filter_map(command).collect(),
        directories: stored.directories,
    };
    Ok(HubUpdate::Settings { session: session.to_owned(), settings: Box::new(settings) })
}

/// The stored settings of a session, and its setup with the current values.
pub(super) async fn read_setup(
    connection: &mut HubConnection,
    session: &str,
) -> Result<(StoredSettings, Value), LinkError> {
    let params = json!({ "sessionId": session });
    let stored = call_hub(connection, Method::ControlSettings, &params).await?;
    let stored: StoredSettings = serde_json::from_value(stored).unwrap_or_default();
    let options = read_event(connection, session, stored.options_seq).await?;
    let setup = stored.current_setup(options);
    Ok((stored, setup))
}

fn to_queue(session: &str, queue: &Value) -> HubUpdate {
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let prompt = |it: &Value| {
        Some(QueuedPrompt {
            number: it["prompt"].as_u64()?,
            by: text(&it["by"]),
            text: text(&it["text"]),
            is_held: it["held"] == true,
        })
    };
    let prompts = queue["prompts"].as_array().into_iter().flatten().filter_map(prompt).collect();
    HubUpdate::Queue { session: session.to_owned(), prompts }
}
