//! Stopping a slow answer.

use super::{
    stage::{Reply, Stage, TURN_MAX},
    table::{Cell, cell},
    turn::Turn,
};
use std::time::{Duration, Instant};

/// A model that is cut off in mid-sentence would take ten seconds to the end of it; who has said
/// nothing after this long streams nothing.
const STREAMS_WITHIN: Duration = Duration::from_secs(4);

/// The hub asks politely this long, and once more; then it ends the process.
const GRACE: Duration = Duration::from_secs(3);

pub(super) fn cancel(stage: &mut Stage) -> Vec<Cell> {
    let mut turn = stage.begin("Be SLOW about it");
    let streams = hears(stage, &mut turn, "tick-3 ");
    let begin = Instant::now();
    stage.cancel();
    let turn = stage.finish(turn, Reply::Allow);
    let took = begin.elapsed();
    assert!(took < GRACE * 3, "it took {took:?}: {}", stage.story(&turn));
    assert!(!turn.text.contains("tick-50 "), "it did not stop: {}", stage.story(&turn));
    let says = match turn.stop() {
        "cancelled" if took < GRACE => "yes",
        "cancelled" => "by force",
        other => panic!("stopped with `{other}`: {}", stage.story(&turn)),
    };
    let next = stage.turn("Say hello", Reply::Allow);
    assert_eq!(next.stop(), "end_turn", "{}", stage.story(&next));
    assert!(next.text.contains("Hello from the fake model."), "{}", stage.story(&next));
    vec![cell("streams", if streams { "yes" } else { "no" }), cell("cancel", says)]
}

/// Whether these words arrive while the model speaks.
fn hears(stage: &mut Stage, turn: &mut Turn, words: &str) -> bool {
    let mut speaks_since = None;
    let begin = Instant::now();
    while turn.answer.is_none() && !turn.text.contains(words) {
        stage.step(turn, Reply::Allow, Duration::from_millis(50));
        let asked = |it: &serde_json::Value| {
            it["line"].as_str().is_some_and(|it| it.contains("SLOW")) && it["stream"] == true
        };
        if speaks_since.is_none() && stage.model.log().iter().any(asked) {
            speaks_since = Some(Instant::now());
        }
        if speaks_since.is_some_and(|it| STREAMS_WITHIN < it.elapsed()) {
            return false;
        }
        assert!(begin.elapsed() < TURN_MAX, "the model was never asked");
    }
    assert!(turn.answer.is_none(), "it is over already: {}", stage.story(turn));
    true
}
