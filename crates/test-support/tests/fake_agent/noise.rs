//! Output that is not valid protocol, or unusual.

use serde_json::{Value, json};

use super::client::Client;

#[test]
fn raw_line_is_sent_byte_for_byte() {
    let mut client = Client::ready(&[]);
    let id =
        client.start_prompt(r#"raw { "x":1.00, "s" : "{sid}","id":{id}, "ü\u00fc" :[ ]} then"#);
    let session = client.session.clone();
    let line =
        format!("{{ \"x\":1.00, \"s\" : \"{session}\",\"id\":{id}, \"ü\\u00fc\" :[ ]}} then\n");
    assert_eq!(String::from_utf8(client.line()).unwrap(), line);
    assert_eq!(client.rest_of_turn(id, |_| None).stop_reason(), "end_turn");
}

#[test]
fn junk_is_nine_lines_between_frames() {
    let mut client = Client::ready(&[]);
    client.start_prompt("junk then count");
    let junk: Vec<_> = (0..9).map(|_| client.line()).collect();
    let frames = junk.iter().filter_map(|it| serde_json::from_slice::<Value>(it).ok());
    assert!(frames.filter(|it| it["method"].is_string()).count() == 0);
    assert_eq!(client.frame()["method"], "session/update");
}

#[test]
fn bad_utf8_is_one_line() {
    let mut client = Client::ready(&[]);
    let id = client.start_prompt("bad-utf8 then count");
    assert!(String::from_utf8(client.line()).is_err());
    assert_eq!(client.rest_of_turn(id, |_| None).texts(), ["count 1"]);
}

#[test]
fn frame_in_single_bytes_is_complete() {
    let mut client = Client::ready(&[]);
    let turn = client.prompt("count then partial then count");
    assert_eq!(turn.texts(), ["count 1", "partial", "count 1"]);
}

#[test]
fn dying_agent_can_leave_half_a_frame() {
    let mut client = Client::ready(&[]);
    client.start_prompt("count then half then die");
    let lines = client.rest();
    assert_eq!(lines.len(), 2);
    assert!(lines[1].starts_with(b"{") && !lines[1].ends_with(b"\n"));
}

#[test]
fn huge_update_has_the_requested_size() {
    let mut client = Client::ready(&[]);
    let turn = client.prompt("huge 20000001 then count");
    assert_eq!(turn.texts().iter().map(|it| it.len()).collect::<Vec<_>>(), [20_000_001, 7]);
}

#[test]
fn banner_and_byte_order_mark_precede_the_first_frame() {
    let mut client = Client::start(&["--banner", "--bom"]);
    let first = client.line();
    assert!(first.starts_with(b"\xef\xbb\xbf\x1b["));
    let mut lines = 1;
    client.send_request("initialize", &json!({"protocolVersion": 1}));
    while serde_json::from_slice::<Value>(&client.line()).is_err() {
        lines += 1;
    }
    assert_eq!(lines, 4);
}

#[test]
fn lines_can_end_with_carriage_returns() {
    let mut client = Client::ready(&["--crlf"]);
    let id = client.start_prompt("burst 1");
    for _ in 0..2 {
        let line = client.line();
        assert!(line.ends_with(b"}\r\n"), "{line:?}");
    }
    assert!(100 < id);
}

#[test]
fn optional_fields_can_be_null() {
    let mut client = Client::initialized(&["--nulls"]);
    let answer = client.open("/");
    assert_eq!(answer["result"].get("modes"), Some(&Value::Null));
    let turn = client.prompt("hello");
    assert_eq!(turn.updates().next().unwrap().get("messageId"), Some(&Value::Null));
}

#[test]
fn request_ids_can_be_of_any_kind() {
    let kinds =
        [("number", json!(1)), ("zero", json!(0)), ("big", json!(9_007_199_254_740_993_u64))];
    let first_id = |kind: &str| {
        let mut client = Client::ready(&["--ids", kind]);
        let ok = json!({"result": {}});
        client.prompt_with("unknown-request", |_| Some(ok.clone())).frames[0]["id"].clone()
    };
    for (kind, id) in kinds {
        assert_eq!(first_id(kind), id);
    }
    assert!(first_id("string").is_string());
}

#[test]
fn usage_is_reported_in_three_ways() {
    for (kind, second) in [("never", None), ("current", Some(100)), ("cumulative", Some(200))] {
        let mut client = Client::ready(&["--usage", kind]);
        client.prompt("one");
        let turn = client.prompt("two");
        assert_eq!(turn.answer["result"]["usage"]["totalTokens"].as_u64(), second, "{kind}");
        let updates = turn.updates().filter(|it| it["sessionUpdate"] == "usage_update").count();
        assert_eq!(updates, usize::from(second.is_some()), "{kind}");
    }
}
