//! A server in a few lines of shell, which does what the reference server does not.

use super::*;

/// Two pages of tools. `first` does what it is told: change the list of tools, die, say much, say
/// nothing; what it hears of a cancelled call it writes into a file.
pub(super) const SERVER: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
tool() { printf '{"name":"%s","description":"does %s","inputSchema":{"type":"object"}}' "$1" "$1"; }
text() { answer '{"content":[{"type":"text","text":"'"$1"'"}]}'; }
second=second
echo 'this banner is no protocol'
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
async fn every_page_of_tools_is_read_and_a_changed_list_is_read_again() {
    let rig = Rig::new();
    let servers = rig.script(SERVER).await;
    assert_eq!(names(&servers), ["script_first", "script_second"]);
    let changed = call(&servers, "script_first", &json!({ "do": "change" })).await;
    assert_eq!(changed.text, "changed");
    let is_new = |_: &Rig| names(&servers) == ["script_first", "script_third"];
    rig.wait_until("the new list", is_new).await;
    rig.end(servers).await;
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled_at_the_server() {
    let rig = Rig::new();
    let servers = rig.script(SERVER).await;
    servers.offered();
    let job = prepare(&servers, "script_first", &json!({ "do": "hang" })).unwrap();
    let (hanging, cancelled) = (rig.dir.path().join("hanging"), rig.dir.path().join("cancelled"));
    tokio::select! {
        outcome = servers.run(job.work) => panic!("{outcome:?}"),
        () = rig.wait_until("it works", |_| hanging.exists()) => {}
    }
    rig.wait_until("it was told", |_| cancelled.exists()).await;
    let after = call(&servers, "script_first", &json!({ "do": "change" })).await;
    assert_eq!(after.text, "changed", "and the server goes on");
    let (id, told) = (fs::read_to_string(hanging).unwrap(), fs::read_to_string(cancelled).unwrap());
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["params"]["requestId"].to_string(), id.trim());
    rig.end(servers).await;
}

#[tokio::test]
async fn a_long_answer_is_cut_and_says_so() {
    let rig = Rig::new();
    let servers = rig.script(SERVER).await;
    servers.offered();
    let much = call(&servers, "script_first", &json!({ "do": "much" })).await;
    assert!(much.text.contains(" characters are left out here: "), "{}", much.text.len());
    assert!(much.text.chars().count() <= 30_000, "{}", much.text.len());
    rig.end(servers).await;
}

#[tokio::test]
async fn servers_are_used_from_a_task_as_well() {
    let rig = Rig::new();
    let servers = rig.start([sh("script", SERVER)], BOUND);
    let task = tokio::spawn(async move {
        servers.settled().await;
        servers.offered();
        let job = prepare(&servers, "script_first", &json!({ "do": "change" })).unwrap();
        (servers.run(job.work).await, servers)
    });
    let (changed, servers) = timeout(BOUND, task).await.unwrap().unwrap();
    assert_eq!(changed.text, "changed");
    rig.end(servers).await;
}
