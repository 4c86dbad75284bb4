//! Flow control and limits.

use super::*;

fn small_limits() -> GatewayConfig {
    let limits = GatewayLimits {
        outbox_bytes_max: 1000,
        unsent_bytes_max: 1000,
        retained_bytes_max: 2000,
        pending_max: 5,
        waiting_max: 3,
        ..GatewayLimits::default()
    };
    GatewayConfig { limits, ..GatewayConfig::default() }
}

fn take_pauses(fixture: &mut GatewayFixture) -> Vec<String> {
    let outputs = std::mem::take(&mut fixture.other_outputs);
    let lines = outputs.iter().map(|it| match it {
        GatewayOutput::PauseHostConnection { host_conn } => format!("pause {host_conn}"),
        GatewayOutput::ResumeHostConnection { host_conn } => format!("resume {host_conn}"),
        GatewayOutput::PauseClient { conn } => format!("pause {conn}"),
        GatewayOutput::ResumeClient { conn } => format!("resume {conn}"),
        other => format!("{other:?}"),
    });
    lines.collect()
}

#[test]
fn client_that_does_not_read_pauses_itself_and_its_host_connection() {
    let mut fixture = GatewayFixture::with_config(small_limits());
    let host_conn = fixture.open_session(A, "s-1");
    fixture.feed(GatewayInput::HostConnectionWrote { host_conn, bytes: 1000 });
    fixture.feed(GatewayInput::ClientWrote { conn: A, bytes: 1000 });
    let text = "x".repeat(500);
    fixture.send_from_host(host_conn, &update("s-1", 1, &text));
    assert_eq!(take_pauses(&mut fixture), ["pause c-1"]);
    fixture.send_from_host(host_conn, &update("s-1", 2, &text));
    assert_eq!(take_pauses(&mut fixture), ["pause l-1"]);
    fixture.feed(GatewayInput::ClientWrote { conn: A, bytes: 800 });
    assert_eq!(take_pauses(&mut fixture), ["resume l-1"]);
    fixture.feed(GatewayInput::ClientWrote { conn: A, bytes: 1000 });
    assert_eq!(take_pauses(&mut fixture), ["resume c-1"]);
}

#[test]
fn host_that_does_not_read_pauses_its_client_until_it_is_lost() {
    let mut fixture = GatewayFixture::with_config(small_limits());
    let host_conn = fixture.open_session(A, "s-1");
    let params = json!({ "sessionId": "s-1", "text": "x".repeat(1100) });
    fixture.send_from_client(A, &json!({ "method": "m", "params": params }));
    assert_eq!(take_pauses(&mut fixture), ["pause c-1"]);
    fixture.lose_connection(host_conn);
    assert_eq!(take_pauses(&mut fixture), ["resume c-1"]);
}

#[test]
fn requests_above_the_waiting_limits_are_refused() {
    let mut fixture = GatewayFixture::with_config(small_limits());
    for id in 1..=4 {
        fixture.send_from_client(
            A,
            &request(&json!(id), "session/load", &json!({ "sessionId": "s-1" })),
        );
    }
    assert_eq!(
        (fixture.error_code(), fixture.last_client_frame().1["id"].clone()),
        ("overloaded".into(), json!(4))
    );
    for id in 5..=7 {
        fixture.send_from_client(
            A,
            &request(&json!(id), "session/load", &json!({ "sessionId": "s-2" })),
        );
    }
    assert_eq!(
        (fixture.error_code(), fixture.last_client_frame().1["id"].clone()),
        ("overloaded".into(), json!(7))
    );
    let text = "x".repeat(1500);
    let long = request(&json!(1), "session/load", &json!({ "sessionId": "s-3", "x": text }));
    fixture.send_from_client(B, &long);
    fixture.send_from_client(
        B,
        &request(&json!(2), "session/load", &json!({ "sessionId": "s-4", "x": text })),
    );
    assert_eq!((fixture.last_client_frame().0, fixture.error_code()), (B, "overloaded".into()));
    assert!(fixture.gateway.gauges().retained_bytes < 4000);
}

#[test]
fn client_above_the_limit_gets_an_error_and_is_closed() {
    let limits = GatewayLimits { clients_max: 2, ..GatewayLimits::default() };
    let mut fixture =
        GatewayFixture::with_config(GatewayConfig { limits, ..GatewayConfig::default() });
    fixture.feed(GatewayInput::ClientOpened { conn: ConnId(3) });
    assert_eq!(fixture.error_code(), "overloaded");
    assert!(matches!(
        fixture.other_outputs.last(),
        Some(GatewayOutput::CloseClient { conn: ConnId(3) })
    ));
}

#[test]
fn retained_bytes_of_all_clients_are_limited_except_for_a_minimum() {
    let limits = GatewayLimits { retained_bytes_total_max: 200 << 10, ..GatewayLimits::default() };
    let mut fixture =
        GatewayFixture::with_config(GatewayConfig { limits, ..GatewayConfig::default() });
    let text = "x".repeat(150 << 10);
    let load = |id: u64, text: &str| {
        request(&json!(id), "session/load", &json!({ "sessionId": "s-1", "x": text }))
    };
    fixture.send_from_client(A, &load(1, &text));
    fixture.send_from_client(B, &load(1, &text));
    assert_eq!((fixture.last_client_frame().0, fixture.error_code()), (B, "overloaded".into()));
    let before = fixture.client_frames.len();
    fixture.send_from_client(B, &load(2, "short"));
    assert_eq!(fixture.client_frames.len(), before, "it waits for the owner of its session");
}
