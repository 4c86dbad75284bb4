//! Readers of lists meant for people: lines, tables, a sentence in a help text.

type Found = Vec<(String, String)>;

/// One id per line.
pub(super) fn lines(text: &str) -> Found {
    clean(text).filter(|it| !it.contains(char::is_whitespace)).map(same).collect()
}

/// One `provider/model` per line; the long form puts a JSON object after each.
pub(super) fn opencode(text: &str) -> Found {
    // Keys and braces of those objects are never a path without quotes.
    clean(text)
        .filter(|it| it.contains('/') && !it.contains(['"', ' ', '{', '}']))
        .map(same)
        .collect()
}

/// `id - label` per line, under a heading.
pub(super) fn cursor(text: &str) -> Found {
    if text.to_lowercase().contains("no models available") {
        return Vec::new();
    }
    clean(text)
        .filter(|it| {
            !matches!(it.to_lowercase().trim_end_matches(':'), "available models" | "models")
        })
        .map(|line| line.split_once(" - ").map_or_else(|| same(line), pair))
        .filter(|(id, _)| !id.contains(' '))
        .collect()
}

/// A bulleted list, of which only `grok-…` are ids.
pub(super) fn grok(text: &str) -> Found {
    clean(text)
        .filter_map(|line| {
            let line = line.trim_start_matches(['*', '-', '•', ' ']);
            line.split_whitespace().next()
        })
        .filter(|id| id.starts_with("grok-"))
        .map(same)
        .collect()
}

/// A table: the provider, the model, and more. Without its heading it is an advice to log in.
pub(super) fn pi(text: &str) -> Found {
    let mut lines = clean(text);
    if !lines.next().is_some_and(|heading| heading.to_lowercase().starts_with("provider")) {
        return Vec::new();
    }
    let rows = lines.map(str::split_whitespace);
    rows.filter_map(|mut row| Some(same(&format!("{}/{}", row.next()?, row.next()?)))).collect()
}

/// The list in brackets that the help gives after `--model`.
pub(super) fn codebuddy(text: &str) -> Found {
    let list = text.split_once("--model").and_then(|(_, rest)| {
        let (_, rest) = rest.split_once("Currently supported:")?;
        let (_, rest) = rest.split_once('(')?;
        rest.split_once(')')
    });
    let Some((list, _)) = list else { return Vec::new() };
    list.split([',', '\n']).map(str::trim).filter(|it| !it.is_empty()).map(same).collect()
}

/// Lines with something on them, without colors; `#` begins a remark.
fn clean(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(uncolored).filter(|it| !it.is_empty() && !it.starts_with('#'))
}

/// A line without the escapes around it. Those within make it no id, and it is left out.
fn uncolored(line: &str) -> &str {
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

fn same(id: &str) -> (String, String) {
    (id.to_owned(), id.to_owned())
}

fn pair((id, name): (&str, &str)) -> (String, String) {
    (id.trim().to_owned(), name.trim().to_owned())
}
