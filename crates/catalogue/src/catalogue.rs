//! All the agents known here: the built-in ones, and the user's files on top.

use crate::{Flaw, Spec, builtin, parse};
use std::collections::BTreeMap;

/// Specs by id. A file with the id of another replaces it.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    specs: BTreeMap<String, Spec>,
    flaws: Vec<FileFlaw>,
}

/// A file that is no spec.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{file}`: {flaw}")]
pub struct FileFlaw {
    pub file: String,
    pub flaw: Flaw,
}

impl Catalogue {
    /// The agents that come with us.
    pub fn builtin() -> Self {
        let specs = builtin::FILES.iter().map(|(file, text)| {
            let spec = parse(text)
                .unwrap_or_else(|flaw| panic!("a test holds that `{file}` is valid: {flaw}"));
            (spec.id.clone(), spec)
        });
        Self { specs: specs.collect(), flaws: Vec::new() }
    }

    /// Adds a file of the user's; `file` is what it is called in a report.
    pub fn add(&mut self, file: &str, text: &str) {
        match parse(text) {
            Ok(spec) => self.insert(spec),
            Err(flaw) => self.flaws.push(FileFlaw { file: file.to_owned(), flaw }),
        }
    }

    /// Adds a spec that was read already.
    pub fn insert(&mut self, spec: Spec) {
        self.specs.insert(spec.id.clone(), spec);
    }

    pub fn get(&self, id: &str) -> Option<&Spec> {
        self.specs.get(id)
    }

    /// All specs in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &Spec> {
        self.specs.values()
    }

    /// The files that were left out, in the order they were added.
    pub fn flaws(&self) -> &[FileFlaw] {
        &self.flaws
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIVE: &str =
        "id = \"mine\"\nname = \"Mine\"\nbins = [\"mine\"]\n[[launch]]\nargs = [\"acp\"]\n";

    #[test]
    fn five_lines_are_a_whole_agent() {
        let mut catalogue = Catalogue::builtin();
        catalogue.add("mine.toml", FIVE);
        let spec = catalogue.get("mine").unwrap();
        assert_eq!(spec.launch[0].bins, ["mine"]);
        assert!(spec.launch[0].speaks_acp());
        assert!(spec.models.custom);
        assert_eq!(spec.version.args, ["--version"]);
        assert!(catalogue.flaws().is_empty());
    }

    #[test]
    fn a_file_with_the_id_of_a_builtin_replaces_it() {
        let mut catalogue = Catalogue::builtin();
        let before = catalogue.iter().count();
        catalogue.add("goose.toml", &FIVE.replace("\"mine\"\nname", "\"goose\"\nname"));
        assert_eq!(catalogue.get("goose").unwrap().name, "Mine");
        assert_eq!(catalogue.iter().count(), before);
    }

    #[test]
    fn a_bad_file_disables_only_itself() {
        let mut catalogue = Catalogue::builtin();
        let before = catalogue.iter().count();
        catalogue.add("goose.toml", "id = \"goose\"\nnmae = \"typo\"\n");
        catalogue.add("mine.toml", FIVE);
        assert_eq!(catalogue.iter().count(), before + 1);
        assert_ne!(catalogue.get("goose").unwrap().name, "typo");
        let flaws: Vec<String> = catalogue.flaws().iter().map(ToString::to_string).collect();
        assert_eq!(flaws.len(), 1);
        assert!(flaws[0].starts_with("`goose.toml`: line 2: unknown field `nmae`"), "{flaws:?}");
    }
}
