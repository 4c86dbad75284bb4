//! The corpus: texts with secrets of which nothing may survive, and texts without any that must stay
//! as they are. The secrets are made up when the test runs, so that no file has one.

use super::{PieceRedactor, text};

const SECRETS: &str = include_str!("corpus/secrets.txt");
const HARMLESS: &str = include_str!("corpus/harmless.txt");

/// So many characters of a secret in a row may not be left where it was cut.
const PART_BYTES: usize = 6;

/// One line of the table of secrets.
struct Planted {
    line: usize,
    kind: String,
    text: String,
    /// None of these may be left.
    secrets: Vec<String>,
}

/// The alphabets of generated parts, each in an order that looks like nothing real.
fn alphabet(class: char) -> &'static [u8] {
    match class {
        'w' => b"F4kEn0tRe4lZqXv7Jb2LmP9sTgYh3Cd6KwAu8Nx5QyWr1Vi",
        'l' => b"f4ken0tre4lzqxv7jb2lmp9stgyh3cd6kwau8nx5qy", // typos: ignore
        'c' => b"F4KEN0TRE4LZQXV7JB2LMP9STGYH3CD6KWAU8NX5QY", // typos: ignore
        'b' => b"F4kE+n0tRe4lZ/qXv7Jb2LmP9sTgYh3Cd6KwAu8Nx5Q",
        'h' => b"fa4e0d7ea1b9c3d25f68",
        'd' => b"4815162342",
        other => panic!("no alphabet is called `{other}`"),
    }
}

/// Part number `number` of a text, of so many characters.
fn made_up(class: char, length: usize, number: usize) -> String {
    let alphabet = alphabet(class);
    (0..length).map(|it| char::from(alphabet[(it * 7 + number * 5) % alphabet.len()])).collect()
}

/// Replaces `{w20}` by 20 characters, which are secret; those of `{-w20}` are not.
fn expand(template: &str) -> (String, Vec<String>) {
    let template = template.replace("\\n", "\n").replace("\\t", "\t");
    let (mut text, mut secrets) = (String::new(), Vec::new());
    let mut rest = template.as_str();
    while let Some(begin) = rest.find('{') {
        text.push_str(&rest[..begin]);
        rest = &rest[begin + 1..];
        let end = rest.find('}').unwrap_or(0);
        let part = rest[..end].strip_prefix('-').unwrap_or(&rest[..end]);
        let class = part.chars().next().unwrap_or(' ');
        let Some(length) = part.get(1..).and_then(|it| it.parse().ok()) else {
            text.push('{');
            continue;
        };
        let made = made_up(class, length, secrets.len() + text.len());
        text.push_str(&made);
        if !rest.starts_with('-') {
            secrets.push(made);
        }
        rest = &rest[end + 1..];
    }
    text.push_str(rest);
    (text, secrets)
}

/// `kind | text | what else must not survive`, with ` | ` between the columns.
fn planted() -> Vec<Planted> {
    let rows = SECRETS.lines().enumerate().filter(|it| !it.1.is_empty() && !it.1.starts_with('#'));
    let row = |(at, line): (usize, &str)| {
        let mut columns = line.split(" | ").map(str::trim);
        let (Some(kind), Some(template)) = (columns.next(), columns.next()) else {
            panic!("line {} of secrets.txt has no text", at + 1)
        };
        let (text, mut secrets) = expand(template);
        secrets.extend(columns.map(str::to_owned));
        assert!(!secrets.is_empty(), "line {} of secrets.txt has no secret", at + 1);
        assert!(secrets.iter().all(|it| text.contains(it.as_str())), "line {}", at + 1);
        Planted { line: at + 1, kind: kind.to_owned(), text, secrets }
    };
    rows.map(row).collect()
}

fn harmless() -> Vec<(usize, String)> {
    let rows = HARMLESS.lines().enumerate().filter(|it| !it.1.is_empty() && !it.1.starts_with('#'));
    rows.map(|(at, line)| (at + 1, expand(line).0)).collect()
}

/// The text in two pieces with a pause between them, joined again.
fn cut_in_two(whole: &str, at: usize) -> String {
    let (first, second) = whole.split_at(whole.floor_char_boundary(at));
    let mut pieces = PieceRedactor::default();
    let mut shown = pieces.push(first);
    shown.extend(pieces.pause());
    shown.extend(pieces.push(second));
    shown.extend(pieces.finish());
    shown.concat()
}

#[test]
fn every_planted_secret_is_hidden_and_every_harmless_text_survives() {
    let (planted, harmless) = (planted(), harmless());
    assert!(150 <= planted.len() && 100 <= harmless.len());
    let mut faults = Vec::new();
    for it in &planted {
        for context in ["", "see: ", "```\n", "- "] {
            let shown = text(&format!("{context}{}\nand so on", it.text)).into_owned();
            let left: Vec<&String> =
                it.secrets.iter().filter(|secret| shown.contains(secret.as_str())).collect();
            if !left.is_empty() || !shown.ends_with("\nand so on") {
                faults.push(format!("MISS secrets.txt:{} {}: {shown}", it.line, it.kind));
                break;
            }
        }
    }
    for (line, whole) in &harmless {
        let shown = text(whole);
        if shown != whole.as_str() {
            faults.push(format!("FALSE ALARM harmless.txt:{line}: {whole}\n  shown as {shown}"));
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn a_pause_in_the_middle_saves_no_part_of_a_secret() {
    let mut faults = Vec::new();
    for it in planted().iter().filter(|it| it.text.len() < 400) {
        let whole = text(&it.text);
        let parts = it.secrets.iter().flat_map(|secret| secret.as_bytes().windows(PART_BYTES));
        let parts: Vec<&str> = parts.map(|it| str::from_utf8(it).unwrap()).collect();
        for at in 0..it.text.len() {
            let shown = cut_in_two(&it.text, at);
            if parts.iter().any(|part| shown.contains(part) && !whole.contains(part)) {
                faults.push(format!("secrets.txt:{} {}, at {at}: {shown}", it.line, it.kind));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    for (line, whole) in harmless().iter().filter(|it| it.1.len() < 400) {
        for at in 0..whole.len() {
            assert_eq!(&cut_in_two(whole, at), whole, "harmless.txt:{line}, cut at {at}");
        }
    }
}
