//! All known agents: the built-in ones, and those of the user's files.

use crate::{AgentSpec, CatalogError, builtin, parse_agent_spec};
use std::collections::BTreeMap;

/// Agent specs by id. A file replaces an earlier one with the same id.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    specs: BTreeMap<String, AgentSpec>,
    errors: Vec<AgentFileError>,
}

/// An invalid agent file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{file}`: {error}")]
pub struct AgentFileError {
    pub file: String,
    pub error: CatalogError,
}

impl Catalog {
    /// The built-in agents.
    pub fn builtin() -> Self {
        let specs = builtin::FILES.iter().map(|(file, text)| {
            let spec = parse_agent_spec(text)
                .unwrap_or_else(|error| panic!("built-in file `{file}` is invalid: {error}"));
            (spec.id.clone(), spec)
        });
        Self { specs: specs.collect(), errors: Vec::new() }
    }

    /// Adds a file of the user. `file` is its name in errors.
    pub fn add_file(&mut self, file: &str, text: &str) {
        match parse_agent_spec(text) {
            Ok(spec) => self.insert(spec),
            Err(error) => self.errors.push(AgentFileError { file: file.to_owned(), error }),
        }
    }

    /// Adds a parsed spec.
    pub fn insert(&mut self, spec: AgentSpec) {
        self.specs.insert(spec.id.clone(), spec);
    }

    /// The agent with this id, or else with this alias.
    pub fn get(&self, name: &str) -> Option<&AgentSpec> {
        let has_alias = |it: &&AgentSpec| it.aliases.iter().any(|alias| alias == name);
        self.specs.get(name).or_else(|| self.specs.values().find(has_alias))
    }

    /// The id of the agent that has this name as its id or alias; the name itself if there is none.
    pub fn resolve_id<'a>(&'a self, name: &'a str) -> &'a str {
        self.get(name).map_or(name, |it| &it.id)
    }

    /// Ids and aliases, for suggestions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.iter().flat_map(|it| [&it.id].into_iter().chain(&it.aliases)).map(String::as_str)
    }

    /// All specs, ordered by id.
    pub fn iter(&self) -> impl Iterator<Item = &AgentSpec> {
        self.specs.values()
    }

    /// The invalid files, in the order in which they were added.
    pub fn errors(&self) -> &[AgentFileError] {
        &self.errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINIMAL_FILE: &str =
        "id = \"mine\"\nname = \"Mine\"\nbins = [\"mine\"]\n[[launch]]\nargs = [\"acp\"]\n";

    #[test]
    fn five_lines_describe_an_agent() {
        let mut catalog = Catalog::builtin();
        catalog.add_file("mine.toml", MINIMAL_FILE);
        let spec = catalog.get("mine").unwrap();
        assert_eq!(spec.launch[0].bins, ["mine"]);
        assert!(spec.launch[0].is_native_acp());
        assert!(spec.models.custom);
        assert_eq!(spec.version.args, ["--version"]);
        assert!(catalog.errors().is_empty());
    }

    #[test]
    fn file_with_a_builtin_id_replaces_the_builtin() {
        let mut catalog = Catalog::builtin();
        let before = catalog.iter().count();
        catalog.add_file("goose.toml", &MINIMAL_FILE.replace("\"mine\"\nname", "\"goose\"\nname"));
        assert_eq!(catalog.get("goose").unwrap().name, "Mine");
        assert_eq!(catalog.iter().count(), before);
    }

    #[test]
    fn alias_names_its_agent_unless_an_agent_has_that_id() {
        let mut catalog = Catalog::builtin();
        assert_eq!(catalog.resolve_id("cursor-agent"), "cursor");
        assert_eq!(catalog.resolve_id("nobody"), "nobody");
        catalog.add_file(
            "cursor-agent.toml",
            &MINIMAL_FILE.replace("\"mine\"\n", "\"cursor-agent\"\n"),
        );
        assert_eq!(catalog.errors(), []);
        assert_eq!(catalog.get("cursor-agent").unwrap().id, "cursor-agent");
        assert_eq!(catalog.get("cursor-cli").unwrap().id, "cursor");
    }

    #[test]
    fn invalid_file_disables_only_itself() {
        let mut catalog = Catalog::builtin();
        let before = catalog.iter().count();
        catalog.add_file("goose.toml", "id = \"goose\"\nnmae = \"typo\"\n");
        catalog.add_file("mine.toml", MINIMAL_FILE);
        assert_eq!(catalog.iter().count(), before + 1);
        assert_ne!(catalog.get("goose").unwrap().name, "typo");
        let errors: Vec<String> = catalog.errors().iter().map(ToString::to_string).collect();
        assert_eq!(errors.len(), 1);
        assert!(errors[0].starts_with("`goose.toml`: line 2: unknown field `nmae`"), "{errors:?}");
    }
}
