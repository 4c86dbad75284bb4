//! The official SDK on both far sides: its client, Jackfield, its agent, over every transport.

use crate::sdk_client::{Ear, Talk, Way, agent, hello, prompt, run, talk, user, with_plain_ids};
use agent_client_protocol::{
    Result, UntypedMessage,
    v1::schema::{
        CancelNotification, ListSessionsRequest, LoadSessionRequest, NewSessionRequest,
        PromptRequest, SessionId, StopReason,
    },
};
use jackfield_e2e::{
    Client, Daemon, Home, client::PATIENCE, home::binary, http::listening_address,
};
use serde_json::{Value, json};
use std::{
    net::{SocketAddr, TcpStream},
    path::Path,
};
use tokio::sync::{Barrier, OnceCell};

#[test]
fn the_sdk_talks_to_itself_over_stdio() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    converse(&home, daemon, Way::Stdio);
}

#[test]
fn the_sdk_talks_to_itself_over_a_unix_socket() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    converse(&home, daemon, Way::Unix);
}

#[test]
fn the_sdk_talks_to_itself_over_tcp() {
    let home = Home::new();
    let (daemon, address) = serve_tcp(&home);
    converse(&home, daemon, Way::Tcp(address));
}

#[test]
fn nobody_speaks_over_tcp_without_the_token() {
    let home = Home::new();
    let (daemon, address) = serve_tcp(&home);
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;
    let guess = format!(
        r#"{{"jsonrpc":"2.0","method":"_jackfield/auth","params":{{"token":"{}"}}}}"#,
        "0".repeat(64)
    );
    for first in [hello, &guess] {
        let stream = TcpStream::connect(address).unwrap();
        let mut client = Client::new(Box::new(stream.try_clone().unwrap()), Box::new(stream));
        client.send_line(&format!("{first}\n{hello}"));
        let refusal = client.next(PATIENCE).expect("a word of refusal");
        assert_eq!((&refusal["id"], refusal.get("result")), (&Value::Null, None), "{refusal}");
        assert!(client.next(PATIENCE).is_none(), "and nothing more");
    }
    daemon.stop();
}

/// A daemon that also listens on a TCP port.
pub(crate) fn serve_tcp(home: &Home) -> (Daemon, SocketAddr) {
    let daemon = home.serve(&["--listen", "tcp://127.0.0.1:0"]);
    (daemon, listening_address(home, "tcp"))
}

/// The command line of the SDK's agent, which keeps its sessions in a directory of this home.
pub(crate) fn sdk_agent(home: &Home) -> Vec<String> {
    let state = home.path().join("sdk-agent");
    std::fs::create_dir_all(&state).unwrap();
    [binary("examples/sdk_agent"), state].map(|it| it.to_string_lossy().into_owned()).into()
}

/// Everything once, then everything again as another client, then the agent dies.
fn converse(home: &Home, daemon: Daemon, way: Way) {
    let argv = sdk_agent(home);
    run(async {
        let ear = Ear::default();
        let first = async |hub: Talk| go_through_it_all(&hub, &ear, home.path()).await;
        let session = way.talk(home, &argv, &ear, first).await;
        let later = Ear::default();
        let second = async |hub: Talk| come_back(&hub, &later, &session, home.path()).await;
        way.talk(home, &argv, &later, second).await;
    });
    daemon.stop();
}

async fn go_through_it_all(hub: &Talk, ear: &Ear, cwd: &Path) -> Result<SessionId> {
    let told = hello(hub).await?;
    assert_eq!(told.agent_info.map(|it| it.name).as_deref(), Some("sdk-agent"));
    assert!(told.agent_capabilities.load_session);
    assert!(told.agent_capabilities.session_capabilities.list.is_some(), "the hub can list");

    let session = hub.send_request(NewSessionRequest::new(cwd)).block_task().await?.session_id;
    assert_eq!(prompt(hub, &session, "tick 3").await?, StopReason::EndTurn);
    assert_eq!(ear.updates(&session), ["tick 1 ", "tick 2 ", "tick 3 "].map(agent));

    assert_eq!(prompt(hub, &session, "ask").await?, StopReason::EndTurn);
    let asks = ear.asks();
    assert_eq!(asks.len(), 1);
    assert_eq!(asks[0].session_id, session);
    assert_eq!(asks[0].tool_call.fields.title.as_deref(), Some("touch a file"));
    assert_eq!(ear.updates(&session).last(), Some(&agent("chosen: yes")));

    let wait = PromptRequest::new(session.clone(), vec!["wait".into()]);
    let waiting = hub.send_request(wait);
    ear.until_said("waiting").await;
    hub.send_notification(CancelNotification::new(session.clone()))?;
    assert_eq!(waiting.block_task().await?.stop_reason, StopReason::Cancelled);

    let list = ListSessionsRequest::new().cwd(cwd.to_path_buf());
    let listed = hub.send_request(list).block_task().await?.sessions;
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0].session_id, session);
    assert_eq!(listed[0].cwd, cwd);
    Ok(session)
}

async fn come_back(hub: &Talk, ear: &Ear, session: &SessionId, cwd: &Path) -> Result<()> {
    hello(hub).await?;
    hub.send_request(LoadSessionRequest::new(session.clone(), cwd)).block_task().await?;
    let mut expected = vec![user("tick 3"), agent("tick 1 "), agent("tick 2 "), agent("tick 3 ")];
    expected.extend([user("ask"), agent("chosen: yes"), user("wait"), agent("waiting")]);
    assert_eq!(ear.updates(session), expected, "the replay is complete");

    assert_eq!(prompt(hub, session, "count").await?, StopReason::EndTurn);
    expected.push(agent("count 4"));
    assert_eq!(ear.updates(session), expected);

    let died = prompt(hub, session, "die").await.expect_err("the agent died");
    let code = died.data.as_ref().and_then(|it| it.pointer("/jackfield/code")).cloned();
    assert_eq!(code, Some(json!("agent_gone")), "{died:?}");

    // The next process loads the session; its replay is nobody's news.
    assert_eq!(prompt(hub, session, "count").await?, StopReason::EndTurn);
    expected.push(agent("count 6"));
    assert_eq!(ear.updates(session), expected);
    Ok(())
}

#[test]
fn two_sdk_clients_with_equal_ids_on_one_agent_never_hear_each_others_answers() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let argv = sdk_agent(&home);
    let (opened, both) = (OnceCell::<SessionId>::new(), Barrier::new(2));
    let (left, right) = (Ear::default(), Ear::default());
    run(async {
        let opens = talk(with_plain_ids(&home, &argv).await, &left, async |hub| {
            hello(&hub).await?;
            let new = hub.send_request(NewSessionRequest::new(home.path())).block_task().await?;
            opened.set(new.session_id.clone()).unwrap();
            both.wait().await;
            both.wait().await;
            echo_in_pairs(&hub, &new.session_id, "left").await?;
            both.wait().await;
            Ok(())
        });
        let joins = talk(with_plain_ids(&home, &[]).await, &right, async |hub| {
            hello(&hub).await?;
            both.wait().await;
            let session = opened.get().expect("opened before the barrier");
            let load = LoadSessionRequest::new(session.clone(), home.path());
            hub.send_request(load).block_task().await?;
            both.wait().await;
            echo_in_pairs(&hub, session, "right").await?;
            both.wait().await;
            Ok(())
        });
        tokio::join!(opens, joins);
    });
    daemon.stop();
}

/// Fifty questions at once; both clients number them 3 to 52. Then a turn each, under the same id.
async fn echo_in_pairs(hub: &Talk, session: &SessionId, who: &str) -> Result<()> {
    let question = |number: u32| {
        let payload = json!({ "who": who, "number": number });
        let params = json!({ "sessionId": session, "payload": payload });
        let request = UntypedMessage::new("_e2e/echo", params).unwrap();
        let asked = hub.send_request(request).block_task();
        async move { (payload, asked.await) }
    };
    for (payload, answer) in futures::future::join_all((0..50).map(question)).await {
        assert_eq!(answer?, payload);
    }
    let word = if who == "left" { "tick 1" } else { "hello from the right" };
    assert_eq!(prompt(hub, session, word).await?, StopReason::EndTurn);
    Ok(())
}

#[test]
fn two_plain_clients_with_equal_ids_get_four_hundred_answers_right() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut left = home.dial();
    left.connect(&home.fake_agent(&[]));
    let session = left.open(home.path());
    let mut right = home.dial();
    right.hello();
    right.result(
        "session/load",
        &json!({ "sessionId": session, "cwd": home.path(), "mcpServers": [] }),
    );
    let question = |who: &str, id: u32| {
        let mut params = json!({ "payload": format!("{who} {id}") });
        // Half of them name the session, the others are for whatever agent the client has.
        if id.is_multiple_of(2) {
            params["sessionId"] = json!(session);
        }
        json!({ "jsonrpc": "2.0", "id": id, "method": "_fake/echo", "params": params }).to_string()
    };
    for id in 1000..1200 {
        left.send_line(&question("left", id));
        right.send_line(&question("right", id));
    }
    check_answers(&mut left, "left");
    check_answers(&mut right, "right");
    drop((left, right));
    daemon.stop();
}

fn check_answers(client: &mut Client, who: &str) {
    for id in 1000..1200 {
        let answer = client.next(PATIENCE).expect("an answer");
        assert_eq!(answer["id"], json!(id), "answers keep the order of the questions: {answer}");
        assert_eq!(answer["result"]["payload"], json!(format!("{who} {id}")), "{answer}");
    }
}

#[test]
fn two_turns_under_one_id_end_each_with_its_own_outcome() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut left = home.dial();
    left.connect(&home.fake_agent(&[]));
    let session = left.open(home.path());
    let mut right = home.dial();
    right.hello();
    let turn = |text: &str| {
        let prompt = json!([{ "type": "text", "text": text }]);
        let params = json!({ "sessionId": session, "prompt": prompt });
        json!({ "jsonrpc": "2.0", "id": 77, "method": "session/prompt", "params": params })
    };
    left.send_line(&turn("wait 50 then stop max_tokens").to_string());
    right.send_line(&turn("stop refusal").to_string());
    assert_eq!(left.answer(77)["result"]["stopReason"], "max_tokens");
    assert_eq!(right.answer(77)["result"]["stopReason"], "refusal");
    drop((left, right));
    daemon.stop();
}
