//! One session on five transports at once: stdio through `jackfield acp`, the unix socket, TCP, a
//! WebSocket and HTTP. One who asked leaves in mid-ask, one comes late, and the agent hears one
//! answer.

use jackfield_e2e::{
    Client, Daemon, Home,
    acp::Surfer,
    http::{Web, listening_address},
    wait_for,
};
use serde_json::{Value, json};
use std::{
    net::{Shutdown, SocketAddr, TcpStream},
    process::{Child, Stdio},
    sync::Arc,
    time::Duration,
};

const BOUND: Duration = Duration::from_secs(20);

/// A client and what must be ended with it.
struct Party {
    client: Client,
    hang_up: HangUp,
}

enum HangUp {
    Unix,
    Tcp(TcpStream),
    Web(Arc<Surfer>),
    Shim(Child),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Stdio,
    Unix,
    Tcp,
    WebSocket,
    Http,
}

const WAYS: [Way; 5] = [Way::Stdio, Way::Unix, Way::Tcp, Way::WebSocket, Way::Http];

/// Where a daemon listens beside its socket.
struct Addresses {
    tcp: SocketAddr,
    web: Web,
}

fn serve(home: &Home) -> (Daemon, Addresses) {
    let daemon = home.serve(&["--listen", "tcp://127.0.0.1:0", "--listen", "http://127.0.0.1:0"]);
    (daemon, Addresses { tcp: listening_address(home, "tcp"), web: Web::of(home) })
}

impl Party {
    fn come(home: &Home, at: &Addresses, agent: &[String], way: Way) -> Party {
        let (mut client, hang_up) = match way {
            Way::Unix => (home.dial(), HangUp::Unix),
            Way::Tcp => {
                let stream = TcpStream::connect(at.tcp).unwrap();
                let [reader, writer] = [(); 2].map(|()| Box::new(stream.try_clone().unwrap()));
                let mut client = Client::new(reader, writer);
                let token = std::fs::read_to_string(home.path().join("state/token")).unwrap();
                client.notify("_jackfield/auth", &json!({ "token": token.trim() }));
                (client, HangUp::Tcp(stream))
            }
            Way::WebSocket => {
                let (client, stream) = at.web.websocket();
                (client, HangUp::Tcp(stream))
            }
            Way::Http => {
                let (client, surfer) = at.web.http();
                (client, HangUp::Web(surfer))
            }
            Way::Stdio => {
                let mut command = home.command(&["acp", "--"]);
                command.args(agent).stdin(Stdio::piped()).stdout(Stdio::piped());
                let mut shim = command.stderr(Stdio::null()).spawn().unwrap();
                let (stdin, stdout) = (shim.stdin.take().unwrap(), shim.stdout.take().unwrap());
                (Client::new(Box::new(stdout), Box::new(stdin)), HangUp::Shim(shim))
            }
        };
        // Over HTTP nothing comes before the hello: agents are named when a session is opened.
        if matches!(way, Way::Stdio | Way::Http) {
            client.hello();
        } else {
            client.connect(agent);
        }
        Party { client, hang_up }
    }

    fn attach(&mut self, home: &Home, session: &str) {
        self.client.result("session/resume", &json!({ "sessionId": session, "cwd": home.path() }));
    }

    /// Without a word; the shim by SIGKILL.
    fn vanish(self) {
        match self.hang_up {
            HangUp::Unix => {}
            HangUp::Tcp(stream) => stream.shutdown(Shutdown::Both).unwrap(),
            HangUp::Web(surfer) => surfer.cut(),
            HangUp::Shim(mut shim) => {
                shim.kill().unwrap();
                shim.wait().unwrap();
            }
        }
    }
}

fn is_ask(message: &Value) -> bool {
    message["method"] == "session/request_permission"
}

/// Requests of the hub that were neither withdrawn nor are the one this client answered.
fn open_asks(client: &Client, answered: Option<&Value>) -> Vec<Value> {
    let of = |method: &'static str| client.heard.iter().filter(move |it| it["method"] == method);
    let withdrawn: Vec<&Value> =
        of("$/cancel_request").map(|it| &it["params"]["requestId"]).collect();
    let ids = of("session/request_permission").map(|it| &it["id"]);
    ids.filter(|it| !withdrawn.contains(it) && Some(*it) != answered).cloned().collect()
}

/// Everyone else has left: how many listen to the session.
fn clients_of(client: &mut Client) -> u64 {
    let rows = client.result("_jackfield/sessions", &json!({}));
    rows["sessions"][0]["clients"].as_u64().unwrap()
}

#[test]
fn one_leaves_in_mid_ask_and_one_comes_late_and_there_is_one_outcome_on_every_transport() {
    let home = Home::new();
    let (daemon, at) = serve(&home);
    let agent = home.fake_agent(&[]);
    let come = |way| Party::come(&home, &at, &agent, way);
    let mut opener = come(Way::Unix);
    let session = opener.client.open(home.path());
    opener.vanish();
    let mut asks = 0;
    // Over HTTP a client that is gone may come back: its connection is kept for some minutes.
    let mut away = 0;
    for shift in 0..WAYS.len() {
        let ways = [0, 1, 2].map(|it| WAYS[(it + shift) % WAYS.len()]);
        let [mut stays, mut leaves] = [ways[0], ways[1]].map(come);
        for party in [&mut stays, &mut leaves] {
            party.attach(&home, &session);
        }
        // The one that will leave has prompted: the turn outlives its driver.
        leaves.client.send_prompt(&session, "ask");
        let asked = stays.client.until("the ask", is_ask);
        leaves.client.until("the ask", is_ask);
        leaves.vanish();
        // Over TCP a client that is gone looks like one that only listens, until it is written to.
        let seen = away + if matches!(ways[1], Way::Tcp | Way::Http) { 2 } else { 1 };
        let noticed = format!("the hub to notice who left of {ways:?}");
        wait_for(&noticed, BOUND, || (clients_of(&mut stays.client) == seen).then_some(()));
        let mut late = come(ways[2]);
        late.attach(&home, &session);
        let asked_late = late.client.until("the ask, again", is_ask);
        // A client that does not know the hub gets a title with the facts in it.
        for part in ["/sessionId", "/toolCall/toolCallId", "/toolCall/rawInput", "/options"] {
            let found = asked_late["params"].pointer(part);
            assert_eq!(found, asked["params"].pointer(part), "{part}: {ways:?}");
            assert!(found.is_some(), "{part}: {ways:?}");
        }
        asks += 1;
        let choice = |it: &str| json!({ "outcome": { "outcome": "selected", "optionId": it } });
        late.client.respond(&asked_late, &choice("allow-once"));
        let withdrawn =
            stays.client.until("the withdrawal", |it| it["method"] == "$/cancel_request");
        assert_eq!(withdrawn["params"]["requestId"], asked["id"], "{ways:?}");
        // Too late, and against the winner: the agent must not hear it.
        stays.client.respond(&asked, &choice("reject-once"));
        for party in [&mut stays, &mut late] {
            party.client.until("what the agent heard", |it| {
                let text = it.pointer("/params/update/content/text").and_then(Value::as_str);
                text == Some("ask 1: allow-once")
            });
        }
        let idle = |client: &mut Client| {
            let rows = client.result("_jackfield/sessions", &json!({}));
            (rows["sessions"][0]["state"] == "idle").then_some(())
        };
        wait_for("the end of the turn", BOUND, || idle(&mut stays.client));
        assert_eq!(open_asks(&stays.client, None), Vec::<Value>::new(), "a ghost: {ways:?}");
        assert_eq!(open_asks(&late.client, Some(&asked_late["id"])), Vec::<Value>::new());
        for party in [&stays, &late] {
            assert_eq!(party.client.text().matches("ask 1: ").count(), 1, "{ways:?}");
        }
        check_log(&mut stays.client, &session, asks);
        stays.vanish();
        late.vanish();
        away += u64::from(ways.contains(&Way::Http));
    }
    daemon.stop();
}

#[test]
fn one_session_is_heard_alike_on_every_transport_at_once() {
    let home = Home::new();
    let (daemon, at) = serve(&home);
    let agent = home.fake_agent(&[]);
    let mut parties = WAYS.map(|way| Party::come(&home, &at, &agent, way));
    let session = parties[1].client.open(home.path());
    for (_, party) in WAYS.iter().zip(&mut parties).filter(|it| *it.0 != Way::Unix) {
        party.attach(&home, &session);
    }
    for (way, party) in WAYS.iter().zip(&mut parties) {
        let words = format!("plan then tool then split 3 {way:?} speaks");
        assert_eq!(party.client.prompt(&session, &words), "end_turn");
    }
    let mut heard = Vec::new();
    for (way, mut party) in WAYS.iter().zip(parties) {
        wait_for(&format!("the last words over {way:?}"), BOUND, || {
            party.client.next(Duration::ZERO);
            party.client.text().ends_with("Http speaks").then_some(())
        });
        heard.push((way, updates(&party.client)));
        party.vanish();
    }
    for (way, updates) in &heard {
        assert_eq!(updates, &heard[0].1, "{way:?}");
    }
    assert!(40 < heard[0].1.len());
    daemon.stop();
}

/// What the agent said, as it said it.
fn updates(client: &Client) -> Vec<Value> {
    let updates = client.heard.iter().filter_map(|it| it.pointer("/params/update"));
    updates.filter(|it| it["sessionUpdate"] != "user_message_chunk").cloned().collect()
}

/// Nothing is open, whoever comes now is asked nothing, and the log has one outcome an ask.
fn check_log(client: &mut Client, session: &str, asks: usize) {
    assert_eq!(client.result("_jackfield/asks", &json!({}))["asks"], json!([]));
    let asked_before = client.heard.iter().filter(|it| is_ask(it)).count();
    client.result("session/load", &json!({ "sessionId": session, "cwd": "/", "mcpServers": [] }));
    let asked = client.heard.iter().filter(|it| is_ask(it)).count();
    assert_eq!(asked, asked_before, "a ghost in the replay");
    let told = client.text().matches("ask 1: allow-once").count();
    // Once live, and then all of them again in the replay.
    assert_eq!(told, 1 + asks, "one outcome an ask");
}
