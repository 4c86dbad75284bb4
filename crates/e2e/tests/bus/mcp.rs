//! Workers that are no Python scripts: MCP's reference server, and an ACP agent with asks.

use super::Bus;
use jackfield_e2e::{Home, cli::installed};
use serde_json::json;

/// Each connection stays with one server: MCP is spoken from `initialize` on.
#[test]
fn the_reference_server_of_mcp_serves_each_client_from_a_process_of_its_own() {
    let home = Home::new();
    let program = installed("bin/mcp-server-everything");
    let pool = json!({ "id": "mcp", "command": program, "args": ["stdio", home.mark()],
        "instances": 2, "affinity": "connection" });
    let bus = Bus::on_unix(&home, &json!({ "pools": [pool] }));
    let mut clients = [bus.dial(), bus.dial()];
    for client in &mut clients {
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "e2e", "version": "1" } });
        let server = client.result("initialize", &hello);
        assert!(server["serverInfo"]["name"].is_string(), "{server}");
        client.notify("notifications/initialized", &json!({}));
    }
    for (at, client) in clients.iter_mut().enumerate() {
        let tools = client.result("tools/list", &json!({}));
        let names: Vec<_> =
            tools["tools"].as_array().unwrap().iter().map(|it| it["name"].clone()).collect();
        assert!(names.contains(&json!("echo")), "{names:?}");
        let call = json!({ "name": "echo", "arguments": { "message": format!("client {at}") } });
        let result = client.result("tools/call", &call);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.ends_with(&format!("client {at}")), "{text}");
    }
    drop(clients);
    bus.stop();
}

/// A plain ACP client notices no bus: prompt, updates, a permission, the stop.
#[test]
fn an_acp_agent_behind_a_bus_is_an_acp_agent() {
    let home = Home::new();
    let argv = home.fake_agent(&[]);
    let pool = json!({ "id": "fake", "command": argv[0], "args": argv[1..], "instances": 2,
        "affinity": "connection" });
    let bus = Bus::on_unix(&home, &json!({ "pools": [pool] }));
    let mut clients = [bus.dial(), bus.dial()];
    for client in &mut clients {
        client.hello();
        let session = client.open(home.path());
        let prompt = client.send_prompt(&session, "burst 1000 then ask");
        let ask = client.until("an ask", |it| it["method"] == "session/request_permission");
        let outcome = json!({ "outcome": "selected", "optionId": "allow-once" });
        client.respond(&ask, &json!({ "outcome": outcome }));
        assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
        let texts = client.heard.iter().filter(|it| it["method"] == "session/update").count();
        assert!(1000 < texts, "{texts}");
        let said = client.heard.iter().any(|it| it.to_string().contains("ask 1: allow-once"));
        assert!(said, "the agent heard the answer");
    }
    drop(clients);
    bus.stop();
}
