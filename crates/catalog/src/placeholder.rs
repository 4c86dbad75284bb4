//! Finds and expands placeholders such as `{model}` in arguments.

/// The names of all placeholders.
pub(crate) const NAMES: &[&str] =
    &["session", "model", "reasoning", "prompt", "file", "cwd", "dir", "dirs"];

/// The placeholder names in an argument, known or not. Braces around anything but lowercase
/// letters, for example JSON, are text.
pub(crate) fn placeholder_names(argument: &str) -> impl Iterator<Item = &str> {
    split_argument(argument).filter_map(|it| match it {
        ArgumentPart::Name(name) => Some(name),
        ArgumentPart::Text(_) => None,
    })
}

/// Replaces every placeholder once. Braces in a value are not expanded again.
pub(crate) fn expand_argument<'a>(argument: &str, value: impl Fn(&str) -> &'a str) -> String {
    let mut expanded = String::new();
    for part in split_argument(argument) {
        expanded.push_str(match part {
            ArgumentPart::Text(text) => text,
            ArgumentPart::Name(name) => value(name),
        });
    }
    expanded
}

enum ArgumentPart<'a> {
    Text(&'a str),
    Name(&'a str),
}

fn split_argument(argument: &str) -> impl Iterator<Item = ArgumentPart<'_>> {
    let mut rest = argument;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some(name) = name_at_start(rest) {
            rest = &rest[name.len() + 2..];
            return Some(ArgumentPart::Name(name));
        }
        let skip = rest.chars().next().map_or(0, char::len_utf8);
        let end = rest[skip..].find('{').map_or(rest.len(), |it| it + skip);
        let (text, tail) = rest.split_at(end);
        rest = tail;
        Some(ArgumentPart::Text(text))
    })
}

fn name_at_start(text: &str) -> Option<&str> {
    let (name, _) = text.strip_prefix('{')?.split_once('}')?;
    let is_name = !name.is_empty() && name.bytes().all(|it| it.is_ascii_lowercase() || it == b'_');
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_json_is_text() {
        assert_eq!(placeholder_names("a={model},{cwd}").collect::<Vec<_>>(), ["model", "cwd"]);
        assert_eq!(placeholder_names("{\"a\":{}} {é} {").count(), 0);
        assert_eq!(placeholder_names("{{model}}").collect::<Vec<_>>(), ["model"]);
    }

    #[test]
    fn value_with_braces_is_not_expanded_again() {
        let value = |name: &str| if name == "prompt" { "{model}" } else { "m" };
        assert_eq!(expand_argument("say {prompt} to {model}", value), "say {model} to m");
        assert_eq!(expand_argument("{\"x\": 1}", value), "{\"x\": 1}");
    }
}
