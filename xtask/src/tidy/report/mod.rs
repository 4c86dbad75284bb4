//! `cargo xtask tidy --report`: figures about the production code, with their goals.

mod measure;
mod print;

pub(super) use measure::measure;
pub(super) use print::{to_json, to_table};

use std::collections::BTreeMap;

/// All figures.
#[derive(Debug)]
pub(super) struct CodeReport {
    pub(super) rows: Vec<ReportRow>,
    /// The metaphors that still occur as identifiers, with their counts.
    pub(super) metaphors: BTreeMap<String, usize>,
}

#[derive(Debug)]
pub(super) struct ReportRow {
    /// The name in JSON.
    pub(super) id: &'static str,
    /// The name in the table.
    pub(super) label: &'static str,
    pub(super) figure: ReportFigure,
    pub(super) goal: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ReportFigure {
    Count(usize),
    Share { count: usize, total: usize },
    Mean { sum: usize, count: usize },
}

impl ReportFigure {
    /// A share in percent, rounded.
    fn percent(count: usize, total: usize) -> usize {
        (200 * count + total).checked_div(2 * total).unwrap_or(0)
    }

    /// A mean with one decimal, rounded.
    fn mean(sum: usize, count: usize) -> String {
        let tenths = (20 * sum + count).checked_div(2 * count).unwrap_or(0);
        format!("{}.{}", tenths / 10, tenths % 10)
    }
}
