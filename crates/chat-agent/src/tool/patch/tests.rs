//! Tests of patches on files, and properties of all patches.

use super::{PatchSection, apply::apply_hunks, parse::parse_patch};
use crate::tool::{IoCapabilities, test_session::with_test_session};
use agent_client_protocol::v1::schema::ToolCallContent;
use proptest::prelude::*;
use serde_json::json;
use similar::TextDiff;
use std::fs;

fn apply_patch(text: &str, patch: &str) -> Result<String, String> {
    let sections = parse_patch(patch)?;
    let [PatchSection::Update { hunks, .. }] = &sections[..] else { panic!("{sections:?}") };
    apply_hunks(text, hunks)
}

fn apply_update(text: &str, hunks: &str) -> Result<String, String> {
    apply_patch(text, &format!("*** Begin Patch\n*** Update File: f\n{hunks}\n*** End Patch\n"))
}

#[test]
fn hunks_are_applied_where_their_lines_are() {
    let text = "a\nx\nb\nx\nc\n";
    assert_eq!(apply_update(text, "@@\n-x\n+y").unwrap(), "a\ny\nb\nx\nc\n");
    assert_eq!(apply_update(text, "@@ b\n-x\n+y").unwrap(), "a\nx\nb\ny\nc\n");
    assert_eq!(apply_update(text, "@@\n-x\n+y\n@@\n-x\n+z").unwrap(), "a\ny\nb\nz\nc\n");
    assert_eq!(apply_update(text, "@@\n-x\n+y\n*** End of File").unwrap(), "a\nx\nb\ny\nc\n");
    assert_eq!(apply_update(text, "@@\n+d").unwrap(), "a\nx\nb\nx\nc\nd\n");
    assert_eq!(apply_update(text, "@@ a\n+d").unwrap(), "a\nd\nx\nb\nx\nc\n");
    assert_eq!(apply_update("a\nb", "@@\n a\n+x").unwrap(), "a\nx\nb");
    let error = apply_update(text, "@@\n-x\n+y\n@@\n-a\n+b").unwrap_err();
    assert!(error.contains("hunk 2") && error.ends_with("\na"), "{error}");
}

#[test]
fn white_space_of_the_file_is_preserved() {
    assert_eq!(apply_update("  a  \n\tb\n", "@@\n   a\n- b\n+\tc").unwrap(), "  a  \n\tc\n");
    assert_eq!(apply_update("a\r\nb\r\n", "@@\n a\n-b\n+c\n+d").unwrap(), "a\r\nc\r\nd\r\n");
}

#[tokio::test]
async fn patch_of_several_files_is_applied_as_a_whole() {
    for client_io in [
        IoCapabilities::default(),
        IoCapabilities { reads_files: true, writes_files: true, has_terminals: false },
    ] {
        with_test_session(client_io, async |session| {
            fs::write(session.at("a"), "one\ntwo\n").unwrap();
            fs::write(session.at("b"), "bye\n").unwrap();
            fs::write(session.at("c"), "stay\n").unwrap();
            let patch = "*** Begin Patch\n*** Update File: a\n@@\n-two\n+2\n*** Delete File: b\n\
                *** Add File: new/d\n+hi\n*** Update File: c\n*** Move to: e\n@@\n stay\n+here\n\
                *** Update File: a\n@@\n-one\n+1\n*** End Patch\n";
            let prepared = session.prepare("apply_patch", json!({ "patch": patch })).await.unwrap();
            assert_eq!((prepared.content.len(), prepared.title.as_str()), (5, "a and 4 more"));
            let ToolCallContent::Diff(first) = &prepared.content[0] else { panic!() };
            assert_eq!(first.new_text, "1\n2\n");
            let outcome = session.run(prepared).await;
            assert!(!outcome.is_error, "{}", outcome.text);
            let text = |name: &str| fs::read_to_string(session.at(name)).ok();
            let text_or_none = |name: &str| text(name).unwrap_or_else(|| "none".to_owned());
            let all = ["a", "b", "c", "new/d", "e"].map(text_or_none);
            assert_eq!(all, ["1\n2\n", "none", "none", "hi\n", "stay\nhere\n"]);
        })
        .await;
    }
}

#[tokio::test]
async fn patch_that_does_not_fit_changes_nothing() {
    with_test_session(IoCapabilities::default(), async |session| {
        fs::write(session.at("a"), "one\n").unwrap();
        let add = "*** Begin Patch\n*** Add File: b\n+hi\n";
        for (rest, error) in [
            ("*** Update File: a\n@@\n-two\n+2\n", "does not fit `a`"),
            ("*** Update File: c\n@@\n-two\n+2\n", "There is no `c`"),
            ("*** Delete File: c\n", "There is no `c`"),
            ("*** Add File: ../c\n+x\n", "outside the session's directories"),
        ] {
            // The arguments are the patch itself, without any JSON around it.
            let patch = format!("{add}{rest}*** End Patch");
            let outcome = session.call("apply_patch", json!(patch)).await;
            assert!(outcome.is_error && outcome.text.contains(error), "{}", outcome.text);
        }
        assert!(!session.at("b").exists());
    })
    .await;
}

fn any_text() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec!["a", "b", "", "  a", "-", "+", "-- x", "++ y", "@@"]);
    (prop::collection::vec(line, 0..24), any::<bool>()).prop_map(|(lines, ends)| {
        let end = if ends && !lines.is_empty() { "\n" } else { "" };
        format!("{}{end}", lines.join("\n"))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn applying_a_diff_gives_the_new_text(old in any_text(), new in any_text(), radius in 0_usize..4) {
        prop_assume!(old != new);
        let diff = TextDiff::from_lines(&old, &new);
        let diff = diff.unified_diff().context_radius(radius).header("a/f", "b/f").to_string();
        prop_assert_eq!(apply_patch(&old, &diff), Ok(new), "{}", diff);
    }

    #[test]
    fn crlf_line_endings_are_preserved(old in any_text(), new in any_text(), radius in 0_usize..4) {
        prop_assume!(old != new && old.contains('\n'));
        let diff = TextDiff::from_lines(&old, &new);
        let plain = diff.unified_diff().context_radius(radius).header("a/f", "b/f").to_string();
        let to_crlf = |it: &str| it.replace('\n', "\r\n");
        let (old, new) = (to_crlf(&old), to_crlf(&new));
        let diff = TextDiff::from_lines(&old, &new);
        let exact = diff.unified_diff().context_radius(radius).header("a/f", "b/f").to_string();
        prop_assert_eq!(apply_patch(&old, &exact), Ok(new.clone()), "{}", exact);
        prop_assert_eq!(apply_patch(&old, &plain), Ok(new), "{}", plain);
    }
}
