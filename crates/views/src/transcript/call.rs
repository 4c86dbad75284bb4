//! A tool call: one line that says what became of it, and under it what it changed and printed, as
//! far as that is short enough.

use super::{
    diff::diff,
    markdown::{code, fenced, plain, prefixed, shortened, words},
};
use crate::text::facts::{text, words_of};
use serde_json::Value;

const DIFF_LINES_MAX: usize = 120;
const OUTPUT_LINES_FIRST: usize = 30;
const OUTPUT_LINES_LAST: usize = 10;

/// Put together from what the agent says of it, bit by bit.
#[derive(Debug, Default)]
pub(super) struct Call {
    pub(super) id: String,
    /// The agent has said that it makes the call, not only asked whether it may.
    pub(super) made: bool,
    title: String,
    kind: String,
    status: String,
    /// What is said of it in blocks: each time all of them.
    content: Vec<Value>,
    /// Edits, as they were last told.
    diffs: Vec<Value>,
    /// What a terminal printed, piece by piece.
    printed: String,
    raw_input: Value,
    raw_output: Value,
}

impl Call {
    pub(super) fn new(id: &str) -> Call {
        Call { id: id.to_owned(), ..Call::default() }
    }

    /// One `tool_call`, `tool_call_update`, or the tool call of an ask.
    pub(super) fn learn(&mut self, said: &Value) {
        let known =
            [(&mut self.title, "title"), (&mut self.kind, "kind"), (&mut self.status, "status")];
        for (known, name) in known {
            let said = text(said, name);
            if !said.is_empty() {
                said.clone_into(known);
            }
        }
        if let Some(content) = said["content"].as_array() {
            let (diffs, others): (Vec<Value>, _) =
                content.iter().cloned().partition(|it| text(it, "type") == "diff");
            self.content = others;
            // That it is done is not worth more than what it did.
            if !diffs.is_empty() {
                self.diffs = diffs;
            }
        }
        for name in ["terminal_output", "terminal_output_delta"] {
            self.printed.push_str(text(&said["_meta"][name], "data"));
        }
        for (known, name) in
            [(&mut self.raw_input, "rawInput"), (&mut self.raw_output, "rawOutput")]
        {
            if !said[name].is_null() {
                *known = said[name].clone();
            }
        }
    }

    pub(super) fn title(&self) -> &str {
        let command = text(&self.raw_input, "command");
        [self.title.as_str(), command].into_iter().find(|it| !it.trim().is_empty()).unwrap_or("?")
    }

    /// With what was asked about it.
    pub(super) fn render(&self, asks: &[String]) -> String {
        let kind = if self.kind.is_empty() { "tool" } else { &self.kind };
        let outcome = match self.status.as_str() {
            "completed" => "done".to_owned(),
            "failed" => "failed".to_owned(),
            "" | "pending" | "in_progress" => "no end was told".to_owned(),
            other => words(other),
        };
        let mut shown = Vec::new();
        if self.made {
            let asked = asks.iter().map(|it| format!("asked ({it})"));
            let became: Vec<String> = asked.chain([outcome]).collect();
            let (kind, title) = (words(kind), code(self.title()));
            shown.push(format!("- **{kind}** {title}: {}", became.join(", ")));
        }
        // What was only asked about stands under the ask.
        let output = self.output().filter(|_| self.made);
        let blocks = self.diffs.iter().map(edit).chain(output);
        shown.extend(blocks.map(|it| prefixed("  ", &it)));
        shown.join("\n\n")
    }

    /// What it printed: as the agent says it for people, or else as it is.
    fn output(&self) -> Option<String> {
        let said: Vec<String> = self
            .content
            .iter()
            .filter(|it| text(it, "type") == "content")
            .map(|it| words_of(&it["content"]))
            .collect();
        let candidates = [said.join("\n"), self.printed.clone(), text_of(&self.raw_output)];
        let output = candidates.iter().map(|it| plain(it)).find(|it| !it.trim().is_empty());
        if let Some(output) = output {
            let output = without_fence(output.trim_matches('\n'));
            return Some(fenced("", &shortened(output, OUTPUT_LINES_FIRST, OUTPUT_LINES_LAST)));
        }
        // With a diff there is something to see already.
        let raw = Some(&self.raw_output).filter(|it| it.is_object() || it.is_array());
        let raw = raw.filter(|_| self.diffs.is_empty())?;
        let raw = plain(&format!("{raw:#}"));
        Some(fenced("json", &shortened(&raw, OUTPUT_LINES_FIRST, OUTPUT_LINES_LAST)))
    }
}

fn edit(said: &Value) -> String {
    let path = plain(text(said, "path")).replace('\n', " ");
    let old = said["oldText"].as_str().map(plain);
    let shown = diff(&path, old.as_deref(), &plain(text(said, "newText")));
    fenced("diff", &shortened(&shown, DIFF_LINES_MAX, 0))
}

fn text_of(output: &Value) -> String {
    output.as_str().unwrap_or_default().to_owned()
}

/// Output that is nothing but a fence and what is in it.
fn without_fence(output: &str) -> &str {
    let inner = output.strip_prefix("```").and_then(|it| it.strip_suffix("\n```"));
    let inner = inner.and_then(|it| it.split_once('\n')).filter(|it| !it.0.contains('`'));
    inner.map(|it| it.1).filter(|it| !it.contains("```")).unwrap_or(output)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(said: &[Value]) -> String {
        let mut call = Call { made: true, ..Call::new("1") };
        for it in said {
            call.learn(it);
        }
        call.render(&[])
    }

    #[test]
    fn a_call_is_one_line_with_its_outcome() {
        let made = json!({ "title": "Terminal", "kind": "execute", "status": "pending" });
        assert_eq!(call(std::slice::from_ref(&made)), "- **execute** `Terminal`: no end was told");
        let named = json!({ "title": "`cargo\ntest`" });
        let done = json!({ "status": "failed" });
        assert_eq!(call(&[made, named, done]), "- **execute** `cargo test`: failed");
        let bare = json!({ "rawInput": { "command": "ls" }, "status": "completed" });
        assert_eq!(call(&[bare]), "- **tool** `ls`: done");
    }

    #[test]
    fn output_is_what_was_said_last_and_what_was_printed() {
        let said = |text: &str| json!({ "content": [{ "type": "content", "content": { "type": "text", "text": text } }] });
        let shown = call(&[said("about to"), said("```console\nhello\n```")]);
        assert!(shown.ends_with("\n\n  ```\n  hello\n  ```"), "{shown}");
        let printed =
            |text: &str| json!({ "_meta": { "terminal_output_delta": { "data": text } } });
        let shown = call(&[printed("a\n"), printed("b ``` c\n")]);
        assert!(shown.ends_with("\n\n  ````\n  a\n  b ``` c\n  ````"), "{shown}");
        let shown = call(&[json!({ "rawOutput": [{ "result": 1 }] })]);
        assert!(shown.contains("  ```json\n"), "{shown}");
        let long = "line\n".repeat(1_000);
        assert!(call(&[said(&long)]).contains("\n  … 960 lines …\n"));
    }

    #[test]
    fn an_edit_is_shown_even_when_it_is_no_longer_told() {
        let edit = json!({ "kind": "edit", "title": "Edit", "content": [
            { "type": "diff", "path": "a.rs", "oldText": "1\n2", "newText": "1\n3" } ] });
        let done = json!({ "status": "completed", "content": [] });
        let shown =
            "- **edit** `Edit`: done\n\n  ```diff\n  --- a.rs\n  +++ a.rs\n   1\n  -2\n  +3\n  ```";
        assert_eq!(call(&[edit, done]), shown);
    }
}
