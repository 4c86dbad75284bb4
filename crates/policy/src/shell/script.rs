//! Scripts of `sed` and `awk`: whether they only print.

use super::{Word, WordKind};

/// Commands of `sed` without an argument that touch nothing but its own lines.
const SED_PLAIN: &str = "pPdDqQ=nNgGhHxlF{}";

/// What an `awk` program writes with, runs with or reads more code with.
const AWK_HAZARDS: &[&str] = &["system", "getline", "|", ">", "@"];

/// Whether a call of `sed` may do anything but print.
pub(super) fn sed_is_hazardous(arguments: &[Word]) -> bool {
    let mut scripts: Vec<&Word> = Vec::new();
    let mut first_operand = None;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.text.as_str() {
            "-e" | "--expression" => scripts.extend(words.next()),
            "-n" | "-E" | "-r" | "-s" | "-u" | "-z" | "-nE" | "-En" | "-nr" | "-rn" | "--quiet"
            | "--silent" | "--regexp-extended" | "--posix" | "--" => {}
            // `-i`, `-f`, and everything that is not known.
            text if text.starts_with('-') && text != "-" => return true,
            _ => {
                first_operand.get_or_insert(word);
            }
        }
    }
    if scripts.is_empty() {
        scripts.extend(first_operand);
    }
    let options = arguments.iter().any(super::wild::could_be_option);
    options || scripts.iter().any(|it| it.kind != WordKind::Fixed || !sed_prints(&it.text))
}

/// Whether a script has only commands that print or change lines in memory.
fn sed_prints(script: &str) -> bool {
    let mut rest = script.trim_start_matches([' ', '\t', '\n', ';']);
    while !rest.is_empty() {
        let Some(after) = sed_address(rest) else { return false };
        rest = after.trim_start_matches([' ', '\t', '!']);
        let Some(command) = rest.chars().next() else { return false };
        rest = &rest[command.len_utf8()..];
        if command == 's' {
            let Some(flags) = two_fields(rest) else { return false };
            rest =
                flags.trim_start_matches(|it: char| "gpiImM".contains(it) || it.is_ascii_digit());
        } else if !SED_PLAIN.contains(command) {
            return false;
        } else if matches!(command, 'q' | 'Q' | 'l') {
            rest = rest.trim_start_matches(|it: char| it == ' ' || it.is_ascii_digit());
        }
        let ends = rest.is_empty() || rest.starts_with([';', '\n', ' ', '}']) || command == '{';
        if !ends {
            return false;
        }
        rest = rest.trim_start_matches([' ', '\t', '\n', ';']);
    }
    true
}

/// What follows the address of a command: `1`, `$`, `/re/I`, `2,/re/`, `1~2`, `/a/,+3`.
fn sed_address(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        let before = rest;
        rest = rest.trim_start_matches(|it: char| it.is_ascii_digit() || "$,~+ ".contains(it));
        if let Some(pattern) = rest.strip_prefix('/') {
            rest = one_field(pattern, '/')?.trim_start_matches(['I', 'M']);
        }
        if rest.len() == before.len() {
            return Some(rest);
        }
    }
}

/// What follows `/a/b/`, with whatever stands for the slash.
fn two_fields(text: &str) -> Option<&str> {
    let delimiter = text.chars().next().filter(|it| !it.is_alphanumeric() && *it != '\\')?;
    let first = one_field(&text[delimiter.len_utf8()..], delimiter)?;
    one_field(first, delimiter)
}

/// What follows the next delimiter that is not escaped; nothing if it stands in a class, where not
/// every `sed` takes it for the end.
fn one_field(text: &str, delimiter: char) -> Option<&str> {
    let mut chars = text.char_indices();
    while let Some((at, next)) = chars.next() {
        if next == '\\' {
            chars.next();
        } else if next == delimiter {
            return Some(&text[at + next.len_utf8()..]);
        } else if next == '[' {
            let class = class_length(&text[at..])?;
            if text[at..at + class].contains([delimiter, '\n']) {
                return None;
            }
            while chars.as_str().len() > text.len() - at - class {
                chars.next();
            }
        } else if next == '\n' {
            return None;
        }
    }
    None
}

/// How many bytes the class has that begins here: `[a-z]`, `[^]x]`.
fn class_length(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('[')?;
    let inner = inner.strip_prefix('^').unwrap_or(inner);
    let first = inner.strip_prefix(']').unwrap_or(inner);
    // `[[:alpha:]]` has brackets of its own.
    let end = if first.contains("[:") { first.find("]]")? + 2 } else { first.find(']')? + 1 };
    Some(text.len() - first.len() + end)
}

/// Whether a call of `awk` may do anything but print.
pub(super) fn awk_is_hazardous(arguments: &[Word]) -> bool {
    let plain_option = |it: &str| it.starts_with("-F") || it.starts_with("-v") || it == "--";
    arguments.iter().any(|word| {
        let text = word.text.as_str();
        let option = text.starts_with('-') && text.len() > 1 && !plain_option(text);
        // What it prints to is said in its program, and the program may come in parts.
        let code = AWK_HAZARDS.iter().any(|it| text.contains(it));
        option || code || word.kind != WordKind::Fixed && !text.starts_with("-F")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_that_print_are_told_from_others() {
        for script in [
            "p",
            "1,5p",
            "$d",
            "/a b/p",
            "s/a/b/",
            "s|a|b|gp",
            "s/[a-z]*//g",
            "s/[[:space:]]*$//",
            "1d;$d",
            "/x/,/y/p",
            "5q",
            "/a/{p;d}",
        ] {
            assert!(sed_prints(script), "{script}");
        }
        for script in [
            "e id",
            "1e",
            "s/a/id/e",
            "w f",
            "s/a/b/w f",
            "r f",
            "W f",
            "1!e",
            "s/a/b/;e",
            "x;w f",
            "s/[/]/x/e",
            "y/a/b/",
            "a\\",
            "/a/w f",
            "s/a\\/b/c/e",
            "s/a/b",
            "sabae",
        ] {
            assert!(!sed_prints(script), "{script}");
        }
    }
}
