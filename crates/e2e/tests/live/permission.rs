//! Asking first: what is refused does not happen, what is allowed does.

use super::{
    stage::{Reply, Stage},
    table::{Cell, cell},
};

pub(super) fn ask(stage: &mut Stage) -> Vec<Cell> {
    stage.set_mode(stage.rig.mode_that_asks);
    let touched = stage.project.join("touched-by-tool.txt");
    let change = stage.rig.change.replace("{file}", touched.to_str().unwrap());
    let turn = stage.turn(&change, Reply::Refuse);
    if turn.asks == 0 {
        return vec![cell("asks first", "never"), cell("refused", "–")];
    }
    let story = stage.story(&turn);
    assert!(!touched.exists(), "it was refused and happened: {story}");
    let after = match turn.stop() {
        "error" => "error".to_owned(),
        stop => format!("`{stop}`"),
    };
    let turn = stage.turn(&change, Reply::Allow);
    let story = stage.story(&turn);
    assert_ne!(turn.asks, 0, "it does not ask again: {story}");
    assert_eq!(turn.stop(), "end_turn", "{story}");
    assert!(touched.exists(), "it was allowed and did not happen: {story}");
    vec![cell("asks first", "yes"), cell("refused", &after)]
}
