//! Who waits for whom, and what is refused.

use super::*;

fn small() -> GatewayConfig {
    let limits = GatewayLimits {
        outbox_bytes_max: 1000,
        untaken_bytes_max: 1000,
        kept_bytes_max: 2000,
        pending_max: 5,
        waiting_max: 3,
        ..GatewayLimits::default()
    };
    GatewayConfig { limits, ..GatewayConfig::default() }
}

fn paused(scene: &mut Scene) -> Vec<String> {
    let outputs = std::mem::take(&mut scene.others);
    let shown = outputs.iter().map(|it| match it {
        GatewayOutput::PauseHostConnection { host_conn } => format!("pause {host_conn}"),
        GatewayOutput::ResumeHostConnection { host_conn } => format!("resume {host_conn}"),
        GatewayOutput::PauseClient { conn } => format!("pause {conn}"),
        GatewayOutput::ResumeClient { conn } => format!("resume {conn}"),
        other => format!("{other:?}"),
    });
    shown.collect()
}

#[test]
fn a_client_that_does_not_read_is_not_read_and_its_host_conn_waits() {
    let mut scene = Scene::with(small());
    let host_conn = scene.open(A, "s-1");
    scene.feed(GatewayInput::HostConnectionWrote { host_conn, bytes: 1000 });
    scene.feed(GatewayInput::ClientWrote { conn: A, bytes: 1000 });
    let text = "x".repeat(500);
    scene.host_says(host_conn, &update("s-1", 1, &text));
    assert_eq!(paused(&mut scene), ["pause c-1"]);
    scene.host_says(host_conn, &update("s-1", 2, &text));
    assert_eq!(paused(&mut scene), ["pause l-1"]);
    scene.feed(GatewayInput::ClientWrote { conn: A, bytes: 800 });
    assert_eq!(paused(&mut scene), ["resume l-1"]);
    scene.feed(GatewayInput::ClientWrote { conn: A, bytes: 1000 });
    assert_eq!(paused(&mut scene), ["resume c-1"]);
}

#[test]
fn a_host_that_does_not_read_slows_who_speaks_to_it_and_its_loss_frees_them() {
    let mut scene = Scene::with(small());
    let host_conn = scene.open(A, "s-1");
    let params = json!({ "sessionId": "s-1", "text": "x".repeat(1100) });
    scene.say(A, &json!({ "method": "m", "params": params }));
    assert_eq!(paused(&mut scene), ["pause c-1"]);
    scene.lose(host_conn);
    assert_eq!(paused(&mut scene), ["resume c-1"]);
}

#[test]
fn too_much_that_waits_is_refused() {
    let mut scene = Scene::with(small());
    for id in 1..=4 {
        scene.say(A, &request(&json!(id), "session/load", &json!({ "sessionId": "s-1" })));
    }
    assert_eq!((scene.code(), scene.last().1["id"].clone()), ("overloaded".into(), json!(4)));
    for id in 5..=7 {
        scene.say(A, &request(&json!(id), "session/load", &json!({ "sessionId": "s-2" })));
    }
    assert_eq!((scene.code(), scene.last().1["id"].clone()), ("overloaded".into(), json!(7)));
    let text = "x".repeat(1500);
    let long = request(&json!(1), "session/load", &json!({ "sessionId": "s-3", "x": text }));
    scene.say(B, &long);
    scene.say(B, &request(&json!(2), "session/load", &json!({ "sessionId": "s-4", "x": text })));
    assert_eq!((scene.last().0, scene.code()), (B, "overloaded".into()));
    assert!(scene.gateway.gauges().kept_bytes < 4000);
}

#[test]
fn a_client_too_many_is_told_so() {
    let limits = GatewayLimits { clients_max: 2, ..GatewayLimits::default() };
    let mut scene = Scene::with(GatewayConfig { limits, ..GatewayConfig::default() });
    scene.feed(GatewayInput::ClientOpened { conn: ConnId(3) });
    assert_eq!(scene.code(), "overloaded");
    assert!(matches!(scene.others.last(), Some(GatewayOutput::CloseClient { conn: ConnId(3) })));
}

#[test]
fn what_all_clients_keep_is_bounded_and_little_of_each_is_kept_in_any_case() {
    let limits = GatewayLimits { kept_bytes_all_max: 200 << 10, ..GatewayLimits::default() };
    let mut scene = Scene::with(GatewayConfig { limits, ..GatewayConfig::default() });
    let text = "x".repeat(150 << 10);
    let load = |id: u64, text: &str| {
        request(&json!(id), "session/load", &json!({ "sessionId": "s-1", "x": text }))
    };
    scene.say(A, &load(1, &text));
    scene.say(B, &load(1, &text));
    assert_eq!((scene.last().0, scene.code()), (B, "overloaded".into()));
    let told = scene.told.len();
    scene.say(B, &load(2, "short"));
    assert_eq!(scene.told.len(), told, "it waits for the owner of its session");
}
