//! Readers that leave and come again, and a daemon that is killed.

use super::{BOUND, again, assert_whole, body, events, make, names, serve, status, text, until};
use jackfield_e2e::{Home, http::Event, wait_for};
use serde_json::json;

#[test]
fn a_reader_that_leaves_does_not_end_the_run_unless_that_was_said() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let run_of = |it: &Event| it.json()["runId"].as_str().unwrap().to_owned();
    let mut chat = web.stream("POST", "/api/chat", &[], Some(&body("slow 40 10")));
    let run = run_of(&chat.next().unwrap());
    drop(chat);
    let told = events(&web, &run);
    assert_whole(&told);
    assert_eq!(told.last().unwrap().json()["status"], "succeeded");

    let mut ends = body("hang");
    ends["cancelOnDisconnect"] = json!(true);
    let mut chat = web.stream("POST", "/api/chat", &[], Some(&ends));
    let run = run_of(&chat.next().unwrap());
    until(&web, &run, "running");
    drop(chat);
    until(&web, &run, "canceled");
    daemon.stop();
}

#[test]
fn a_reader_goes_on_exactly_where_it_was_after_the_daemon_was_killed() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let (run, session) = make(&web, &body("think\ntool\nplan\nburst 20\nhello"));
    let whole = events(&web, &run);
    assert_whole(&whole);
    assert!(20 < whole.len());
    daemon.kill_9();
    let (daemon, web) = again(&home);
    let path = format!("/api/runs/{run}/events");
    for read in [0, 1, 7, whole.len() - 1] {
        let last = format!("Last-Event-ID: {read}");
        let rest = web.stream("GET", &path, &[&last], None).rest();
        assert_eq!(rest, whole[read..], "behind {read}");
        let rest = web.stream("GET", &format!("{path}?after={read}"), &[], None).rest();
        assert_eq!(rest, whole[read..], "behind {read}");
    }
    for beyond in [whole.len(), 1_000_000] {
        let rest = web.stream("GET", &format!("{path}?after={beyond}"), &[], None).rest();
        assert_eq!(rest, whole[whole.len() - 1..], "behind {beyond}");
    }
    assert_eq!(status(&web, &run), "succeeded");
    let listed = web.get(&format!("/api/runs?sessionId={session}")).good();
    assert_eq!(listed["runs"][0]["runId"], run.as_str());
    daemon.stop();
}

#[test]
fn a_run_that_a_killed_daemon_left_is_ended_for_its_readers_and_one_that_waited_still_waits() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let (works, session) = make(&web, &body("burst 3 then hang"));
    let mut reader = web.stream("GET", &format!("/api/runs/{works}/events"), &[], None);
    let read = reader.until("the last word", |it| {
        it.json()["delta"].as_str().is_some_and(|it| it.starts_with('3'))
    });
    let (waits, _) = make(&web, &json!({ "sessionId": session, "message": "later" }));
    daemon.kill_9();
    drop(reader);
    let (daemon, web) = again(&home);
    let last = format!("Last-Event-ID: {}", read.len());
    let rest = web.stream("GET", &format!("/api/runs/{works}/events"), &[&last], None).rest();
    let whole: Vec<Event> = read.into_iter().chain(rest.clone()).collect();
    assert_whole(&whole);
    assert_eq!(names(&rest)[rest.len() - 2..], ["error", "end"], "{rest:#?}");
    assert_eq!(rest[rest.len() - 2].json()["error"]["code"], "AGENT_CONNECTION_DROPPED");
    assert_eq!(status(&web, &waits), "queued");
    web.post(&format!("/api/runs/{waits}/cancel"), &json!({})).good();
    assert_eq!(status(&web, &waits), "canceled");
    daemon.stop();
}

#[test]
fn the_views_of_a_session_go_on_where_a_reader_was() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let (run, session) = make(&web, &body("think\ntool\nhello"));
    until(&web, &run, "succeeded");
    for view in ["events", "envelopes"] {
        let path = format!("/api/sessions/{session}/events?view={view}");
        let last = |it: &Event| it.json()["type"] == "usage" || it.json()["ev"]["t"] == "turn-end";
        let whole = web.stream("GET", &path, &[], None).until("the end", last);
        for (index, event) in whole.iter().enumerate().take(whole.len() - 1) {
            let header = format!("Last-Event-ID: {}", event.id.as_ref().unwrap());
            let rest = web.stream("GET", &path, &[&header], None).until("the end", last);
            assert_eq!(rest, whole[index + 1..], "{view} behind {header}");
        }
    }
    let mut reader = web.stream("GET", &format!("/api/sessions/{session}/events"), &[], None);
    assert!(reader.next().is_some());
    assert!(text(&events(&web, &run)).ends_with("you said: hello"));
    web.delete(&format!("/api/sessions/{session}")).good();
    wait_for("the run to be gone", BOUND, || {
        (web.get(&format!("/api/runs/{run}")).status == 404).then_some(())
    });
    drop(reader);
    daemon.stop();
}

#[test]
fn a_reader_that_does_not_read_holds_up_nobody_and_misses_nothing() {
    const WORDS: usize = 12_000;
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let (run, _) = make(&web, &body(&format!("burst {WORDS} 1000")));
    // 12 MB: more than the kernel and the hub hold for one reader.
    let mut reader = web.stream("GET", &format!("/api/runs/{run}/events"), &[], None);
    until(&web, &run, "succeeded");
    let told = reader.rest();
    assert_whole(&told);
    let words = told.iter().filter(|it| it.json()["type"] == "text_delta").count();
    assert_eq!(words, WORDS);
    drop(reader);
    daemon.stop();
}
