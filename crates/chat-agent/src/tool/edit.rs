//! The tool `edit`: replaces a text in a file by another one.

use super::{
    PreparedCall, SessionContext, ToolWork,
    arguments::ToolArguments,
    changes::{ChangeSet, PlannedChange},
    files::{ResolvedPath, file_not_found},
};

/// To correct its mistake, a model needs a few lines, not the whole file.
const SHOWN_LINES_MAX: usize = 12;

/// Which occurrences of a text are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplaceScope {
    /// The text must occur once.
    Single,
    All,
}

pub(super) async fn prepare(
    args: &ToolArguments,
    context: &SessionContext,
) -> Result<PreparedCall<ToolWork>, String> {
    let file = ResolvedPath::resolve_file(&args.required_text("path")?, context).await?;
    let (old, new) = (args.required_text("old_string")?, args.required_text("new_string")?);
    let text = file.read_if_exists(context).await?;
    let changed = match &text {
        // Some models create a file by replacing nothing.
        None if old.is_empty() => new,
        None => return Err(file_not_found(&file.display)),
        Some(text) => {
            let replace_all = args.flag("replace_all")?;
            let scope = if replace_all { ReplaceScope::All } else { ReplaceScope::Single };
            replace_text(text, &old, &new, scope)
                .map_err(|error| format!("`{}` is not changed. {error}", file.display))?
        }
    };
    ChangeSet(vec![PlannedChange { file, old: text, new: Some(changed) }]).into_prepared_call(args)
}

fn replace_text(text: &str, old: &str, new: &str, scope: ReplaceScope) -> Result<String, String> {
    if old.is_empty() {
        return Err("`old_string` is empty: use `write` to replace the whole file.".to_owned());
    }
    if old == new {
        return Err("`old_string` and `new_string` are the same.".to_owned());
    }
    let (old, new) = adapt_line_endings(text, old, new);
    match text.matches(&*old).count() {
        0 => Err(explain_no_match(text, &old)),
        1 => Ok(text.replacen(&*old, &new, 1)),
        _ if scope == ReplaceScope::All => Ok(text.replace(&*old, &new)),
        count => {
            let lines: Vec<String> = text
                .match_indices(&*old)
                .take(SHOWN_LINES_MAX)
                .map(|(at, _)| line_number(text, at).to_string())
                .collect();
            let lines = lines.join(", ");
            Err(format!(
                "`old_string` is in it {count} times, at the lines {lines}. Give more of the lines \
                 around the one you mean, or set `replace_all`."
            ))
        }
    }
}

/// Models write LF line endings even if the file has CRLF.
fn adapt_line_endings(text: &str, old: &str, new: &str) -> (String, String) {
    let has_lf_only = !old.contains('\r') && old.contains('\n');
    if has_lf_only && text.contains("\r\n") && !text.contains(old) {
        let to_crlf = |it: &str| it.replace("\r\n", "\n").replace('\n', "\r\n");
        return (to_crlf(old), to_crlf(new));
    }
    (old.to_owned(), new.to_owned())
}

/// Says why `old` is not in the text, with the lines of the text that are most similar.
fn explain_no_match(text: &str, old: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let wanted: Vec<&str> = old.lines().map(str::trim).collect();
    let wanted: Vec<&str> = match wanted.iter().position(|it| !it.is_empty()) {
        None => return "`old_string` is not in it: it is all spaces.".to_owned(),
        Some(first) => wanted[first..].to_vec(),
    };
    let is_similar = |window: &[&str]| window.iter().zip(&wanted).all(|(a, b)| a.trim() == *b);
    if let Some(at) = lines.windows(wanted.len()).position(is_similar) {
        let shown = lines[at..at + wanted.len().min(SHOWN_LINES_MAX)].join("\n");
        let line = at + 1;
        return format!(
            "`old_string` is not in it exactly: only the spaces differ. From line {line} the file \
             has:\n{shown}"
        );
    }
    if let Some(at) = lines.iter().position(|it| it.trim() == wanted[0]) {
        let shown = lines[at..lines.len().min(at + wanted.len().min(SHOWN_LINES_MAX))].join("\n");
        let line = at + 1;
        return format!(
            "`old_string` is not in it: its first line is, and what follows differs. From line \
             {line} the file has:\n{shown}"
        );
    }
    "`old_string` is not in it. Read the file again, and copy the text exactly.".to_owned()
}

fn line_number(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::{
        ReplaceScope::{All, Single},
        *,
    };
    use crate::tool::{IoCapabilities, test_session::with_test_session};
    use proptest::prelude::*;
    use serde_json::json;
    use std::fs;

    #[test]
    fn text_that_is_not_found_is_explained_with_similar_lines() {
        let text = "fn a() {\n    one();\n\tone();\n}\n";
        let error = |old: &str| replace_text(text, old, "x", Single).unwrap_err();
        let spaces = error("one();\n    one();");
        assert!(spaces.contains("only the spaces differ. From line 2"), "{spaces}");
        assert!(spaces.ends_with("    one();\n\tone();"), "{spaces}");
        let differs = error("fn a() {\n    two();\n}");
        assert!(differs.contains("what follows differs. From line 1"), "{differs}");
        assert!(error("fn b() {").contains("Read the file again"));
        let twice = error("one();");
        assert!(twice.contains("2 times, at the lines 2, 3."), "{twice}");
        assert_eq!(replace_text(text, "one", "two", All).unwrap().matches("two").count(), 2);
        assert!(error("").contains("use `write`") && error("x").contains("same"));
    }

    #[test]
    fn line_endings_of_the_file_are_preserved() {
        let text = "a\r\nb\r\nc\r\n";
        assert_eq!(replace_text(text, "a\nb", "A\nB\nX", Single).unwrap(), "A\r\nB\r\nX\r\nc\r\n");
        assert_eq!(replace_text("a\nb", "a\nb", "c\r\nd", Single).unwrap(), "c\r\nd");
    }

    #[tokio::test]
    async fn edit_changes_one_place_and_returns_a_diff() {
        with_test_session(IoCapabilities::default(), async |session| {
            fs::write(session.at("a.py"), "x = 1\ny = 1\n").unwrap();
            let args = json!({ "file_path": "a.py", "old_str": "x = 1", "new_str": "x = 2" });
            let outcome = session.call("edit", args).await;
            assert!(!outcome.is_error && outcome.text.contains("+x = 2"), "{outcome:?}");
            assert_eq!(fs::read_to_string(session.at("a.py")).unwrap(), "x = 2\ny = 1\n");
            let missing = json!({ "path": "b", "old_string": "a", "new_string": "b" });
            assert!(session.call("edit", missing).await.text.contains("There is no `b`"));
            let new_file = json!({ "path": "b", "old_string": "", "new_string": "b" });
            assert_eq!(session.call("edit", new_file).await.text, "Created `b`: 1 lines.");
        })
        .await;
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn edit_and_its_reverse_restore_the_text(
            head in "[a-c \n]{0,20}",
            old in "[d-f]{1,5}",
            new in "[g-i][a-c \n]{0,9}",
            tail in "[a-c \n]{0,20}",
        ) {
            let text = format!("{head}{old}{tail}");
            let changed = replace_text(&text, &old, &new, Single).unwrap();
            prop_assert_eq!(&changed, &format!("{head}{new}{tail}"));
            prop_assert_eq!(replace_text(&changed, &new, &old, Single).unwrap(), text);
        }
    }
}
