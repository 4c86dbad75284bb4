//! The agents on this machine and the next steps, for a user without sessions. The text is the same on the board and on
//! stdout.

/// The agents that can be started. If there are none, the ones to install.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentOverview {
    pub installed: Vec<AgentEntry>,
    /// Empty if an agent is installed that needs no further setup.
    pub suggested: Vec<AgentEntry>,
}

/// An agent, and what is known about it or how to install it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentEntry {
    pub name: String,
    pub remark: String,
}

/// A line of the text. Entries are indented below a heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OverviewLine {
    Heading(&'static str),
    Entry(String),
    Blank,
}

/// More agents are counted only, so that everything fits on a small screen.
const ENTRIES_MAX: usize = 6;
/// The address is that of a common local server.
const MODEL_SERVER_EXAMPLE: &str =
    "export OPENAI_BASE_URL=http://127.0.0.1:11434/v1 OPENAI_MODEL=NAME";

impl AgentOverview {
    pub fn names(&self) -> Vec<String> {
        self.installed.iter().map(|it| it.name.clone()).collect()
    }

    /// What was found, and commands for the shell.
    pub fn lines(&self) -> Vec<OverviewLine> {
        let mut lines = Vec::new();
        if self.suggested.is_empty() {
            lines.push(OverviewLine::Heading("Agents that were found"));
            lines.extend(entry_lines(&self.installed));
            let hidden = self.installed.len().saturating_sub(ENTRIES_MAX);
            if 0 < hidden {
                lines.push(OverviewLine::Entry(format!("and {hidden} more: jackfield agents")));
            }
        } else {
            lines.push(OverviewLine::Heading("No agent was found. Three that you can install:"));
            lines.extend(entry_lines(&self.suggested));
            lines.push(OverviewLine::Heading("Or use Jackfield's own agent with a model server:"));
            lines.push(OverviewLine::Entry(MODEL_SERVER_EXAMPLE.to_owned()));
        }
        lines.push(OverviewLine::Blank);
        lines.push(OverviewLine::Heading("Commands for your shell"));
        let example = self.suggested.first().map_or("NAME", |it| it.name.as_str());
        lines.extend(entry_lines(&[
            command(&format!("jackfield agents install {example}"), "install an agent"),
            command("jackfield setup zed", "use agents in zed, jetbrains, neovim, …"),
            command("jackfield doctor", "check agents and this machine"),
        ]));
        lines
    }
}

fn command(name: &str, remark: &str) -> AgentEntry {
    AgentEntry { name: name.to_owned(), remark: remark.to_owned() }
}

/// Two columns.
fn entry_lines(entries: &[AgentEntry]) -> impl Iterator<Item = OverviewLine> {
    let shown = &entries[..entries.len().min(ENTRIES_MAX)];
    let width = shown.iter().map(|it| it.name.chars().count()).max().unwrap_or(0);
    shown.iter().map(move |AgentEntry { name, remark }| {
        OverviewLine::Entry(format!("{name:<width$}  {remark}").trim_end().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, remark: &str) -> AgentEntry {
        AgentEntry { name: name.into(), remark: remark.into() }
    }

    fn text(overview: &AgentOverview) -> Vec<String> {
        let line = |it: OverviewLine| match it {
            OverviewLine::Heading(text) => text.to_owned(),
            OverviewLine::Entry(text) => format!("  {text}"),
            OverviewLine::Blank => String::new(),
        };
        overview.lines().into_iter().map(line).collect()
    }

    #[test]
    fn found_agents_are_listed_in_columns_and_more_are_counted() {
        let installed = (1..=8).map(|it| entry(&format!("a{it}"), "1.0")).collect();
        let lines = text(&AgentOverview { installed, suggested: Vec::new() });
        assert_eq!(lines[..2], ["Agents that were found", "  a1  1.0"]);
        assert_eq!(lines[7], "  and 2 more: jackfield agents");
    }

    #[test]
    fn suggestions_replace_the_list_if_no_agent_is_installed() {
        let suggested = vec![entry("claude", "npm install -g x"), entry("pi", "npm install -g pi")];
        let overview = AgentOverview { installed: vec![entry("chat", "")], suggested };
        let lines = text(&overview);
        assert_eq!(lines[1..3], ["  claude  npm install -g x", "  pi      npm install -g pi"]);
        assert!(lines.iter().any(|it| it.contains("export OPENAI_BASE_URL=")));
        assert!(lines.iter().any(|it| it.contains("jackfield agents install claude  ")));
        assert!(lines.iter().all(|it| it.chars().count() <= 76), "{lines:#?}");
    }
}
