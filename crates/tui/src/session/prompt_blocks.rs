//! The content blocks of a prompt: text, and a link for each file that was chosen with `@`.

use serde_json::{Value, json};
use std::{collections::BTreeSet, fmt::Write as _};

/// Splits a prompt at `@path` of the chosen paths, which are absolute or relative to `cwd`.
pub(crate) fn build_blocks(text: &str, paths: &BTreeSet<String>, cwd: &str) -> Vec<Value> {
    let mut blocks = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices('@') {
        if at < start || !text[..at].chars().next_back().is_none_or(char::is_whitespace) {
            continue;
        }
        let Some(path) = find_path(&text[at + 1..], paths) else { continue };
        push_text(&mut blocks, &text[start..at]);
        blocks.push(json!({ "type": "resource_link", "uri": file_uri(cwd, path), "name": path }));
        start = at + 1 + path.len();
    }
    push_text(&mut blocks, &text[start..]);
    blocks
}

/// The prompt of a `session/prompt` as text: links as `@path`, everything else that is not text is left out.
pub(crate) fn prompt_text(blocks: &Value) -> String {
    let blocks = blocks.as_array().into_iter().flatten();
    blocks
        .filter_map(|it| match it["type"].as_str()? {
            "text" => it["text"].as_str().map(str::to_owned),
            "resource_link" => it["name"].as_str().map(|name| format!("@{name}")),
            _ => None,
        })
        .collect()
}

/// The longest chosen path at the start of a text, with no letter after it.
fn find_path<'a>(text: &str, paths: &'a BTreeSet<String>) -> Option<&'a str> {
    let ends = |it: &&String| {
        let after = text[it.len()..].chars().next();
        after.is_none_or(|it| !it.is_alphanumeric() && !matches!(it, '_' | '-' | '/'))
    };
    let matching = paths.iter().filter(|it| text.starts_with(it.as_str())).filter(ends);
    matching.max_by_key(|it| it.len()).map(String::as_str)
}

fn push_text(blocks: &mut Vec<Value>, text: &str) {
    if !text.is_empty() {
        blocks.push(json!({ "type": "text", "text": text }));
    }
}

fn file_uri(cwd: &str, path: &str) -> String {
    let mut uri = "file://".to_owned();
    let folder = if path.starts_with('/') { "" } else { cwd.trim_end_matches('/') };
    let separator = if path.starts_with('/') { "" } else { "/" };
    for byte in [folder, separator, path].iter().flat_map(|it| it.bytes()) {
        if byte.is_ascii_alphanumeric() || b"-._~/:".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(text: &str) -> Vec<Value> {
        let paths =
            ["src/a.rs", "src/a.rs.bak", "my file.txt", "/w/lib/b.rs"].map(str::to_owned).into();
        build_blocks(text, &paths, "/w/p")
    }

    #[test]
    fn chosen_files_are_links_between_the_text() {
        let blocks = build("Compare @src/a.rs and @src/a.rs.bak, @my file.txt");
        let link =
            |uri: &str, name: &str| json!({ "type": "resource_link", "uri": uri, "name": name });
        let text = |it: &str| json!({ "type": "text", "text": it });
        assert_eq!(
            blocks,
            [
                text("Compare "),
                link("file:///w/p/src/a.rs", "src/a.rs"),
                text(" and "),
                link("file:///w/p/src/a.rs.bak", "src/a.rs.bak"),
                text(", "),
                link("file:///w/p/my%20file.txt", "my file.txt"),
            ]
        );
        let prompt = prompt_text(&Value::Array(blocks));
        assert_eq!(prompt, "Compare @src/a.rs and @src/a.rs.bak, @my file.txt");
    }

    #[test]
    fn file_of_another_directory_keeps_its_path() {
        let link =
            json!({ "type": "resource_link", "uri": "file:///w/lib/b.rs", "name": "/w/lib/b.rs" });
        assert_eq!(build("@/w/lib/b.rs"), [link]);
    }

    #[test]
    fn other_words_with_an_at_sign_are_text() {
        for text in ["mail me@src/a.rs", "@src/b.rs", "@src/a.rsx", "@"] {
            assert_eq!(build(text), [json!({ "type": "text", "text": text })]);
        }
        assert!(build("").is_empty());
    }
}
