//! Parsers of model lists in human-readable text: lines, tables, a sentence in a help text.

type IdNamePairs = Vec<(String, String)>;

/// One id per line.
pub(super) fn parse_lines(text: &str) -> IdNamePairs {
    content_lines(text).filter(|it| !it.contains(char::is_whitespace)).map(id_as_name).collect()
}

/// One `provider/model` per line; the long form puts a JSON object after each.
pub(super) fn parse_opencode(text: &str) -> IdNamePairs {
    // No line of those objects is a path without quotes.
    content_lines(text)
        .filter(|it| it.contains('/') && !it.contains(['"', ' ', '{', '}']))
        .map(id_as_name)
        .collect()
}

/// `id - label` per line, under a heading.
pub(super) fn parse_cursor(text: &str) -> IdNamePairs {
    if text.to_lowercase().contains("no models available") {
        return Vec::new();
    }
    content_lines(text)
        .filter(|it| {
            !matches!(it.to_lowercase().trim_end_matches(':'), "available models" | "models")
        })
        .map(|line| line.split_once(" - ").map_or_else(|| id_as_name(line), trim_pair))
        .filter(|(id, _)| !id.contains(' '))
        .collect()
}

/// A bulleted list, of which only `grok-…` are ids.
pub(super) fn parse_grok(text: &str) -> IdNamePairs {
    content_lines(text)
        .filter_map(|line| {
            let line = line.trim_start_matches(['*', '-', '•', ' ']);
            line.split_whitespace().next()
        })
        .filter(|id| id.starts_with("grok-"))
        .map(id_as_name)
        .collect()
}

/// A table of providers and models. Output without its heading is advice to log in.
pub(super) fn parse_pi(text: &str) -> IdNamePairs {
    let mut lines = content_lines(text);
    if !lines.next().is_some_and(|heading| heading.to_lowercase().starts_with("provider")) {
        return Vec::new();
    }
    let rows = lines.map(str::split_whitespace);
    rows.filter_map(|mut row| Some(id_as_name(&format!("{}/{}", row.next()?, row.next()?))))
        .collect()
}

/// The list in parentheses that the help prints after `--model`.
pub(super) fn parse_codebuddy(text: &str) -> IdNamePairs {
    let list = text.split_once("--model").and_then(|(_, rest)| {
        let (_, rest) = rest.split_once("Currently supported:")?;
        let (_, rest) = rest.split_once('(')?;
        rest.split_once(')')
    });
    let Some((list, _)) = list else { return Vec::new() };
    list.split([',', '\n']).map(str::trim).filter(|it| !it.is_empty()).map(id_as_name).collect()
}

/// The lines that are neither empty nor comments (`#`), without colors.
fn content_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(strip_colors).filter(|it| !it.is_empty() && !it.starts_with('#'))
}

/// Strips escape sequences around a line. A line with one inside is not a valid id and is left out.
fn strip_colors(line: &str) -> &str {
    let mut line = line.trim();
    while let Some(rest) = line.strip_prefix("\u{1b}[") {
        let Some(end) = rest.find('m') else { break };
        line = rest[end + 1..].trim_start();
    }
    while let Some(start) = line.rfind("\u{1b}[").filter(|_| line.ends_with('m')) {
        line = line[..start].trim_end();
    }
    line
}

fn id_as_name(id: &str) -> (String, String) {
    (id.to_owned(), id.to_owned())
}

fn trim_pair((id, name): (&str, &str)) -> (String, String) {
    (id.trim().to_owned(), name.trim().to_owned())
}
