//! Patches on files, and what must hold for any of them.

use super::{Section, apply::apply, parse::parse};
use crate::tool::{Offers, world::in_world};
use agent_client_protocol::v1::schema::ToolCallContent;
use proptest::prelude::*;
use serde_json::json;
use similar::TextDiff;
use std::fs;

fn patched(text: &str, patch: &str) -> Result<String, String> {
    let sections = parse(patch)?;
    let [Section::Update { hunks, .. }] = &sections[..] else { panic!("{sections:?}") };
    apply(text, hunks)
}

fn update(text: &str, hunks: &str) -> Result<String, String> {
    patched(text, &format!("*** Begin Patch\n*** Update File: f\n{hunks}\n*** End Patch\n"))
}

#[test]
fn hunks_fit_where_their_lines_are() {
    let text = "a\nx\nb\nx\nc\n";
    assert_eq!(update(text, "@@\n-x\n+y").unwrap(), "a\ny\nb\nx\nc\n");
    assert_eq!(update(text, "@@ b\n-x\n+y").unwrap(), "a\nx\nb\ny\nc\n");
    assert_eq!(update(text, "@@\n-x\n+y\n@@\n-x\n+z").unwrap(), "a\ny\nb\nz\nc\n");
    assert_eq!(update(text, "@@\n-x\n+y\n*** End of File").unwrap(), "a\nx\nb\ny\nc\n");
    assert_eq!(update(text, "@@\n+d").unwrap(), "a\nx\nb\nx\nc\nd\n");
    assert_eq!(update(text, "@@ a\n+d").unwrap(), "a\nd\nx\nb\nx\nc\n");
    assert_eq!(update("a\nb", "@@\n a\n+x").unwrap(), "a\nx\nb");
    let why = update(text, "@@\n-x\n+y\n@@\n-a\n+b").unwrap_err();
    assert!(why.contains("hunk 2") && why.ends_with("\na"), "{why}");
}

#[test]
fn spaces_that_differ_stay_those_of_the_file() {
    assert_eq!(update("  a  \n\tb\n", "@@\n   a\n- b\n+\tc").unwrap(), "  a  \n\tc\n");
    assert_eq!(update("a\r\nb\r\n", "@@\n a\n-b\n+c\n+d").unwrap(), "a\r\nc\r\nd\r\n");
}

#[tokio::test]
async fn a_patch_of_several_files_is_made_as_a_whole() {
    for offers in [Offers::default(), Offers { read: true, write: true, terminal: false }] {
        in_world(offers, async |world| {
            fs::write(world.at("a"), "one\ntwo\n").unwrap();
            fs::write(world.at("b"), "bye\n").unwrap();
            fs::write(world.at("c"), "stay\n").unwrap();
            let patch = "*** Begin Patch\n*** Update File: a\n@@\n-two\n+2\n*** Delete File: b\n\
                *** Add File: new/d\n+hi\n*** Update File: c\n*** Move to: e\n@@\n stay\n+here\n\
                *** Update File: a\n@@\n-one\n+1\n*** End Patch\n";
            let job = world.prepare("apply_patch", json!({ "patch": patch })).await.unwrap();
            assert_eq!((job.content.len(), job.title.as_str()), (5, "a and 4 more"));
            let ToolCallContent::Diff(first) = &job.content[0] else { panic!() };
            assert_eq!(first.new_text, "1\n2\n");
            let outcome = world.run(job).await;
            assert!(!outcome.failed, "{}", outcome.text);
            let text = |name: &str| fs::read_to_string(world.at(name)).ok();
            let is = |name: &str| text(name).unwrap_or_else(|| "none".to_owned());
            let all = ["a", "b", "c", "new/d", "e"].map(is);
            assert_eq!(all, ["1\n2\n", "none", "none", "hi\n", "stay\nhere\n"]);
        })
        .await;
    }
}

#[tokio::test]
async fn a_patch_that_does_not_fit_changes_nothing() {
    in_world(Offers::default(), async |world| {
        fs::write(world.at("a"), "one\n").unwrap();
        let add = "*** Begin Patch\n*** Add File: b\n+hi\n";
        for (rest, why) in [
            ("*** Update File: a\n@@\n-two\n+2\n", "does not fit `a`"),
            ("*** Update File: c\n@@\n-two\n+2\n", "There is no `c`"),
            ("*** Delete File: c\n", "There is no `c`"),
            ("*** Add File: ../c\n+x\n", "outside the session's directories"),
        ] {
            // As it is, without any JSON around it.
            let patch = format!("{add}{rest}*** End Patch");
            let outcome = world.call("apply_patch", json!(patch)).await;
            assert!(outcome.failed && outcome.text.contains(why), "{}", outcome.text);
        }
        assert!(!world.at("b").exists());
    })
    .await;
}

fn text() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec!["a", "b", "", "  a", "-", "+", "-- x", "++ y", "@@"]);
    (prop::collection::vec(line, 0..24), any::<bool>()).prop_map(|(lines, ends)| {
        let end = if ends && !lines.is_empty() { "\n" } else { "" };
        format!("{}{end}", lines.join("\n"))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn a_diff_gives_the_new_text(old in text(), new in text(), radius in 0_usize..4) {
        prop_assume!(old != new);
        let diff = TextDiff::from_lines(&old, &new);
        let diff = diff.unified_diff().context_radius(radius).header("a/f", "b/f").to_string();
        prop_assert_eq!(patched(&old, &diff), Ok(new), "{}", diff);
    }

    #[test]
    fn line_ends_of_another_system_stay(old in text(), new in text(), radius in 0_usize..4) {
        prop_assume!(old != new && old.contains('\n'));
        let diff = TextDiff::from_lines(&old, &new);
        let plain = diff.unified_diff().context_radius(radius).header("a/f", "b/f").to_string();
        let dos = |it: &str| it.replace('\n', "\r\n");
        let (old, new) = (dos(&old), dos(&new));
        let diff = TextDiff::from_lines(&old, &new);
        let exact = diff.unified_diff().context_radius(radius).header("a/f", "b/f").to_string();
        prop_assert_eq!(patched(&old, &exact), Ok(new.clone()), "{}", exact);
        prop_assert_eq!(patched(&old, &plain), Ok(new), "{}", plain);
    }
}
