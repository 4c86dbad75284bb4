//! The rules of the ratchet: each finds its violations in the production code.

use super::{
    super::parse::{SourceFile, SourceTree, Token, TokenKind},
    metaphors::MetaphorFinder,
    module_graph::ModuleGraph,
    naming::{has_one_word, is_glossary_noun},
};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RatchetRule {
    OneWordTypes,
    SharedPublicTypes,
    Metaphors,
    ModuleCycles,
    MethodLiterals,
    UntypedEvents,
}

/// One violation.
#[derive(Debug, PartialEq)]
pub(crate) struct RuleViolation {
    pub(crate) rule: RatchetRule,
    pub(crate) crate_name: String,
    /// What is refused: a type name, an identifier, a method, a pair of modules, a file.
    pub(crate) subject: String,
    /// `path:line`
    pub(crate) place: String,
}

impl RuleViolation {
    /// Two modules that refer to each other, not a module of a longer cycle.
    pub(crate) fn is_module_pair(&self) -> bool {
        self.rule == RatchetRule::ModuleCycles && self.subject.contains(" <-> ")
    }
}

impl RatchetRule {
    pub(crate) const ALL: [Self; 6] = [
        Self::OneWordTypes,
        Self::SharedPublicTypes,
        Self::Metaphors,
        Self::ModuleCycles,
        Self::MethodLiterals,
        Self::UntypedEvents,
    ];

    /// The name of the rule in the baseline.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::OneWordTypes => "one-word-types",
            Self::SharedPublicTypes => "shared-public-types",
            Self::Metaphors => "metaphors",
            Self::ModuleCycles => "module-cycles",
            Self::MethodLiterals => "method-literals",
            Self::UntypedEvents => "untyped-events",
        }
    }

    /// What to write instead.
    pub(crate) fn advice(self) -> &'static str {
        match self {
            Self::OneWordTypes => {
                "a type has a name of two or three words unless it is a noun of the glossary"
            }
            Self::SharedPublicTypes => "a public type of another crate has this name already",
            Self::Metaphors => "use the word of the field, not a metaphor",
            Self::ModuleCycles => "modules of a crate may not depend on each other",
            Self::MethodLiterals => "methods are named in the method table only: use its constant",
            Self::UntypedEvents => "read events through their type, not as JSON",
        }
    }

    pub(crate) fn find_violations(self, tree: &SourceTree<'_>) -> Vec<RuleViolation> {
        match self {
            Self::OneWordTypes => find_one_word_types(tree),
            Self::SharedPublicTypes => find_shared_public_types(tree),
            Self::Metaphors => find_metaphors(tree),
            Self::ModuleCycles => find_module_cycles(tree),
            Self::MethodLiterals => find_method_literals(tree),
            Self::UntypedEvents => find_untyped_events(tree),
        }
    }

    fn violation(self, file: &SourceFile<'_>, line: usize, subject: &str) -> RuleViolation {
        RuleViolation {
            rule: self,
            crate_name: file.crate_name.to_owned(),
            subject: subject.to_owned(),
            place: format!("{}:{line}", file.path),
        }
    }
}

fn find_one_word_types(tree: &SourceTree<'_>) -> Vec<RuleViolation> {
    let mut violations = Vec::new();
    for file in &tree.files {
        for item in &file.items.types {
            if has_one_word(item.name) && !is_glossary_noun(item.name) {
                let rule = RatchetRule::OneWordTypes;
                violations.push(rule.violation(file, item.line, item.name));
            }
        }
    }
    violations
}

fn find_shared_public_types(tree: &SourceTree<'_>) -> Vec<RuleViolation> {
    let public = || {
        let types = |file| SourceFile::public_types(file).map(move |it| (file, it));
        tree.files.iter().flat_map(types)
    };
    let mut crates = BTreeMap::<&str, BTreeSet<&str>>::new();
    for (file, item) in public() {
        crates.entry(item.name).or_default().insert(file.crate_name);
    }
    let shared = public().filter(|(_, item)| 1 < crates[item.name].len());
    let rule = RatchetRule::SharedPublicTypes;
    shared.map(|(file, item)| rule.violation(file, item.line, item.name)).collect()
}

fn find_metaphors(tree: &SourceTree<'_>) -> Vec<RuleViolation> {
    let finder = MetaphorFinder::new();
    let mut known = BTreeMap::new();
    let mut violations = Vec::new();
    for file in &tree.files {
        for token in file.tokens.iter().filter(|it| it.is_identifier()) {
            let found = known.entry(token.text).or_insert_with(|| finder.find(token.text));
            if let Some(name) = *found {
                violations.push(RatchetRule::Metaphors.violation(file, token.line, name));
            }
        }
    }
    violations
}

fn find_module_cycles(tree: &SourceTree<'_>) -> Vec<RuleViolation> {
    let mut violations = Vec::new();
    for crate_name in tree.crate_names() {
        let cycles = ModuleGraph::build(tree, crate_name).find_cycles();
        violations.extend(cycles.into_iter().map(|cycle| RuleViolation {
            rule: RatchetRule::ModuleCycles,
            crate_name: crate_name.to_owned(),
            subject: cycle.name,
            place: cycle.place,
        }));
    }
    violations
}

/// The folder that may name methods.
const METHOD_TABLE: &str = "crates/protocol/src/acp/";
const METHODS: &[&str] = &["initialize", "authenticate", "$/cancel_request"];
const METHOD_PREFIXES: &[&str] = &["session/", "_jackfield/", "fs/", "terminal/"];

/// Whether a string literal names a method or the prefix of some methods.
fn is_method(value: &str) -> bool {
    let is_plain = |it: u8| it.is_ascii_lowercase() || it == b'_' || it == b'/';
    METHODS.contains(&value)
        || (METHOD_PREFIXES.iter().any(|it| value.starts_with(it)) && value.bytes().all(is_plain))
}

fn find_method_literals(tree: &SourceTree<'_>) -> Vec<RuleViolation> {
    let mut violations = Vec::new();
    let is_outside = |file: &&SourceFile<'_>| !file.path.starts_with(METHOD_TABLE);
    for file in tree.files.iter().filter(is_outside) {
        for token in &file.tokens {
            if let Some(method) = token.string_value().filter(|it| is_method(it)) {
                violations.push(RatchetRule::MethodLiterals.violation(file, token.line, method));
            }
        }
    }
    violations
}

fn find_untyped_events(tree: &SourceTree<'_>) -> Vec<RuleViolation> {
    let mut violations = Vec::new();
    for file in tree.files.iter().filter(|it| it.crate_name != "events") {
        for window in file.tokens.windows(4).filter(|it| is_untyped_access(it)) {
            let rule = RatchetRule::UntypedEvents;
            violations.push(rule.violation(file, window[0].line, file.path));
        }
    }
    violations
}

/// `fact["…"]`, `….["is"]` and `.get("is")`.
fn is_untyped_access(window: &[Token<'_>]) -> bool {
    let [value, open, member, close] = window else { return false };
    let Some(name) = member.string_value() else { return false };
    match (open.text, close.text) {
        ("[", "]") if name == "is" => value.is_identifier() || value.kind == TokenKind::Close,
        ("[", "]") => value.text == "fact",
        ("(", ")") => value.text == "get" && name == "is",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{super::super::parse::SourceText, *};

    /// The subjects and places that `rule` refuses in these files.
    fn found(rule: RatchetRule, files: &[(&str, &str)]) -> Vec<String> {
        let texts = SourceText::from_pairs("crates/", files);
        let violations = rule.find_violations(&SourceTree::parse(&texts));
        let shown = |it: RuleViolation| {
            let place = it.place.replace("crates/", "");
            format!("{}: {} at {place}", it.crate_name, it.subject)
        };
        violations.into_iter().map(shown).collect()
    }

    #[test]
    fn one_word_type_is_refused_unless_it_is_in_the_glossary() {
        let rule = RatchetRule::OneWordTypes;
        let planted = "struct SegmentCache;\n\nenum Entry { A }\n";
        assert_eq!(found(rule, &[("hub/src/a.rs", planted)]), ["hub: Entry at hub/src/a.rs:3"]);
        let fine = "struct Session; trait HostLink { type Item; } \
            #[cfg(test)] mod tests { struct Entry; }";
        assert_eq!(found(rule, &[("hub/src/a.rs", fine)]), [""; 0]);
    }

    #[test]
    fn public_type_in_two_crates_is_refused() {
        let rule = RatchetRule::SharedPublicTypes;
        let planted =
            [("hub/src/a.rs", "pub struct Limits;"), ("bus/src/b.rs", "pub enum Limits {}")];
        let expected = ["hub: Limits at hub/src/a.rs:1", "bus: Limits at bus/src/b.rs:1"];
        assert_eq!(found(rule, &planted), expected);
        let private =
            [("hub/src/a.rs", "pub struct Limits;"), ("bus/src/b.rs", "pub(crate) struct Limits;")];
        assert_eq!(found(rule, &private), [""; 0]);
        let once = [("hub/src/a.rs", "pub struct Limits;"), ("hub/src/b.rs", "pub struct Limits;")];
        assert_eq!(found(rule, &once), [""; 0]);
    }

    #[test]
    fn metaphor_is_refused_as_identifier_and_not_as_text() {
        let rule = RatchetRule::Metaphors;
        let planted = "fn open_leg() {}";
        assert_eq!(found(rule, &[("hub/src/a.rs", planted)]), ["hub: Leg at hub/src/a.rs:1"]);
        let fine = "// leg\nfn open_connection() { print(\"leg\"); }";
        assert_eq!(found(rule, &[("hub/src/a.rs", fine)]), [""; 0]);
    }

    #[test]
    fn module_cycle_is_refused() {
        let rule = RatchetRule::ModuleCycles;
        let a = ("hub/src/a.rs", "use crate::b::B;");
        let expected = ["hub: a <-> b at hub/src/a.rs:1 and hub/src/b.rs:1"];
        assert_eq!(found(rule, &[a, ("hub/src/b.rs", "use crate::a::A;")]), expected);
        assert_eq!(found(rule, &[a, ("hub/src/b.rs", "use crate::c::C;")]), [""; 0]);
    }

    #[test]
    fn method_literal_is_refused_outside_the_table() {
        let rule = RatchetRule::MethodLiterals;
        let planted =
            "fn a() { b(\"session/prompt\"); c(\"$/cancel_request\"); d(\"_jackfield/\") }";
        let expected = ["session/prompt", "$/cancel_request", "_jackfield/"]
            .map(|it| format!("hub: {it} at hub/src/a.rs:1"));
        assert_eq!(found(rule, &[("hub/src/a.rs", planted)]), expected);
        assert_eq!(found(rule, &[("protocol/src/acp/table.rs", planted)]), [""; 0]);
        let fine = "fn a() { b(\"session/new failed\"); c(\"sessions\"); } // \"session/new\"";
        assert_eq!(found(rule, &[("hub/src/a.rs", fine)]), [""; 0]);
    }

    #[test]
    fn untyped_access_to_events_is_refused() {
        let rule = RatchetRule::UntypedEvents;
        for planted in ["fact[\"by\"]", "it[\"is\"]", "a()[\"is\"]", "a.get(\"is\")"] {
            let source = format!("fn a() {{ {planted}; }}");
            let file = "views/src/a.rs";
            assert_eq!(found(rule, &[(file, &source)]).len(), 1, "{planted}");
            assert_eq!(found(rule, &[("events/src/a.rs", &source)]), [""; 0]);
        }
        let fine = "fn a() { b([\"is\"]); config[\"by\"]; fact[at]; a.get(\"by\"); }";
        assert_eq!(found(rule, &[("views/src/a.rs", fine)]), [""; 0]);
    }
}
