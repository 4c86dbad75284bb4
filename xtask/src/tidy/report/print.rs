//! Writes the figures as a table or as JSON.

use super::{CodeReport, ReportFigure};
use std::fmt::Write as _;

impl ReportFigure {
    fn to_text(self) -> String {
        match self {
            Self::Count(count) => count.to_string(),
            Self::Share { count, total } => {
                format!("{count} of {total} ({} %)", Self::percent(count, total))
            }
            Self::Mean { sum, count } => Self::mean(sum, count),
        }
    }

    fn to_json(self) -> String {
        match self {
            Self::Count(count) => count.to_string(),
            Self::Share { count, total } => {
                let percent = Self::percent(count, total);
                format!("{{\"count\": {count}, \"total\": {total}, \"percent\": {percent}}}")
            }
            Self::Mean { sum, count } => Self::mean(sum, count),
        }
    }
}

pub(crate) fn to_table(report: &CodeReport) -> String {
    let mut rows = vec![["measurement".to_owned(), "today".to_owned(), "goal".to_owned()]];
    rows.extend(
        report.rows.iter().map(|it| [it.label.to_owned(), it.figure.to_text(), it.goal.to_owned()]),
    );
    let sum: usize = report.metaphors.values().sum();
    rows.push(["metaphors as identifiers".to_owned(), sum.to_string(), "0".to_owned()]);
    let width = |at: usize| rows.iter().map(|it| it[at].chars().count()).max().unwrap_or(0);
    let (label, today) = (width(0), width(1));
    let mut text = String::new();
    for [name, value, goal] in &rows {
        let line = format!("{name:label$}  {value:>today$}  {goal}");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text.push('\n');
    text.push_str(&list_metaphors(report));
    text
}

/// The most frequent first, a few per line.
fn list_metaphors(report: &CodeReport) -> String {
    let mut metaphors: Vec<_> = report.metaphors.iter().collect();
    metaphors.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), *name));
    let entries: Vec<_> =
        metaphors.iter().map(|(name, count)| format!("{name:<12} {count:>5}")).collect();
    let lines = entries.chunks(5).map(|it| it.join("   ") + "\n");
    lines.collect()
}

pub(crate) fn to_json(report: &CodeReport) -> String {
    let mut members: Vec<String> =
        report.rows.iter().map(|it| format!("  \"{}\": {}", it.id, it.figure.to_json())).collect();
    let metaphors: Vec<_> =
        report.metaphors.iter().map(|(name, count)| format!("    \"{name}\": {count}")).collect();
    members.push(format!("  \"metaphors\": {{\n{}\n  }}", metaphors.join(",\n")));
    format!("{{\n{}\n}}\n", members.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::{super::ReportRow, *};
    use std::collections::BTreeMap;

    fn report() -> CodeReport {
        let row = |id, label, figure| ReportRow { id, label, figure, goal: "0" };
        CodeReport {
            rows: vec![
                row("a", "types", ReportFigure::Share { count: 1, total: 3 }),
                row("b", "mean length", ReportFigure::Mean { sum: 20, count: 3 }),
            ],
            metaphors: BTreeMap::from([("Leg".to_owned(), 2)]),
        }
    }

    #[test]
    fn table_is_aligned() {
        let line = |label, today, goal| format!("{label:<24}  {today:>13}  {goal}\n");
        let expected = [
            line("measurement", "today", "goal"),
            line("types", "1 of 3 (33 %)", "0"),
            line("mean length", "6.7", "0"),
            line("metaphors as identifiers", "2", "0"),
            "\nLeg              2\n".to_owned(),
        ];
        assert_eq!(to_table(&report()), expected.concat());
    }

    #[test]
    fn json_has_the_same_figures() {
        let expected = "{\n  \"a\": {\"count\": 1, \"total\": 3, \"percent\": 33},\n  \
            \"b\": 6.7,\n  \"metaphors\": {\n    \"Leg\": 2\n  }\n}\n";
        assert_eq!(to_json(&report()), expected);
    }
}
