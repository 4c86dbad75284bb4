//! The page of numbers: what a person who watches a daemon at night needs to see.

use super::{BOUND, body, make, serve};
use jackfield_e2e::{Home, Web, wait_for};
use serde_json::json;

/// The value of a metric, whatever its labels say beyond `mark`.
pub(crate) fn value(page: &str, name: &str, mark: &str) -> Option<f64> {
    let is_it = |line: &&str| {
        let rest = line.strip_prefix(name).unwrap_or_default();
        (rest.starts_with(' ') || rest.starts_with('{')) && rest.contains(mark)
    };
    page.lines().find(is_it)?.rsplit(' ').next()?.parse().ok()
}

fn page(web: &Web) -> String {
    let reply = web.get("/metrics");
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.text()
}

#[test]
fn the_page_tells_queues_lag_losses_starts_and_the_size_of_each_agent() {
    let home = Home::new();
    let (_daemon, web) = serve(&home, &[]);
    let (_, session) = make(&web, &body("hang"));
    let path = format!("/api/sessions/{session}/prompt");
    assert_eq!(web.post(&path, &json!({ "message": "behind it" })).status, 202);
    let page = wait_for("the second prompt to wait", BOUND, || {
        let page = page(&web);
        (value(&page, "jackfield_prompts_waiting", "") == Some(1.0)).then_some(page)
    });
    assert_eq!(value(&page, "jackfield_lag_events", ""), Some(0.0), "{page}");
    assert_eq!(value(&page, "jackfield_lost_events_total", ""), Some(0.0), "{page}");
    assert_eq!(value(&page, "jackfield_held_events", ""), Some(0.0), "{page}");
    assert_eq!(value(&page, "jackfield_agent_spawn_seconds_count", ""), Some(1.0), "{page}");
    let bytes = value(&page, "jackfield_agent_resident_bytes", &session);
    assert!(bytes.is_some_and(|it| 500_000.0 < it), "{page}");
    assert!(value(&page, "jackfield_resident_bytes", "").is_some_and(|it| 1e6 < it), "{page}");
    assert!(value(&page, "jackfield_events_total", "").is_some_and(|it| 2.0 < it), "{page}");
}
