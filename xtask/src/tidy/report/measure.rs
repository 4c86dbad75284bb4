//! Computes the figures.
//!
//! A function with a name of one word is not counted if
//! - it is in an `impl` block of a trait, which has chosen the name,
//! - it is an accessor: `self` or `&self` is its only argument, and its type has a field of the
//!   same name,
//! - it has a name of the standard library ([`CONVENTIONAL_FUNCTIONS`]).

use super::{
    super::{
        parse::{FunctionItem, SourceFile, SourceTree, Token},
        ratchet::{CONVENTIONAL_FUNCTIONS, RatchetRule, RuleViolation, has_one_word},
    },
    CodeReport, ReportFigure, ReportRow,
};
use std::collections::{BTreeMap, BTreeSet};

/// The state machines and their crates.
const STATE_MACHINES: [(&str, &str); 3] =
    [("Hub", HUB_CRATE), ("Gateway", "fleet"), ("Bus", "bus")];

const HUB_CRATE: &str = "hub";

pub(crate) fn measure(tree: &SourceTree<'_>, violations: &[RuleViolation]) -> CodeReport {
    let mut rows = type_rows(tree, violations);
    rows.push(function_row(tree));
    rows.extend(state_machine_rows(tree));
    rows.extend(structure_rows(tree, violations));
    rows.extend(size_rows(tree));
    let mut metaphors = BTreeMap::new();
    for it in violations.iter().filter(|it| it.rule == RatchetRule::Metaphors) {
        *metaphors.entry(it.subject.clone()).or_default() += 1;
    }
    CodeReport { rows, metaphors }
}

fn row(
    id: &'static str,
    label: &'static str,
    figure: ReportFigure,
    goal: &'static str,
) -> ReportRow {
    ReportRow { id, label, figure, goal }
}

fn count_violations(violations: &[RuleViolation], rule: RatchetRule) -> usize {
    violations.iter().filter(|it| it.rule == rule).count()
}

fn type_rows(tree: &SourceTree<'_>, violations: &[RuleViolation]) -> Vec<ReportRow> {
    let names: Vec<&str> =
        tree.files.iter().flat_map(|it| &it.items.types).map(|it| it.name).collect();
    let distinct: BTreeSet<_> = names.iter().collect();
    let total = names.len();
    let one_word = count_violations(violations, RatchetRule::OneWordTypes);
    let length = names.iter().map(|it| it.chars().count()).sum();
    vec![
        row(
            "one_word_types",
            "one-word type names outside the glossary",
            ReportFigure::Share { count: one_word, total },
            "<= 15 %",
        ),
        row(
            "type_name_length",
            "mean length of a type name",
            ReportFigure::Mean { sum: length, count: total },
            "",
        ),
        row(
            "surplus_types",
            "type names defined more than once, surplus",
            ReportFigure::Count(total - distinct.len()),
            "<= 40",
        ),
        row(
            "shared_public_types",
            "public types with a name of another crate",
            ReportFigure::Count(count_violations(violations, RatchetRule::SharedPublicTypes)),
            "0",
        ),
    ]
}

fn function_row(tree: &SourceTree<'_>) -> ReportRow {
    let mut fields = BTreeSet::new();
    for file in &tree.files {
        for item in &file.items.types {
            fields.extend(item.fields.iter().map(|it| (file.crate_name, item.name, *it)));
        }
    }
    let is_accessor = |file: &SourceFile<'_>, it: &FunctionItem<'_>| {
        let field = it.owner.map(|owner| (file.crate_name, owner, it.name));
        it.takes_only_self && field.is_some_and(|it| fields.contains(&it))
    };
    let (mut count, mut total) = (0, 0);
    for file in &tree.files {
        for it in file.items.functions.iter().filter(|it| !it.is_in_trait_impl) {
            total += 1;
            let is_conventional = CONVENTIONAL_FUNCTIONS.contains(&it.name);
            if has_one_word(it.name) && !is_conventional && !is_accessor(file, it) {
                count += 1;
            }
        }
    }
    let figure = ReportFigure::Share { count, total };
    row("one_word_functions", "one-word functions, not of std and no accessors", figure, "<= 25 %")
}

fn state_machine_rows(tree: &SourceTree<'_>) -> Vec<ReportRow> {
    let count = |(name, crate_name): (&str, &str)| {
        let files = || tree.files.iter().filter(|it| it.crate_name == crate_name);
        let functions = files().flat_map(|it| &it.items.functions);
        let methods = functions.filter(|it| it.owner == Some(name) && !it.is_in_trait_impl).count();
        let has_block =
            |it: &&SourceFile<'_>| it.items.impl_blocks.iter().any(|it| it.type_name == name);
        (ReportFigure::Count(methods), ReportFigure::Count(files().filter(has_block).count()))
    };
    let [hub, gateway, bus] = STATE_MACHINES.map(count);
    vec![
        row("hub_methods", "methods of `Hub`", hub.0, "<= 50"),
        row("hub_files", "files with `impl Hub`", hub.1, "<= 3"),
        row("gateway_methods", "methods of `Gateway`", gateway.0, ""),
        row("gateway_files", "files with `impl Gateway`", gateway.1, ""),
        row("bus_methods", "methods of `Bus`", bus.0, ""),
        row("bus_files", "files with `impl Bus`", bus.1, ""),
    ]
}

fn structure_rows(tree: &SourceTree<'_>, violations: &[RuleViolation]) -> Vec<ReportRow> {
    let of_rule = |rule| violations.iter().filter(move |it| it.rule == rule);
    let is_hub = |it: &&RuleViolation| it.crate_name == HUB_CRATE;
    let hub_files = tree.files.iter().filter(|it| it.crate_name == HUB_CRATE);
    let expects = hub_files.map(|it| count_caller_expects(&it.tokens)).sum();
    let untyped: BTreeSet<_> =
        of_rule(RatchetRule::UntypedEvents).map(|it| it.subject.as_str()).collect();
    let pairs = || violations.iter().filter(|it| it.is_module_pair());
    let longer = of_rule(RatchetRule::ModuleCycles).filter(|it| !it.is_module_pair());
    let counts = [
        ("caller_expects", "`expect(\"the caller …\")` in the hub", expects, "0"),
        (
            "hub_module_pairs",
            "module cycles in the hub, pairs",
            pairs().filter(is_hub).count(),
            "0",
        ),
        ("module_pairs", "module cycles in all crates, pairs", pairs().count(), "<= 5"),
        ("longer_cycle_modules", "modules in longer cycles", longer.count(), ""),
        (
            "method_literals",
            "method literals outside the method table",
            of_rule(RatchetRule::MethodLiterals).count(),
            "0",
        ),
        ("untyped_event_files", "files that read events as JSON", untyped.len(), "0"),
    ];
    counts.map(|(id, label, count, goal)| row(id, label, ReportFigure::Count(count), goal)).into()
}

/// `expect("the caller …")`: lookups that "cannot fail".
fn count_caller_expects(tokens: &[Token<'_>]) -> usize {
    let is_caller =
        |it: &Token<'_>| it.string_value().is_some_and(|it| it.starts_with("the caller"));
    let windows = tokens.windows(3);
    windows.filter(|it| it[0].text == "expect" && it[1].text == "(" && is_caller(&it[2])).count()
}

fn size_rows(tree: &SourceTree<'_>) -> Vec<ReportRow> {
    let production_lines = |it: &SourceFile<'_>| it.lines.saturating_sub(it.test_lines);
    let mut lengths: Vec<usize> = tree.files.iter().map(production_lines).collect();
    let lines = lengths.iter().sum();
    lengths.sort_unstable();
    let at_percent =
        |percent: usize| lengths.get(lengths.len() * percent / 100).copied().unwrap_or(0);
    let largest = lengths.last().copied().unwrap_or(0);
    let counts = [
        ("production_lines", "lines of production code", lines, "fewer than 82000"),
        ("files", "files", lengths.len(), ""),
        ("file_length_median", "lines of a file, median", at_percent(50), "111"),
        ("file_length_p90", "lines of a file, p90", at_percent(90), "247"),
        ("file_length_largest", "lines of a file, largest", largest, "400"),
    ];
    counts.map(|(id, label, count, goal)| row(id, label, ReportFigure::Count(count), goal)).into()
}

#[cfg(test)]
mod tests {
    use super::{
        super::super::{parse::SourceText, ratchet},
        *,
    };

    fn figure(files: &[(&str, &str)], id: &str) -> ReportFigure {
        let texts = SourceText::from_pairs("crates/", files);
        let tree = SourceTree::parse(&texts);
        let (violations, _) = ratchet::find_violations(&tree, &[]);
        let report = measure(&tree, &violations);
        report.rows.iter().find(|it| it.id == id).expect("the report has this row").figure
    }

    #[test]
    fn types_are_counted_by_definition() {
        let files = [
            ("hub/src/a.rs", "struct Entry; struct Session;"),
            ("cli/src/b.rs", "enum Entry {} struct HostConnection;"),
        ];
        let one_word = ReportFigure::Share { count: 2, total: 4 };
        assert_eq!(figure(&files, "one_word_types"), one_word);
        assert_eq!(figure(&files, "surplus_types"), ReportFigure::Count(1));
        let length = ReportFigure::Mean { sum: 5 + 7 + 5 + 14, count: 4 };
        assert_eq!(figure(&files, "type_name_length"), length);
    }

    #[test]
    fn accessors_and_trait_methods_are_not_counted() {
        let source = "struct Lease { owner: u8 } impl Lease { fn owner(&self) {} fn new() {} \
            fn tell(&self) {} fn owner_of(&self) {} } fn owner() {} \
            impl Drop for Lease { fn drop(&mut self) {} }";
        let expected = ReportFigure::Share { count: 2, total: 5 };
        assert_eq!(figure(&[("hub/src/a.rs", source)], "one_word_functions"), expected);
    }

    #[test]
    fn state_machine_is_measured_in_its_crates() {
        let files = [
            ("hub/src/a.rs", "impl Hub { fn a(&self) {} fn b(&self) {} }"),
            ("hub/src/b.rs", "impl Hub { fn c(&self) { d.expect(\"the caller found it\"); } }"),
            ("cli/src/c.rs", "impl Hub { fn d(&self) { e.expect(\"the caller found it\"); } }"),
        ];
        assert_eq!(figure(&files, "hub_methods"), ReportFigure::Count(3));
        assert_eq!(figure(&files, "hub_files"), ReportFigure::Count(2));
        assert_eq!(figure(&files, "bus_files"), ReportFigure::Count(0));
        assert_eq!(figure(&files, "caller_expects"), ReportFigure::Count(1));
    }

    #[test]
    fn lines_of_tests_are_not_production_code() {
        let source = "//! A.\nfn a() {}\n#[cfg(test)]\nmod tests {\n}\n";
        let files = [("hub/src/a.rs", source)];
        assert_eq!(figure(&files, "production_lines"), ReportFigure::Count(2));
        assert_eq!(figure(&files, "file_length_largest"), ReportFigure::Count(2));
    }
}
