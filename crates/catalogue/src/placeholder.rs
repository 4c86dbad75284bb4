//! `{model}` and the like in an argument: finding them, and putting values in their place.

/// What may stand in braces.
pub(crate) const NAMES: &[&str] = &["session", "model", "reasoning", "prompt", "file", "cwd"];

/// The names in braces in an argument, known or not. Braces around anything but lowercase letters
/// (JSON, say) are text.
pub(crate) fn names(argument: &str) -> impl Iterator<Item = &str> {
    pieces(argument).filter_map(|it| match it {
        Piece::Name(name) => Some(name),
        Piece::Text(_) => None,
    })
}

/// The argument with every name replaced once: a value that contains braces is left as it is.
pub(crate) fn expand<'a>(argument: &'a str, value: impl Fn(&'a str) -> &'a str) -> String {
    pieces(argument)
        .map(|it| match it {
            Piece::Text(text) => text,
            Piece::Name(name) => value(name),
        })
        .collect()
}

enum Piece<'a> {
    Text(&'a str),
    Name(&'a str),
}

fn pieces(argument: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = argument;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some(name) = name_at_start(rest) {
            rest = &rest[name.len() + 2..];
            return Some(Piece::Name(name));
        }
        let skip = rest.chars().next().map_or(0, char::len_utf8);
        let end = rest[skip..].find('{').map_or(rest.len(), |it| it + skip);
        let (text, tail) = rest.split_at(end);
        rest = tail;
        Some(Piece::Text(text))
    })
}

fn name_at_start(text: &str) -> Option<&str> {
    let (name, _) = text.strip_prefix('{')?.split_once('}')?;
    let plain = !name.is_empty() && name.bytes().all(|it| it.is_ascii_lowercase() || it == b'_');
    plain.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_json_is_not_a_name() {
        assert_eq!(names("a={model},{cwd}").collect::<Vec<_>>(), ["model", "cwd"]);
        assert_eq!(names("{\"a\":{}} {é} {").count(), 0);
        assert_eq!(names("{{model}}").collect::<Vec<_>>(), ["model"]);
    }

    #[test]
    fn a_value_with_braces_is_not_expanded_again() {
        let value = |name: &str| if name == "prompt" { "{model}" } else { "m" };
        assert_eq!(expand("say {prompt} to {model}", value), "say {model} to m");
        assert_eq!(expand("{\"x\": 1}", value), "{\"x\": 1}");
    }
}
