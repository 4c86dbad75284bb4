//! Servers that are slow, silent, dead or wrong.

use super::*;
use agent_client_protocol::v1::schema::{HttpHeader, McpServerHttp};
use std::{net::TcpListener, time::Instant};

#[tokio::test]
async fn a_server_that_never_answers_is_given_up_and_ended() {
    let rig = Rig::new();
    let script = "echo thinking >&2; sleep 1000";
    let servers = rig.start([sh("slow", script)], Duration::from_millis(300));
    let began = Instant::now();
    let notices = settled(&servers).await;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let [notice] = notices.as_slice() else { panic!("{notices:?}") };
    assert!(notice.contains("`slow` did not answer within 0.3 s"), "{notice}");
    assert!(notice.ends_with("thinking"), "{notice}");
    assert_eq!(settled(&servers).await, [""; 0], "each is told once");
    assert!(servers.offered().is_empty());
    rig.wait_until("it was not ended", |it| it.processes().is_empty()).await;
    rig.end(servers).await;
}

#[tokio::test]
async fn a_server_that_dies_at_once_leaves_its_last_words() {
    let rig = Rig::new();
    let servers = rig.start([sh("dead", "echo no database here >&2; exit 3")], BOUND);
    let notices = settled(&servers).await;
    let [notice] = notices.as_slice() else { panic!("{notices:?}") };
    assert!(notice.contains("it ended while it was starting (exit status 3)"), "{notice}");
    assert!(notice.ends_with("no database here"), "{notice}");
    rig.end(servers).await;
}

#[tokio::test]
async fn what_cannot_even_be_started_is_told_by_name() {
    let rig = Rig::new();
    let missing = McpServer::Stdio(McpServerStdio::new("missing", "/no/such/program"));
    let header = vec![HttpHeader::new("a b", "c")];
    let web = [
        McpServerHttp::new("mail", "mailto:x@y"),
        McpServerHttp::new("header", "http://127.0.0.1:9/").headers(header),
        McpServerHttp::new("closed", "http://127.0.0.1:9/mcp"),
    ];
    let web = web.into_iter().map(McpServer::Http);
    let servers = rig.start(std::iter::once(missing).chain(web).collect::<Vec<_>>(), BOUND);
    let notices = settled(&servers).await;
    let expected = [
        "/no/such/program",
        "it begins with `mailto:`",
        "the header `a b`",
        "there is no connection: Connection refused",
    ];
    assert_eq!(notices.len(), expected.len(), "{notices:?}");
    for (notice, part) in notices.iter().zip(expected) {
        assert!(notice.contains(part), "{notice}");
    }
    rig.end(servers).await;
}

#[tokio::test]
async fn a_web_server_that_is_silent_is_given_up() {
    let rig = Rig::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let silent = McpServer::Http(McpServerHttp::new("silent", url));
    let servers = rig.start([silent], Duration::from_millis(300));
    let notices = settled(&servers).await;
    assert!(notices[0].contains("`silent` did not answer within 0.3 s"), "{notices:?}");
    rig.end(servers).await;
}

#[tokio::test]
async fn a_broken_server_does_not_hold_up_the_others() {
    let rig = Rig::new();
    let good = sh("good", changing::SERVER);
    let servers = rig.start([sh("slow", "sleep 1000"), good], Duration::from_secs(5));
    rig.wait_until("the good one is up", |_| names(&servers) == ["good_first", "good_second"])
        .await;
    rig.end(servers).await;
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_says_why_and_so_does_every_later_call() {
    let rig = Rig::new();
    let servers = rig.script(changing::SERVER).await;
    assert_eq!(names(&servers), ["script_first", "script_second"]);
    let died = call(&servers, "script_first", &json!({ "do": "die" })).await;
    assert!(died.failed, "{died:?}");
    assert!(died.text.contains("`script` has ended (exit status 9)"), "{}", died.text);
    assert!(died.text.ends_with("out of memory"), "{}", died.text);
    let later = prepare(&servers, "script_second", &json!({})).unwrap_err();
    assert_eq!(later, died.text);
    assert_eq!(settled(&servers).await, [died.text], "and people are told once");
    let offered = &servers.offered()[0]["function"];
    assert_eq!(offered["name"], "script_first");
    assert_eq!(offered["description"], "Not available: its server has ended.");
    rig.end(servers).await;
}

#[tokio::test]
async fn arguments_that_are_no_object_are_told_to_the_model() {
    let rig = Rig::new();
    let servers = rig.script(changing::SERVER).await;
    servers.offered();
    let why = prepare(&servers, "script_first", &json!([1])).unwrap_err();
    assert!(why.starts_with("The arguments of `script_first` are JSON, but no object"), "{why}");
    let call = Call { id: "1".into(), name: "shell".into(), arguments: "{}".into() };
    assert!(servers.prepare(&call).is_none(), "it is not one of theirs");
    rig.end(servers).await;
}
