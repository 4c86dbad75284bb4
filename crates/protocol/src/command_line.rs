//! A program and its arguments as one line for people, who may paste it into a shell.

/// The words with quotes where a shell needs them, so that `a b` and `a`, `b` look different.
pub fn quote_argv<S: AsRef<str>>(argv: impl IntoIterator<Item = S>) -> String {
    argv.into_iter().map(|it| quote_word(it.as_ref())).collect::<Vec<_>>().join(" ")
}

fn quote_word(word: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "_-./=:,+@%".contains(it);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_without_special_characters_stay_as_they_are() {
        assert_eq!(
            quote_argv(["git", "-C", "/srv/a-b", "log", "--format=%H"]),
            "git -C /srv/a-b log --format=%H"
        );
    }

    #[test]
    fn words_that_a_shell_would_change_are_quoted() {
        assert_eq!(quote_argv(["rm", "a b", "", "ü"]), "rm 'a b' '' 'ü'");
        assert_eq!(quote_argv(["/c/O'Neil/x", "$HOME"]), r"'/c/O'\''Neil/x' '$HOME'");
    }
}
