//! Checks whether scripts of `sed` and `awk` only print.

use super::{ShellWord, WordKind};

/// Commands of `sed` without an argument that only affect its own buffers and output.
const SED_PLAIN: &str = "pPdDqQ=nNgGhHxlF{}";

/// Parts of an `awk` program that write files, run programs or load code.
const AWK_HAZARDS: &[&str] = &["system", "getline", "|", ">", "@"];

/// Whether `sed` with these arguments may do more than print.
pub(super) fn sed_is_hazardous(arguments: &[ShellWord]) -> bool {
    let mut scripts: Vec<&ShellWord> = Vec::new();
    let mut first_operand = None;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.text.as_str() {
            "-e" | "--expression" => scripts.extend(words.next()),
            "-n" | "-E" | "-r" | "-s" | "-u" | "-z" | "-nE" | "-En" | "-nr" | "-rn" | "--quiet"
            | "--silent" | "--regexp-extended" | "--posix" | "--" => {}
            // `-i`, `-f` and unknown options.
            text if text.starts_with('-') && text != "-" => return true,
            _ => {
                first_operand.get_or_insert(word);
            }
        }
    }
    if scripts.is_empty() {
        scripts.extend(first_operand);
    }
    let has_possible_option = arguments.iter().any(super::expansion::could_be_option);
    has_possible_option
        || scripts.iter().any(|it| it.kind != WordKind::Fixed || !is_printing_sed(&it.text))
}

/// Whether a script has only commands that print or change lines in memory.
fn is_printing_sed(script: &str) -> bool {
    let mut rest = script.trim_start_matches([' ', '\t', '\n', ';']);
    while !rest.is_empty() {
        let Some(after) = skip_sed_address(rest) else { return false };
        rest = after.trim_start_matches([' ', '\t', '!']);
        let Some(command) = rest.chars().next() else { return false };
        rest = &rest[command.len_utf8()..];
        if command == 's' {
            let Some(flags) = skip_two_fields(rest) else { return false };
            rest =
                flags.trim_start_matches(|it: char| "gpiImM".contains(it) || it.is_ascii_digit());
        } else if !SED_PLAIN.contains(command) {
            return false;
        } else if matches!(command, 'q' | 'Q' | 'l') {
            rest = rest.trim_start_matches(|it: char| it == ' ' || it.is_ascii_digit());
        }
        let is_command_end =
            rest.is_empty() || rest.starts_with([';', '\n', ' ', '}']) || command == '{';
        if !is_command_end {
            return false;
        }
        rest = rest.trim_start_matches([' ', '\t', '\n', ';']);
    }
    true
}

/// The text after the address of a command: `1`, `$`, `/re/I`, `2,/re/`, `1~2`, `/a/,+3`.
fn skip_sed_address(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        let before = rest;
        rest = rest.trim_start_matches(|it: char| it.is_ascii_digit() || "$,~+ ".contains(it));
        if let Some(pattern) = rest.strip_prefix('/') {
            rest = skip_field(pattern, '/')?.trim_start_matches(['I', 'M']);
        }
        if rest.len() == before.len() {
            return Some(rest);
        }
    }
}

/// The text after `/a/b/`, with any delimiter in place of the slash.
fn skip_two_fields(text: &str) -> Option<&str> {
    let delimiter = text.chars().next().filter(|it| !it.is_alphanumeric() && *it != '\\')?;
    let first = skip_field(&text[delimiter.len_utf8()..], delimiter)?;
    skip_field(first, delimiter)
}

/// The text after the next delimiter that is not escaped. `None` if the delimiter is in a class,
/// where implementations of `sed` differ.
fn skip_field(text: &str, delimiter: char) -> Option<&str> {
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

/// The length in bytes of the class at the start of the text: `[a-z]`, `[^]x]`.
fn class_length(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('[')?;
    let inner = inner.strip_prefix('^').unwrap_or(inner);
    let first = inner.strip_prefix(']').unwrap_or(inner);
    // `[[:alpha:]]` contains brackets.
    let end = if first.contains("[:") { first.find("]]")? + 2 } else { first.find(']')? + 1 };
    Some(text.len() - first.len() + end)
}

/// Whether `awk` with these arguments may do more than print.
pub(super) fn awk_is_hazardous(arguments: &[ShellWord]) -> bool {
    let is_harmless_option = |it: &str| it.starts_with("-F") || it.starts_with("-v") || it == "--";
    arguments.iter().any(|word| {
        let text = word.text.as_str();
        let is_unknown_option =
            text.starts_with('-') && text.len() > 1 && !is_harmless_option(text);
        // The program may consist of several arguments, so each of them is checked.
        let has_hazard = AWK_HAZARDS.iter().any(|it| text.contains(it));
        is_unknown_option || has_hazard || word.kind != WordKind::Fixed && !text.starts_with("-F")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printing_scripts_are_distinguished_from_others() {
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
            assert!(is_printing_sed(script), "{script}");
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
            assert!(!is_printing_sed(script), "{script}");
        }
    }
}
