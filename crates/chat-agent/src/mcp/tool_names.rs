//! The names by which the model calls the tools of MCP servers: readable, short enough for every
//! model server, and unique for the whole session.

use rmcp::model::Tool;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The limit of Chat Completions servers.
const NAME_CHARS_MAX: usize = 64;
/// Some servers refuse the whole request if a description is longer.
const DESCRIPTION_CHARS_MAX: usize = 1024;
/// `ToolNames` of our own tools that could also result from the names of a server and its tool.
const RESERVED: &[&str] = &["apply_patch", "web_fetch", "mcp_list_resources", "mcp_read_resource"];

/// Assigns names. An assigned name keeps its meaning, even if the tools of a server change.
#[derive(Debug, Default)]
pub(super) struct ToolNames {
    /// The index of the server and the name of its tool, by assigned name.
    tools: BTreeMap<String, (usize, String)>,
    assigned: BTreeMap<(usize, String), String>,
}

impl ToolNames {
    /// Returns the name of a tool of the server with this index.
    pub(super) fn assign_tool(&mut self, server: usize, label: &str, tool: &str) -> String {
        self.assign(server, tool, &format!("{label}_{tool}"))
    }

    /// Returns the label of a server.
    pub(super) fn assign_label(&mut self, server: usize, name: &str) -> String {
        self.assign(server, "", if name.is_empty() { "server" } else { name })
    }

    /// Returns the index of the server and the name of the tool.
    pub(super) fn find_tool(&self, name: &str) -> Option<(usize, String)> {
        self.tools.get(name).cloned()
    }

    fn assign(&mut self, server: usize, tool: &str, preferred: &str) -> String {
        let key = (server, tool.to_owned());
        if let Some(name) = self.assigned.get(&key) {
            return name.clone();
        }
        let base: String = preferred.chars().map(to_allowed_char).take(NAME_CHARS_MAX).collect();
        let mut name = base.clone();
        let mut count = 1;
        while self.tools.contains_key(&name) || RESERVED.contains(&name.as_str()) {
            count += 1;
            let suffix = format!("_{count}");
            let room = NAME_CHARS_MAX - suffix.len();
            name = format!("{}{suffix}", &base[..base.len().min(room)]);
        }
        self.tools.insert(name.clone(), key.clone());
        self.assigned.insert(key, name.clone());
        name
    }
}

fn to_allowed_char(char: char) -> char {
    if char.is_ascii_alphanumeric() || char == '-' { char } else { '_' }
}

/// Returns a tool in the format of Chat Completions. `is_down` says that its server has ended.
pub(super) fn to_tool_spec(name: &str, tool: &Tool, is_down: bool) -> Value {
    let mut parameters = (*tool.input_schema).clone();
    // Without these members, some servers refuse the whole request.
    parameters.entry("type").or_insert_with(|| "object".into());
    parameters.entry("properties").or_insert_with(|| json!({}));
    let original = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
    let mut description: String = original.chars().take(DESCRIPTION_CHARS_MAX).collect();
    if is_down {
        "Not available: its server has ended.".clone_into(&mut description);
    } else if description.len() < original.len() {
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
    fn name_has_the_label_of_the_server() {
        let mut names = ToolNames::default();
        assert_eq!(names.assign_tool(0, "github", "search"), "github_search");
        assert_eq!(names.find_tool("github_search"), Some((0, "search".to_owned())));
        assert_eq!(
            names.assign_tool(0, "github", "search"),
            "github_search",
            "the name stays the same"
        );
        assert_eq!(names.assign_tool(1, "a", "b.c/d"), "a_b_c_d");
        assert_eq!(names.assign_tool(1, "a_b", "c_d"), "a_b_c_d_2");
    }

    #[test]
    fn names_of_built_in_tools_are_reserved() {
        let mut names = ToolNames::default();
        assert_eq!(names.assign_tool(0, "web", "fetch"), "web_fetch_2");
        assert_eq!(names.assign_tool(0, "mcp", "read_resource"), "mcp_read_resource_2");
    }

    proptest! {
        #[test]
        fn every_name_is_valid_and_unique(
            tools in prop::collection::vec(("\\PC{0,5}", "\\PC{0,80}|[ab]{62,66}"), 1..20),
        ) {
            let mut names = ToolNames::default();
            for (server, (label, tool)) in tools.iter().enumerate() {
                let name = names.assign_tool(server, label, tool);
                prop_assert!((1..=NAME_CHARS_MAX).contains(&name.len()));
                let is_allowed = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
                prop_assert!(name.chars().all(is_allowed));
                prop_assert_eq!(names.find_tool(&name), Some((server, tool.clone())));
            }
        }
    }

    #[test]
    fn long_description_is_truncated_and_missing_properties_are_added() {
        let schema = json!({ "type": "object" });
        let mut tool = Tool::default();
        tool.description = Some("ä".repeat(2000).into());
        tool.input_schema = Arc::new(schema.as_object().unwrap().clone());
        let spec = to_tool_spec("a_b", &tool, false);
        let description = spec["function"]["description"].as_str().unwrap();
        assert_eq!(description.chars().count(), DESCRIPTION_CHARS_MAX);
        assert!(description.ends_with('…'));
        assert_eq!(spec["function"]["parameters"]["properties"], json!({}));
    }
}
