//! How many colors the terminal shows, from its environment.

/// How many colors the terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ColorDepth {
    TrueColor,
    Indexed256,
    #[default]
    Ansi16,
    None,
}

impl ColorDepth {
    /// Reads `NO_COLOR`, `COLORTERM` and `TERM` through `env`.
    pub(crate) fn detect(env: impl Fn(&str) -> Option<String>) -> ColorDepth {
        let term = env("TERM").unwrap_or_default();
        if env("NO_COLOR").is_some_and(|it| !it.is_empty()) || term == "dumb" {
            return ColorDepth::None;
        }
        let color_term = env("COLORTERM").unwrap_or_default();
        if matches!(color_term.as_str(), "truecolor" | "24bit") || term.ends_with("-direct") {
            return ColorDepth::TrueColor;
        }
        if term.contains("256color") { ColorDepth::Indexed256 } else { ColorDepth::Ansi16 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(variables: &[(&str, &str)]) -> ColorDepth {
        ColorDepth::detect(|name| {
            variables.iter().find(|it| it.0 == name).map(|it| it.1.to_owned())
        })
    }

    #[test]
    fn depth_follows_the_environment() {
        use ColorDepth::{Ansi16, Indexed256, None, TrueColor};
        let cases: [(&[(&str, &str)], ColorDepth); 9] = [
            (&[], Ansi16),
            (&[("TERM", "xterm")], Ansi16),
            (&[("TERM", "screen-256color")], Indexed256),
            (&[("TERM", "xterm-direct")], TrueColor),
            (&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")], TrueColor),
            (&[("TERM", "tmux-256color"), ("COLORTERM", "24bit")], TrueColor),
            (&[("TERM", "dumb"), ("COLORTERM", "truecolor")], None),
            (&[("TERM", "xterm-256color"), ("NO_COLOR", "1")], None),
            (&[("TERM", "xterm-256color"), ("NO_COLOR", "")], Indexed256),
        ];
        for (variables, expected) in cases {
            assert_eq!(detect(variables), expected, "{variables:?}");
        }
    }
}
