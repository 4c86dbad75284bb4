//! A server in a few lines of shell, with behavior that the reference server does not have.

use super::*;

/// Has two pages of tools. The argument `do` of `first` selects what it does: change the list of
/// tools, exit, return much, or return nothing. It writes notifications of canceled calls to a
/// file.
pub(super) const SERVER: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
tool() { printf '{"name":"%s","description":"does %s","inputSchema":{"type":"object"}}' "$1" "$1"; }
text() { answer '{"content":[{"type":"text","text":"'"$1"'"}]}'; }
second=second
echo 'this banner is not JSON'
while read -r line; do
    id=${line##*'"id":'}
    id=${id%%[,\}]*}
    case $line in
    *'"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},
        "serverInfo":{"name":"script","version":"1"}}' | tr -d '\n'; echo ;;
    *'"tools/list"'*'"cursor":"2"'*) answer '{"tools":['"$(tool $second)"']}' ;;
    *'"tools/list"'*) answer '{"tools":['"$(tool first)"'],"nextCursor":"2"}' ;;
    *'"die"'*) echo out of memory >&2; exit 9 ;;
    *'"hang"'*) echo "$id" >hanging ;;
    *'"much"'*) text "$(printf '%040000d' 0)" ;;
    *'"change"'*)
        second=third
        echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
        text changed ;;
    *'"notifications/cancelled"'*) echo "$line" >cancelled ;;
    esac
done
"#;

#[tokio::test]
async fn all_pages_of_tools_are_read_and_changed_lists_are_reread() {
    let session = McpTestSession::new();
    let servers = session.start_script(SERVER).await;
    assert_eq!(names(&servers), ["script_first", "script_second"]);
    let changed = call(&servers, "script_first", &json!({ "do": "change" })).await;
    assert_eq!(changed.text, "changed");
    let is_new = |_: &McpTestSession| names(&servers) == ["script_first", "script_third"];
    session.wait_until("the new list", is_new).await;
    session.end(servers).await;
}

#[tokio::test]
async fn dropped_call_is_canceled_at_the_server() {
    let session = McpTestSession::new();
    let servers = session.start_script(SERVER).await;
    servers.tool_specs();
    let prepared = prepare(&servers, "script_first", &json!({ "do": "hang" })).unwrap();
    let (hanging, canceled) =
        (session.dir.path().join("hanging"), session.dir.path().join("cancelled"));
    tokio::select! {
        outcome = servers.run_work(prepared.work) => panic!("{outcome:?}"),
        () = session.wait_until("the call runs", |_| hanging.exists()) => {}
    }
    session.wait_until("the server was notified", |_| canceled.exists()).await;
    let after = call(&servers, "script_first", &json!({ "do": "change" })).await;
    assert_eq!(after.text, "changed", "the server still works");
    let (id, notification) =
        (fs::read_to_string(hanging).unwrap(), fs::read_to_string(canceled).unwrap());
    let notification: Value = serde_json::from_str(&notification).unwrap();
    assert_eq!(notification["params"]["requestId"].to_string(), id.trim());
    session.end(servers).await;
}

#[tokio::test]
async fn long_result_is_truncated_with_a_note() {
    let session = McpTestSession::new();
    let servers = session.start_script(SERVER).await;
    servers.tool_specs();
    let much = call(&servers, "script_first", &json!({ "do": "much" })).await;
    assert!(much.text.contains(" characters are left out here: "), "{}", much.text.len());
    assert!(much.text.chars().count() <= 30_000, "{}", much.text.len());
    session.end(servers).await;
}

#[tokio::test]
async fn futures_of_servers_are_send() {
    let session = McpTestSession::new();
    let servers = session.start([shell_server("script", SERVER)], TEST_TIMEOUT);
    let task = tokio::spawn(async move {
        servers.wait_for_start().await;
        servers.tool_specs();
        let prepared = prepare(&servers, "script_first", &json!({ "do": "change" })).unwrap();
        (servers.run_work(prepared.work).await, servers)
    });
    let (changed, servers) = timeout(TEST_TIMEOUT, task).await.unwrap().unwrap();
    assert_eq!(changed.text, "changed");
    session.end(servers).await;
}
