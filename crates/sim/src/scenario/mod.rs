//! Runs Markdown scenarios: the prose explains, the `acp` blocks are the test.
//!
//! A scenario is a `## ` heading and the blocks under it. Each line of a block is one step:
//!
//! | line | meaning |
//! |---|---|
//! | `editor connects` | a client opens a connection |
//! | `editor leaves` · `editor finishes` | it disconnects; it sends nothing more but still receives |
//! | `editor stops reading` · `editor reads again` | |
//! | `editor -> {…}` | it sends this |
//! | `editor <- {…}` | the next message it receives is this |
//! | `editor <= {…}` | the same, byte for byte |
//! | `editor receives nothing` | it has no unread message |
//! | `agent starts` | the hub has started a process, which is called `agent` from here on |
//! | `agent dies "exit status 1" "oh no"` | it exits by itself, with this text on stderr |
//! | `agent is stopped` | the hub has asked it to exit, and it does |
//! | `after 3s` · `after 250ms` | the clock advances |
//! | `daemon restarts` · `daemon stops` | it is killed and starts again; it stops in order |
//! | `daemon config: sleep after 600s` | a setting, before the first connection |
//! | `host releases $session` · `host has released $session` | it is asked to; it has done so |
//! | `host adopts $session from west` | it owns a session that the host `west` had |
//! | `host loses $session` | another host writes to that session |
//! | `policy rule = [{ do = "deny" }]` | these are the user's rules from now on |
//! | `repeat 101` … `end` | the steps between, this many times, with `$i` from 1 |
//! | `as in "A heading"` | all steps of that scenario, first |
//!
//! In a received message, `"$name"` matches any value and stores it; later, and in sent messages, it stands for that
//! value. `"…":"…"` in an object allows members that are not mentioned. `${300k}` is that many bytes of text. When a
//! scenario ends, no party may have received anything that it does not mention.

mod daemon_settings;
mod host_steps;
mod outputs;
mod placeholders;
mod runner;

use runner::ScenarioRunner;
use std::collections::BTreeMap;

/// Scenarios by heading.
#[derive(Debug, Default)]
pub struct ScenarioBook {
    scenarios: BTreeMap<String, Scenario>,
}

#[derive(Debug, Clone)]
struct Scenario {
    steps: Vec<ScenarioStep>,
}

/// A line and its position in the file.
#[derive(Debug, Clone)]
struct ScenarioStep {
    location: String,
    text: String,
}

impl ScenarioBook {
    /// Adds every scenario of a chapter; `name` is for error messages.
    pub fn add_chapter(&mut self, name: &str, text: &str) {
        let mut current: Option<(String, Scenario)> = None;
        let mut in_block = false;
        for (number, line) in (1..).zip(text.lines()) {
            let location = format!("{name}:{number}");
            if let Some(heading) = line.strip_prefix("## ") {
                self.add_scenario(current.take());
                current = Some((heading.trim().to_owned(), Scenario { steps: Vec::new() }));
            } else if line.starts_with("```") {
                in_block = line.trim() == "```acp";
            } else if in_block && !line.trim().is_empty() {
                let (_, scenario) =
                    current.as_mut().unwrap_or_else(|| panic!("{location}: a heading comes first"));
                scenario.steps.push(ScenarioStep { location, text: line.trim().to_owned() });
            }
        }
        self.add_scenario(current);
    }

    fn add_scenario(&mut self, scenario: Option<(String, Scenario)>) {
        let Some((heading, scenario)) = scenario else { return };
        if scenario.steps.is_empty() {
            return; // A heading with prose only.
        }
        let known = self.scenarios.insert(heading.clone(), scenario);
        assert!(known.is_none(), "two scenarios have the heading `{heading}`");
    }

    pub fn headings(&self) -> impl Iterator<Item = &str> {
        self.scenarios.keys().map(String::as_str)
    }

    /// Runs one scenario against the hub; panics at the first line that does not hold.
    pub fn run_scenario(&self, heading: &str) {
        let steps = self.steps(heading, "the scenario book");
        let mut runner = ScenarioRunner::new();
        for step in &steps {
            runner.run_step(&step.text, &step.location);
        }
        let last = steps.last().map_or("", |it| it.location.as_str());
        runner.finish(last);
    }

    /// The steps of a scenario, including those of scenarios it refers to.
    fn steps(&self, heading: &str, location: &str) -> Vec<ScenarioStep> {
        let scenario = self.scenarios.get(heading);
        let scenario = scenario.unwrap_or_else(|| panic!("{location}: no scenario `{heading}`"));
        let mut steps = Vec::new();
        let mut lines = scenario.steps.iter();
        while let Some(step) = lines.next() {
            if let Some(other) = step.text.strip_prefix("as in ") {
                steps.extend(self.steps(other.trim_matches('"'), &step.location));
            } else if let Some(times) = step.text.strip_prefix("repeat ") {
                let times: u32 =
                    times.parse().unwrap_or_else(|_| panic!("{}: invalid count", step.location));
                let body: Vec<&ScenarioStep> =
                    lines.by_ref().take_while(|it| it.text != "end").collect();
                for i in 1..=times {
                    let repeated = body.iter().map(|it| ScenarioStep {
                        location: it.location.clone(),
                        text: it.text.replace("$i", &i.to_string()),
                    });
                    steps.extend(repeated);
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

    fn run_lines(rest: &str) {
        let mut book = ScenarioBook::default();
        book.add_chapter("chapter", &format!("{HELLO}{rest}\n```\n"));
        book.run_scenario("hello");
    }

    #[test]
    fn mentioned_message_passes() {
        run_lines(r#"editor <- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"…":"…"}}"#);
    }

    #[test]
    #[should_panic(expected = "after chapter:6: editor also received")]
    fn unmentioned_message_fails_the_scenario() {
        run_lines("");
    }

    #[test]
    #[should_panic(expected = "chapter:7: editor received")]
    fn different_message_fails_the_line() {
        run_lines(r#"editor <- {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"…":"…"}}"#);
    }

    #[test]
    #[should_panic(expected = "chapter:7: `editor dances` is not a step")]
    fn unknown_step_fails_the_line() {
        run_lines("editor dances");
    }
}
