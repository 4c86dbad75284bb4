//! The table in `docs/agents.md`: what each test saw, and that nothing else stands there.

use super::rig::{RIGS, Rig};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

/// One cell: its column, what stands in it, and what makes us say so.
pub(super) struct Cell {
    column: &'static str,
    says: String,
    story: String,
}

pub(super) fn cell(column: &'static str, says: &str) -> Cell {
    assert!(COLUMNS.contains(&column), "no column is called `{column}`");
    Cell { column, says: says.to_owned(), story: String::new() }
}

impl Cell {
    pub(super) fn because(self, story: String) -> Cell {
        Cell { story, ..self }
    }
}

/// After the agent and the way.
const COLUMNS: &[&str] = &[
    "version",
    "text",
    "streams",
    "tools",
    "asks first",
    "refused",
    "cancel",
    "second turn",
    "after a crash",
    "401",
    "429",
    "500",
    "cancel leaves nothing",
    "close leaves nothing",
    "crash leaves nothing",
];

/// What no test has shown.
const UNKNOWN: &str = "?";

const BEGIN: &str = "<!-- from here to the end mark: written by `just live-all` -->\n";
const END: &str = "<!-- end mark -->\n";

/// By rig, then by column.
type Rows = BTreeMap<String, BTreeMap<String, String>>;

/// Writes down what a test saw, and compares it with the table.
pub(super) fn keep(rig: &str, cells: &[Cell]) {
    let dir = results().join(rig);
    fs::create_dir_all(&dir).unwrap();
    for Cell { column, says, story } in cells {
        let row = json!({ "rig": rig, "column": column, "says": says, "story": story });
        let file = dir.join(format!("{}.json", column.replace(' ', "-")));
        fs::write(file, row.to_string()).unwrap();
    }
    if is_writing() {
        return;
    }
    let claims = claims(&fs::read_to_string(page()).unwrap());
    for Cell { column, says, story } in cells {
        let claim = claims.get(rig).and_then(|it| it.get(*column));
        let claim = claim.map_or(UNKNOWN, String::as_str);
        assert_eq!(
            claim, says,
            "docs/agents.md says otherwise about `{column}` of `{rig}`; `just live` writes it anew: {story}"
        );
    }
}

fn is_writing() -> bool {
    env::var_os("JACKFIELD_LIVE").is_some_and(|it| it == "write")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> PathBuf {
    root().join("docs/agents.md")
}

/// One file for each cell that was seen.
fn results() -> PathBuf {
    root().join("target/live")
}

/// What the page claims.
fn claims(page: &str) -> Rows {
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|it| it.trim().to_owned()).collect()
    };
    let (_, rest) = page.split_once(BEGIN).expect("the table has a begin");
    let (table, _) = rest.split_once(END).expect("the table has an end");
    let mut lines = table.lines().filter(|it| it.starts_with('|'));
    let head = lines.next().map(cells).unwrap_or_default();
    let rows = lines.skip(1).map(cells).map(|row| {
        let rig = RIGS.iter().find(|it| it.title() == row[..2]);
        let rig = rig.unwrap_or_else(|| panic!("no test is behind the row of {:?}", &row[..2]));
        let named = head.iter().cloned().zip(row);
        (rig.id.to_owned(), named.skip(2).collect())
    });
    rows.collect()
}

/// The table, of what was claimed and is not contradicted, and what was seen.
fn render(rows: &Rows) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let columns = || COLUMNS.iter().map(ToString::to_string);
    let mut table =
        line(["agent", "way"].map(str::to_owned).into_iter().chain(columns()).collect());
    table += &["|", &"---|".repeat(COLUMNS.len() + 2), "\n"].concat();
    for rig in RIGS {
        let row = rows.get(rig.id);
        let says = |column: String| row.and_then(|it| it.get(&column)).cloned();
        let cells = columns().map(|it| says(it).unwrap_or_else(|| UNKNOWN.to_owned()));
        table += &line(rig.title().into_iter().chain(cells).collect());
    }
    table
}

fn seen() -> Rows {
    let mut rows = Rows::new();
    for dir in fs::read_dir(results()).into_iter().flatten().flatten() {
        for file in fs::read_dir(dir.path()).into_iter().flatten().flatten() {
            let row: Value = serde_json::from_slice(&fs::read(file.path()).unwrap()).unwrap();
            let text = |name: &str| row[name].as_str().unwrap().to_owned();
            rows.entry(text("rig")).or_default().insert(text("column"), text("says"));
        }
    }
    rows
}

/// With `JACKFIELD_LIVE=write` it writes what the tests saw into the page.
#[test]
fn the_table_has_the_rows_and_columns_of_the_tests() {
    let text = fs::read_to_string(page()).unwrap();
    let mut rows = claims(&text);
    if is_writing() {
        for (rig, cells) in seen() {
            rows.entry(rig).or_default().extend(cells);
        }
        let (before, rest) = text.split_once(BEGIN).unwrap();
        let (_, after) = rest.split_once(END).unwrap();
        let written = [before, BEGIN, &render(&rows), END, after].concat();
        fs::write(page(), written).unwrap();
        return;
    }
    assert!(text.contains(&render(&rows)), "write the table with `just live`");
    let is_claimed = |rig: &&Rig| rows[rig.id].values().all(|it| it != UNKNOWN);
    let unknown: Vec<&str> =
        RIGS.iter().filter(|it| it.every_merge && !is_claimed(it)).map(|it| it.id).collect();
    assert!(unknown.is_empty(), "agents of every merge have unknown cells: {unknown:?}");
}
