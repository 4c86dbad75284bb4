//! A tool call: one line with its outcome, followed by its edits and its output, shortened.

use super::{
    diff::render_diff,
    markdown::{escape_line, fence_block, inline_code, plain_text, prefix_lines, shorten_lines},
};
use crate::text::describe::{block_text, str_member};
use serde_json::Value;

const DIFF_LINES_MAX: usize = 120;
const OUTPUT_LINES_FIRST: usize = 30;
const OUTPUT_LINES_LAST: usize = 10;

/// A tool call, merged from its updates and its permission request.
#[derive(Debug, Default)]
pub(super) struct TranscriptCall {
    pub(super) id: String,
    /// The agent has made the call, and not only requested permission for it.
    pub(super) is_made: bool,
    title: String,
    kind: String,
    status: String,
    /// The content blocks of the last update that had some.
    content: Vec<Value>,
    /// The edits of the last update that had some.
    diffs: Vec<Value>,
    terminal_output: String,
    raw_input: Value,
    raw_output: Value,
}

impl TranscriptCall {
    pub(super) fn new(id: &str) -> TranscriptCall {
        TranscriptCall { id: id.to_owned(), ..TranscriptCall::default() }
    }

    /// Merges a `tool_call`, a `tool_call_update`, or the tool call of a permission request.
    pub(super) fn merge(&mut self, update: &Value) {
        let known =
            [(&mut self.title, "title"), (&mut self.kind, "kind"), (&mut self.status, "status")];
        for (known, name) in known {
            let value = str_member(update, name);
            if !value.is_empty() {
                value.clone_into(known);
            }
        }
        if let Some(content) = update["content"].as_array() {
            let (diffs, others): (Vec<Value>, _) =
                content.iter().cloned().partition(|it| str_member(it, "type") == "diff");
            self.content = others;
            // The last update often has no diffs; the earlier ones are kept.
            if !diffs.is_empty() {
                self.diffs = diffs;
            }
        }
        for name in ["terminal_output", "terminal_output_delta"] {
            self.terminal_output.push_str(str_member(&update["_meta"][name], "data"));
        }
        for (known, name) in
            [(&mut self.raw_input, "rawInput"), (&mut self.raw_output, "rawOutput")]
        {
            if !update[name].is_null() {
                *known = update[name].clone();
            }
        }
    }

    pub(super) fn title(&self) -> &str {
        let command = str_member(&self.raw_input, "command");
        [self.title.as_str(), command].into_iter().find(|it| !it.trim().is_empty()).unwrap_or("?")
    }

    /// Renders the call with the outcomes of its permission requests.
    pub(super) fn render(&self, requests: &[String]) -> String {
        let kind = if self.kind.is_empty() { "tool" } else { &self.kind };
        let outcome = match self.status.as_str() {
            "completed" => "done".to_owned(),
            "failed" => "failed".to_owned(),
            "" | "pending" | "in_progress" => "no result reported".to_owned(),
            other => escape_line(other),
        };
        let mut rendered = Vec::new();
        if self.is_made {
            let requested = requests.iter().map(|it| format!("asked ({it})"));
            let outcomes: Vec<String> = requested.chain([outcome]).collect();
            let (kind, title) = (escape_line(kind), inline_code(self.title()));
            rendered.push(format!("- **{kind}** {title}: {}", outcomes.join(", ")));
        }
        // The edits of a call that was only requested are rendered below the request.
        let output = self.output().filter(|_| self.is_made);
        let blocks = self.diffs.iter().map(render_edit).chain(output);
        rendered.extend(blocks.map(|it| prefix_lines("  ", &it)));
        rendered.join("\n\n")
    }

    /// The output: the content of the call, else the terminal output, else the raw output.
    fn output(&self) -> Option<String> {
        let content: Vec<String> = self
            .content
            .iter()
            .filter(|it| str_member(it, "type") == "content")
            .map(|it| block_text(&it["content"]))
            .collect();
        let raw_text = self.raw_output.as_str().unwrap_or_default().to_owned();
        let candidates = [content.join("\n"), self.terminal_output.clone(), raw_text];
        let output = candidates.iter().map(|it| plain_text(it)).find(|it| !it.trim().is_empty());
        if let Some(output) = output {
            let output = strip_fence(output.trim_matches('\n'));
            let lines = shorten_lines(output, OUTPUT_LINES_FIRST, OUTPUT_LINES_LAST);
            return Some(fence_block("", &lines));
        }
        // Structured output is rendered only if the call has no diff.
        let raw = Some(&self.raw_output).filter(|it| it.is_object() || it.is_array());
        let raw = raw.filter(|_| self.diffs.is_empty())?;
        let raw = plain_text(&format!("{raw:#}"));
        Some(fence_block("json", &shorten_lines(&raw, OUTPUT_LINES_FIRST, OUTPUT_LINES_LAST)))
    }
}

fn render_edit(edit: &Value) -> String {
    let path = plain_text(str_member(edit, "path")).replace('\n', " ");
    let old = edit["oldText"].as_str().map(plain_text);
    let diff = render_diff(&path, old.as_deref(), &plain_text(str_member(edit, "newText")));
    fence_block("diff", &shorten_lines(&diff, DIFF_LINES_MAX, 0))
}

/// Removes a fence that encloses the whole output.
fn strip_fence(output: &str) -> &str {
    let inner = output.strip_prefix("```").and_then(|it| it.strip_suffix("\n```"));
    let inner = inner.and_then(|it| it.split_once('\n')).filter(|it| !it.0.contains('`'));
    inner.map(|it| it.1).filter(|it| !it.contains("```")).unwrap_or(output)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn render_call(updates: &[Value]) -> String {
        let mut call = TranscriptCall { is_made: true, ..TranscriptCall::new("1") };
        for it in updates {
            call.merge(it);
        }
        call.render(&[])
    }

    #[test]
    fn call_is_one_line_with_its_outcome() {
        let made = json!({ "title": "Terminal", "kind": "execute", "status": "pending" });
        assert_eq!(
            render_call(std::slice::from_ref(&made)),
            "- **execute** `Terminal`: no result reported"
        );
        let named = json!({ "title": "`cargo\ntest`" });
        let done = json!({ "status": "failed" });
        assert_eq!(render_call(&[made, named, done]), "- **execute** `cargo test`: failed");
        let bare = json!({ "rawInput": { "command": "ls" }, "status": "completed" });
        assert_eq!(render_call(&[bare]), "- **tool** `ls`: done");
    }

    #[test]
    fn output_is_the_last_content_or_all_terminal_output() {
        let content = |text: &str| json!({ "content": [{ "type": "content", "content": { "type": "text", "text": text } }] });
        let rendered = render_call(&[content("about to"), content("```console\nhello\n```")]);
        assert!(rendered.ends_with("\n\n  ```\n  hello\n  ```"), "{rendered}");
        let output = |text: &str| json!({ "_meta": { "terminal_output_delta": { "data": text } } });
        let rendered = render_call(&[output("a\n"), output("b ``` c\n")]);
        assert!(rendered.ends_with("\n\n  ````\n  a\n  b ``` c\n  ````"), "{rendered}");
        let rendered = render_call(&[json!({ "rawOutput": [{ "result": 1 }] })]);
        assert!(rendered.contains("  ```json\n"), "{rendered}");
        let long = "line\n".repeat(1_000);
        assert!(render_call(&[content(&long)]).contains("\n  … 960 lines …\n"));
    }

    #[test]
    fn edit_is_rendered_even_if_the_last_update_omits_it() {
        let edit = json!({ "kind": "edit", "title": "Edit", "content": [
            { "type": "diff", "path": "a.rs", "oldText": "1\n2", "newText": "1\n3" } ] });
        let done = json!({ "status": "completed", "content": [] });
        let rendered =
            "- **edit** `Edit`: done\n\n  ```diff\n  --- a.rs\n  +++ a.rs\n   1\n  -2\n  +3\n  ```";
        assert_eq!(render_call(&[edit, done]), rendered);
    }
}
