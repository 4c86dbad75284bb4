//! `[tui]`: the terminal interface. The daemon only checks the types; the command uses the values.

use serde::Deserialize;
use std::collections::BTreeMap;

/// `[tui]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TuiSettings {
    /// How text is edited in the input field.
    pub keys: EditingKeysSetting,
    pub mouse: bool,
    /// The keys of actions by name, where they differ from the default.
    pub bindings: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EditingKeysSetting {
    #[default]
    Emacs,
    Vi,
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[test]
    fn bindings_are_lists_by_the_name_of_the_action() {
        let text = "[tui]\nkeys = \"vi\"\n[tui.bindings]\n\"session.cancel\" = [\"f8\"]\n";
        let bindings = parse(text).unwrap().tui.bindings;
        assert_eq!(bindings["session.cancel"], ["f8"]);
        let unquoted = parse("[tui.bindings]\nsession.cancel = [\"f8\"]\n").unwrap_err();
        assert!(unquoted.contains(r#"{ "session.cancel" = ["f8"] }"#), "{unquoted}");
        let unknown = parse("[tui]\nkeys = \"nano\"\n").unwrap_err();
        assert!(unknown.contains("line 2") && unknown.contains("`emacs`, `vi`"), "{unknown}");
    }
}
