//! Plain text of programs that color their output.

/// Removes escape sequences: some programs color their output even if it is not a terminal.
pub(crate) fn strip_colors(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\u{1b}[") {
        plain.push_str(&rest[..at]);
        let code = &rest[at + 2..];
        let end = code.find(|it: char| ('@'..='~').contains(&it));
        rest = end.map_or("", |end| &code[end + 1..]);
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_are_stripped_everywhere() {
        let red = "\u{1b}[91m\u{1b}[1mError: \u{1b}[0mSession not found";
        assert_eq!(strip_colors(red), "Error: Session not found");
        assert_eq!(strip_colors("ü\u{1b}[3"), "ü");
    }
}
