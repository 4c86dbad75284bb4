//! Runs Markdown scenarios: the prose explains, the `acp` blocks are the test.
//!
//! A scenario is a `## ` heading and the blocks under it. Each line of a block is one step:
//!
//! | line | meaning |
//! |---|---|
//! | `editor connects` | a client opens a connection |
//! | `editor leaves` · `editor finishes` | it hangs up; it says nothing more but listens |
//! | `editor stops reading` · `editor reads again` | |
//! | `editor -> {…}` | it says this |
//! | `editor <- {…}` | the next thing it hears is this |
//! | `editor <= {…}` | the same, byte for byte |
//! | `editor hears nothing` | nothing waits for it |
//! | `agent starts` | the hub has started a process, which is called `agent` from here on |
//! | `agent dies "exit status 1" "oh no"` | it ends by itself, with its last words on stderr |
//! | `agent is stopped` | the hub has asked it to end, and it does |
//! | `after 3s` · `after 250ms` | time passes |
//! | `daemon restarts` · `daemon stops` | it is killed and starts again; it ends in order |
//! | `host lets $session go` · `host has let $session go` | it is asked to; it has done so |
//! | `host adopts $session from west` | it owns a session that the host `west` had |
//! | `host loses $session` | another one writes to that session |
//! | `policy rule = [{ do = "deny" }]` | these are the user's rules from now on |
//! | `repeat 101` … `end` | the steps between, so many times, with `$i` from 1 |
//! | `as in "A heading"` | everything that happens in that scenario, first |
//!
//! In what is heard, `"$name"` stands for any value and remembers it; later, and in what is said,
//! it stands for that value. `"…":"…"` in an object allows members that are not mentioned. `${300k}`
//! is that many bytes of text. When a scenario ends, nobody may have heard anything it does not
//! mention.

mod fleet;
mod house;
mod matching;
mod stage;

use stage::Stage;
use std::collections::BTreeMap;

/// Scenarios by heading.
#[derive(Debug, Default)]
pub struct Book {
    scenarios: BTreeMap<String, Scenario>,
}

#[derive(Debug, Clone)]
struct Scenario {
    steps: Vec<Step>,
}

/// A line and where it stands.
#[derive(Debug, Clone)]
struct Step {
    place: String,
    text: String,
}

impl Book {
    /// Adds every scenario of a chapter; `name` is for messages.
    pub fn add(&mut self, name: &str, text: &str) {
        let mut current: Option<(String, Scenario)> = None;
        let mut in_block = false;
        for (number, line) in (1..).zip(text.lines()) {
            let place = format!("{name}:{number}");
            if let Some(heading) = line.strip_prefix("## ") {
                self.keep(current.take());
                current = Some((heading.trim().to_owned(), Scenario { steps: Vec::new() }));
            } else if line.starts_with("```") {
                in_block = line.trim() == "```acp";
            } else if in_block && !line.trim().is_empty() {
                let (_, scenario) =
                    current.as_mut().unwrap_or_else(|| panic!("{place}: a heading comes first"));
                scenario.steps.push(Step { place, text: line.trim().to_owned() });
            }
        }
        self.keep(current);
    }

    fn keep(&mut self, scenario: Option<(String, Scenario)>) {
        let Some((heading, scenario)) = scenario else { return };
        if scenario.steps.is_empty() {
            return; // Prose under a heading of its own.
        }
        let known = self.scenarios.insert(heading.clone(), scenario);
        assert!(known.is_none(), "two scenarios are called `{heading}`");
    }

    pub fn headings(&self) -> impl Iterator<Item = &str> {
        self.scenarios.keys().map(String::as_str)
    }

    /// Plays one scenario against the hub; panics with the line that does not hold.
    pub fn play(&self, heading: &str) {
        let steps = self.steps(heading, "the book");
        let mut stage = Stage::new();
        for step in &steps {
            stage.play(&step.text, &step.place);
        }
        let last = steps.last().map_or("", |it| it.place.as_str());
        stage.finish(last);
    }

    /// The steps of a scenario, with everything it refers to.
    fn steps(&self, heading: &str, place: &str) -> Vec<Step> {
        let scenario = self.scenarios.get(heading);
        let scenario = scenario.unwrap_or_else(|| panic!("{place}: no scenario `{heading}`"));
        let mut steps = Vec::new();
        let mut lines = scenario.steps.iter();
        while let Some(step) = lines.next() {
            if let Some(other) = step.text.strip_prefix("as in ") {
                steps.extend(self.steps(other.trim_matches('"'), &step.place));
            } else if let Some(times) = step.text.strip_prefix("repeat ") {
                let times: u32 =
                    times.parse().unwrap_or_else(|_| panic!("{}: how many times?", step.place));
                let body: Vec<&Step> = lines.by_ref().take_while(|it| it.text != "end").collect();
                for i in 1..=times {
                    let again = body.iter().map(|it| Step {
                        place: it.place.clone(),
                        text: it.text.replace("$i", &i.to_string()),
                    });
                    steps.extend(again);
                }
            } else {
                steps.push(step.clone());
            }
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: &str = r#"
## hello
Prose.
```acp
editor connects
editor -> {"id":0,"method":"initialize","params":{}}
"#;

    fn play(rest: &str) {
        let mut book = Book::default();
        book.add("chapter", &format!("{HELLO}{rest}\n```\n"));
        book.play("hello");
    }

    #[test]
    fn what_is_mentioned_holds() {
        play(r#"editor <- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"…":"…"}}"#);
    }

    #[test]
    #[should_panic(expected = "after chapter:6: editor also heard")]
    fn what_is_not_mentioned_fails_the_scenario() {
        play("");
    }

    #[test]
    #[should_panic(expected = "chapter:7: editor heard")]
    fn what_is_heard_otherwise_fails_the_line() {
        play(r#"editor <- {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"…":"…"}}"#);
    }

    #[test]
    #[should_panic(expected = "chapter:7: `editor dances` means nothing")]
    fn what_means_nothing_is_refused() {
        play("editor dances");
    }
}
