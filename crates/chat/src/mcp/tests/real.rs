//! The reference server, over each of its transports.

use super::*;
use crate::tool::Grant;
use agent_client_protocol::v1::schema::{EnvVariable, McpServerHttp, McpServerSse};
use jackfield_testkit::everything::Everything;

/// Where `scripts/install-agents.sh` put it.
fn everything() -> PathBuf {
    let chosen = std::env::var_os("JACKFIELD_AGENTS_DIR").map(PathBuf::from);
    let in_tree = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/agents");
    let path = chosen.unwrap_or_else(in_tree).join("bin/mcp-server-everything");
    assert!(path.exists(), "the MCP server is missing: run scripts/install-agents.sh");
    std::path::absolute(path).unwrap()
}

fn on_stdio(name: &str) -> McpServer {
    let env = vec![EnvVariable::new("GIVEN", "by the client")];
    let args = vec!["stdio".to_owned()];
    McpServer::Stdio(McpServerStdio::new(name, everything()).args(args).env(env))
}

/// What every transport must carry.
async fn use_it(servers: &Servers) {
    assert_eq!(settled(servers).await, [""; 0]);
    let names = names(servers);
    assert!(names.iter().any(|it| it == "ev_echo"), "{names:?}");
    assert_eq!(names[names.len() - 2..], ["mcp_list_resources", "mcp_read_resource"]);

    let job = prepare(servers, "ev_echo", &json!({ "message": "hello" })).unwrap();
    assert_eq!(job.grant, Grant::Ask("mcp ev.echo".to_owned()));
    assert_eq!(job.title, "ev.echo");
    let echo = servers.run(job.work).await;
    assert!(!echo.failed && echo.text.contains("hello"), "{echo:?}");

    let image = call(servers, "ev_get-tiny-image", &json!({})).await;
    assert!(image.text.contains("[a picture (image/png), shown to the user]"), "{}", image.text);
    let blocks = content(&image);
    let picture = blocks.as_array().unwrap().iter().find(|it| it["content"]["type"] == "image");
    assert_eq!(picture.unwrap()["content"]["mimeType"], "image/png");

    let listed = call(servers, "mcp_list_resources", &json!({})).await;
    let architecture = "demo://resource/static/document/architecture.md";
    assert!(listed.text.contains(&format!("ev {architecture} ")), "{}", listed.text);
    assert!(listed.text.contains("demo://resource/dynamic/text/{resourceId}"), "{}", listed.text);
    let asked = json!({ "server": "ev", "uri": architecture });
    let read = call(servers, "mcp_read_resource", &asked).await;
    assert!(!read.failed && read.text.starts_with(architecture), "{}", read.text);

    let wrong = call(servers, "ev_echo", &json!({ "message": 7 })).await;
    assert!(wrong.failed, "{wrong:?}");
}

#[tokio::test]
async fn a_server_on_stdio_is_used() {
    let rig = Rig::new();
    let servers = rig.start([on_stdio("ev")], BOUND);
    use_it(&servers).await;
    rig.end(servers).await;
}

#[tokio::test]
async fn a_server_over_streamable_http_is_used() {
    let rig = Rig::new();
    let listening = Everything::start(&everything(), "streamableHttp", rig.ground.env.clone());
    let url = format!("http://127.0.0.1:{}/mcp", listening.port);
    let servers = rig.start([McpServer::Http(McpServerHttp::new("ev", url))], BOUND);
    use_it(&servers).await;
    drop(listening);
    let gone = call(&servers, "ev_echo", &json!({ "message": "hello" })).await;
    assert!(gone.failed && gone.text.contains("`ev`"), "{gone:?}");
    rig.end(servers).await;
}

#[tokio::test]
async fn a_server_over_the_older_sse_is_used() {
    let rig = Rig::new();
    let listening = Everything::start(&everything(), "sse", rig.ground.env.clone());
    let url = format!("http://127.0.0.1:{}/sse", listening.port);
    let servers = rig.start([McpServer::Sse(McpServerSse::new("ev", url))], BOUND);
    use_it(&servers).await;
    drop(listening);
    rig.wait_until("its end is noticed", |_| {
        prepare(&servers, "ev_echo", &json!({})).is_err_and(|it| it.contains("`ev` has ended"))
    })
    .await;
    rig.end(servers).await;
}

#[tokio::test]
async fn a_server_sees_what_it_was_given_and_nothing_else() {
    let rig = Rig::new();
    let servers = rig.start([on_stdio("ev")], BOUND);
    settled(&servers).await;
    servers.offered();
    let seen = call(&servers, "ev_get-env", &json!({})).await.text;
    let seen: Value = serde_json::from_str(&seen).unwrap();
    let mut names: Vec<&str> = seen.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["GIVEN", "HOME", jackfield_agents::MARK_VARIABLE, "PATH"]);
    assert_eq!(seen["GIVEN"], "by the client");
    rig.end(servers).await;
}

#[tokio::test]
async fn two_servers_of_one_name_are_told_apart() {
    let rig = Rig::new();
    let servers = rig.start([on_stdio("ev"), on_stdio("ev")], BOUND);
    assert_eq!(settled(&servers).await, [""; 0]);
    let names = names(&servers);
    for name in ["ev_echo", "ev_2_echo"] {
        assert!(names.iter().any(|it| it == name), "{names:?}");
    }
    let echo = call(&servers, "ev_2_echo", &json!({ "message": "second" })).await;
    assert!(echo.text.contains("second"), "{echo:?}");
    rig.end(servers).await;
}
