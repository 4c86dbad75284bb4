//! Names by which the model calls tools of servers: readable, short enough for every model server,
//! and each with one meaning for as long as the session lives.

use rmcp::model::Tool;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What Chat Completions servers accept.
const NAME_CHARS_MAX: usize = 64;
/// Beyond it some servers refuse the whole request.
const DESCRIPTION_CHARS_MAX: usize = 1024;
/// Names of our own tools that a server and its tool could make together.
const TAKEN: &[&str] = &["apply_patch", "web_fetch", "mcp_list_resources", "mcp_read_resource"];

/// Only grows: a name that was given keeps its meaning when lists change.
#[derive(Debug, Default)]
pub(super) struct Names {
    meanings: BTreeMap<String, (usize, String)>,
    given: BTreeMap<(usize, String), String>,
}

impl Names {
    /// The name of a tool of the server at this place.
    pub(super) fn name(&mut self, place: usize, label: &str, tool: &str) -> String {
        self.give(place, tool, &format!("{label}_{tool}"))
    }

    /// What to call a server itself.
    pub(super) fn label(&mut self, place: usize, name: &str) -> String {
        self.give(place, "", if name.is_empty() { "server" } else { name })
    }

    pub(super) fn meaning(&self, name: &str) -> Option<(usize, String)> {
        self.meanings.get(name).cloned()
    }

    fn give(&mut self, place: usize, what: &str, wish: &str) -> String {
        let key = (place, what.to_owned());
        if let Some(name) = self.given.get(&key) {
            return name.clone();
        }
        let plain: String = wish.chars().map(plain).take(NAME_CHARS_MAX).collect();
        let mut name = plain.clone();
        let mut count = 1;
        while self.meanings.contains_key(&name) || TAKEN.contains(&name.as_str()) {
            count += 1;
            let end = format!("_{count}");
            let room = NAME_CHARS_MAX - end.len();
            name = format!("{}{end}", &plain[..plain.len().min(room)]);
        }
        self.meanings.insert(name.clone(), key.clone());
        self.given.insert(key, name.clone());
        name
    }
}

fn plain(char: char) -> char {
    if char.is_ascii_alphanumeric() || char == '-' { char } else { '_' }
}

/// A tool as Chat Completions describes one.
pub(super) fn spec(name: &str, tool: &Tool, is_down: bool) -> Value {
    let mut parameters = (*tool.input_schema).clone();
    // Without them some servers refuse the whole request.
    parameters.entry("type").or_insert_with(|| "object".into());
    parameters.entry("properties").or_insert_with(|| json!({}));
    let described = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
    let mut description: String = described.chars().take(DESCRIPTION_CHARS_MAX).collect();
    if is_down {
        "Not available: its server has ended.".clone_into(&mut description);
    } else if description.len() < described.len() {
        description.pop();
        description.push('…');
    }
    let function = json!({ "name": name, "description": description, "parameters": parameters });
    json!({ "type": "function", "function": function })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;

    #[test]
    fn a_name_says_whose_tool_it_is() {
        let mut names = Names::default();
        assert_eq!(names.name(0, "github", "search"), "github_search");
        assert_eq!(names.meaning("github_search"), Some((0, "search".to_owned())));
        assert_eq!(names.name(0, "github", "search"), "github_search", "it keeps its name");
        assert_eq!(names.name(1, "a", "b.c/d"), "a_b_c_d");
        assert_eq!(names.name(1, "a_b", "c_d"), "a_b_c_d_2");
    }

    #[test]
    fn no_server_can_take_the_name_of_a_tool_of_ours() {
        let mut names = Names::default();
        assert_eq!(names.name(0, "web", "fetch"), "web_fetch_2");
        assert_eq!(names.name(0, "mcp", "read_resource"), "mcp_read_resource_2");
    }

    proptest! {
        #[test]
        fn every_name_is_one_that_all_servers_accept_and_no_other_tool_has(
            tools in prop::collection::vec(("\\PC{0,5}", "\\PC{0,80}|[ab]{62,66}"), 1..20),
        ) {
            let mut names = Names::default();
            for (place, (label, tool)) in tools.iter().enumerate() {
                let name = names.name(place, label, tool);
                prop_assert!((1..=NAME_CHARS_MAX).contains(&name.len()));
                let good = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
                prop_assert!(name.chars().all(good));
                prop_assert_eq!(names.meaning(&name), Some((place, tool.clone())));
            }
        }
    }

    #[test]
    fn a_long_description_is_cut_and_a_schema_without_properties_gets_some() {
        let schema = json!({ "type": "object" });
        let mut tool = Tool::default();
        tool.description = Some("ä".repeat(2000).into());
        tool.input_schema = Arc::new(schema.as_object().unwrap().clone());
        let spec = spec("a_b", &tool, false);
        let description = spec["function"]["description"].as_str().unwrap();
        assert_eq!(description.chars().count(), DESCRIPTION_CHARS_MAX);
        assert!(description.ends_with('…'));
        assert_eq!(spec["function"]["parameters"]["properties"], json!({}));
    }
}
