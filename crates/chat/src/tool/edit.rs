//! `edit`: one text in a file becomes another one.

use super::{
    Job, Site, Work,
    args::Args,
    change::{Change, Changes},
    files::{Target, no_file},
};

/// A model that is shown its mistake needs a few lines, not the file.
const SHOWN_LINES_MAX: usize = 12;

pub(super) async fn prepare(args: &Args, site: &Site) -> Result<Job<Work>, String> {
    let target = Target::find_file(&args.text("path")?, site).await?;
    let (old, new) = (args.text("old_string")?, args.text("new_string")?);
    let text = target.read_if_there(site).await?;
    let changed = match &text {
        // Nothing in place of nothing: that is how some models make a file.
        None if old.is_empty() => new,
        None => return Err(no_file(&target.shown)),
        Some(text) => replace(text, &old, &new, args.flag("replace_all")?)
            .map_err(|why| format!("`{}` is not changed. {why}", target.shown))?,
    };
    Changes(vec![Change { target, old: text, new: Some(changed) }]).into_job(args)
}

fn replace(text: &str, old: &str, new: &str, all: bool) -> Result<String, String> {
    if old.is_empty() {
        return Err("`old_string` is empty: use `write` to replace the whole file.".to_owned());
    }
    if old == new {
        return Err("`old_string` and `new_string` are the same.".to_owned());
    }
    let (old, new) = with_line_ends_of(text, old, new);
    match text.matches(&*old).count() {
        0 => Err(why_not_found(text, &old)),
        1 => Ok(text.replacen(&*old, &new, 1)),
        _ if all => Ok(text.replace(&*old, &new)),
        count => {
            let lines: Vec<String> = text
                .match_indices(&*old)
                .take(SHOWN_LINES_MAX)
                .map(|(at, _)| line_at(text, at).to_string())
                .collect();
            let lines = lines.join(", ");
            Err(format!(
                "`old_string` is in it {count} times, at the lines {lines}. Give more of the lines \
                 around the one you mean, or set `replace_all`."
            ))
        }
    }
}

/// Models write plain line ends, whatever those of the file are.
fn with_line_ends_of(text: &str, old: &str, new: &str) -> (String, String) {
    let is_plain = !old.contains('\r') && old.contains('\n');
    if is_plain && text.contains("\r\n") && !text.contains(old) {
        let dos = |it: &str| it.replace("\r\n", "\n").replace('\n', "\r\n");
        return (dos(old), dos(new));
    }
    (old.to_owned(), new.to_owned())
}

fn why_not_found(text: &str, old: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let wanted: Vec<&str> = old.lines().map(str::trim).collect();
    let wanted: Vec<&str> = match wanted.iter().position(|it| !it.is_empty()) {
        None => return "`old_string` is not in it: it is all spaces.".to_owned(),
        Some(first) => wanted[first..].to_vec(),
    };
    let alike = |window: &[&str]| window.iter().zip(&wanted).all(|(a, b)| a.trim() == *b);
    if let Some(at) = lines.windows(wanted.len()).position(alike) {
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

fn line_at(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{Offers, world::in_world};
    use proptest::prelude::*;
    use serde_json::json;
    use std::fs;

    #[test]
    fn what_is_not_found_is_told_with_what_is_there_instead() {
        let text = "fn a() {\n    one();\n\tone();\n}\n";
        let why = |old: &str| replace(text, old, "x", false).unwrap_err();
        let spaces = why("one();\n    one();");
        assert!(spaces.contains("only the spaces differ. From line 2"), "{spaces}");
        assert!(spaces.ends_with("    one();\n\tone();"), "{spaces}");
        let differs = why("fn a() {\n    two();\n}");
        assert!(differs.contains("what follows differs. From line 1"), "{differs}");
        assert!(why("fn b() {").contains("Read the file again"));
        let twice = why("one();");
        assert!(twice.contains("2 times, at the lines 2, 3."), "{twice}");
        assert_eq!(replace(text, "one", "two", true).unwrap().matches("two").count(), 2);
        assert!(why("").contains("use `write`") && why("x").contains("same"));
    }

    #[test]
    fn line_ends_stay_those_of_the_file() {
        let text = "a\r\nb\r\nc\r\n";
        assert_eq!(replace(text, "a\nb", "A\nB\nX", false).unwrap(), "A\r\nB\r\nX\r\nc\r\n");
        assert_eq!(replace("a\nb", "a\nb", "c\r\nd", false).unwrap(), "c\r\nd");
    }

    #[tokio::test]
    async fn an_edit_changes_one_place_and_says_so() {
        in_world(Offers::default(), async |world| {
            fs::write(world.at("a.py"), "x = 1\ny = 1\n").unwrap();
            let args = json!({ "file_path": "a.py", "old_str": "x = 1", "new_str": "x = 2" });
            let outcome = world.call("edit", args).await;
            assert!(!outcome.failed && outcome.text.contains("+x = 2"), "{outcome:?}");
            assert_eq!(fs::read_to_string(world.at("a.py")).unwrap(), "x = 2\ny = 1\n");
            let missing = json!({ "path": "b", "old_string": "a", "new_string": "b" });
            assert!(world.call("edit", missing).await.text.contains("There is no `b`"));
            let made = json!({ "path": "b", "old_string": "", "new_string": "b" });
            assert_eq!(world.call("edit", made).await.text, "Made `b`: 1 lines.");
        })
        .await;
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn an_edit_and_its_reverse_give_the_first_text_again(
            head in "[a-c \n]{0,20}",
            old in "[d-f]{1,5}",
            new in "[g-i][a-c \n]{0,9}",
            tail in "[a-c \n]{0,20}",
        ) {
            let text = format!("{head}{old}{tail}");
            let changed = replace(&text, &old, &new, false).unwrap();
            prop_assert_eq!(&changed, &format!("{head}{new}{tail}"));
            prop_assert_eq!(replace(&changed, &new, &old, false).unwrap(), text);
        }
    }
}
