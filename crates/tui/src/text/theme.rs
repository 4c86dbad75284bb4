//! The styles of the interface. Each can be told apart without color, by its modifiers or by a symbol that is drawn
//! beside it.

use super::{
    ColorDepth, SyntaxLoading,
    palette::{
        BLUE, CYAN, ColorShades, GRAY, GREEN, MAGENTA, RED, TerminalBackground, YELLOW,
        diff_backgrounds,
    },
};
use ratatui::style::{Color, Modifier, Style};

/// The style of each part of the interface.
#[derive(Debug, Clone)]
pub(crate) struct ViewTheme {
    pub(crate) depth: ColorDepth,
    pub(crate) text: Style,
    pub(crate) dim: Style,
    pub(crate) strong: Style,
    pub(crate) accent: Style,
    /// A session or request that waits for the user.
    pub(crate) needs_user: Style,
    pub(crate) working: Style,
    pub(crate) success: Style,
    pub(crate) warning: Style,
    pub(crate) error: Style,
    pub(crate) added: Style,
    pub(crate) removed: Style,
    pub(crate) code: Style,
    pub(crate) link: Style,
    pub(crate) selected: Style,
    pub(crate) border: Style,
    pub(crate) heading: Style,
    pub(crate) syntax: SyntaxStyles,
    /// The backgrounds of added and removed lines, if the background of the terminal is known.
    pub(crate) diff_backgrounds: Option<(Color, Color)>,
    /// `None` if syntaxes are loaded at once.
    pub(crate) syntax_loading: Option<SyntaxLoading>,
}

/// The styles of code. What has no style of its own is drawn as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SyntaxStyles {
    pub(crate) comment: Style,
    pub(crate) string: Style,
    pub(crate) constant: Style,
    pub(crate) keyword: Style,
    pub(crate) function: Style,
    pub(crate) type_name: Style,
    pub(crate) tag: Style,
}

impl ViewTheme {
    #[cfg(test)]
    /// Styles that are readable on any background.
    pub(crate) fn new(depth: ColorDepth) -> ViewTheme {
        ViewTheme::on_background(depth, TerminalBackground::Unknown)
    }

    pub(crate) fn on_background(depth: ColorDepth, background: TerminalBackground) -> ViewTheme {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        let color =
            |shades: &ColorShades| shades.pick(depth, background).map_or(plain, |it| plain.fg(it));
        let dim = match depth {
            // Terminals make dim text too faint, if they can show a gray instead.
            ColorDepth::TrueColor | ColorDepth::Indexed256 => color(&GRAY),
            ColorDepth::Ansi16 | ColorDepth::None => plain.add_modifier(Modifier::DIM),
        };
        ViewTheme {
            depth,
            text: plain,
            dim,
            strong: bold,
            accent: if depth == ColorDepth::None { bold } else { color(&CYAN) },
            needs_user: color(&YELLOW).add_modifier(Modifier::BOLD),
            working: color(&BLUE),
            success: color(&GREEN),
            warning: color(&YELLOW),
            error: color(&RED).add_modifier(Modifier::BOLD),
            added: if depth == ColorDepth::None { bold } else { color(&GREEN) },
            removed: if depth == ColorDepth::None { dim } else { color(&RED) },
            code: color(&MAGENTA),
            link: color(&BLUE).add_modifier(Modifier::UNDERLINED),
            selected: plain.add_modifier(Modifier::REVERSED),
            border: dim,
            heading: color(&CYAN).add_modifier(Modifier::BOLD),
            syntax: SyntaxStyles {
                comment: dim.add_modifier(Modifier::ITALIC),
                string: color(&GREEN),
                constant: color(&YELLOW),
                keyword: if depth == ColorDepth::None { bold } else { color(&MAGENTA) },
                function: color(&BLUE),
                type_name: color(&CYAN),
                tag: color(&RED),
            },
            diff_backgrounds: diff_backgrounds(depth, background),
            syntax_loading: None,
        }
    }

    /// Whether differences between parts must be visible by their text alone.
    pub(crate) fn has_color(&self) -> bool {
        self.depth != ColorDepth::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn styles(theme: &ViewTheme) -> Vec<Style> {
        let syntax = theme.syntax;
        vec![
            theme.text,
            theme.dim,
            theme.strong,
            theme.accent,
            theme.needs_user,
            theme.working,
            theme.success,
            theme.warning,
            theme.error,
            theme.added,
            theme.removed,
            theme.code,
            theme.link,
            theme.selected,
            theme.border,
            theme.heading,
            syntax.comment,
            syntax.string,
            syntax.constant,
            syntax.keyword,
            syntax.function,
            syntax.type_name,
            syntax.tag,
        ]
    }

    #[test]
    fn theme_uses_only_the_colors_of_its_depth() {
        use TerminalBackground::{Dark, Light, Unknown};
        for background in [Unknown, Dark, Light] {
            for depth in [
                ColorDepth::TrueColor,
                ColorDepth::Indexed256,
                ColorDepth::Ansi16,
                ColorDepth::None,
            ] {
                let theme = ViewTheme::on_background(depth, background);
                for color in styles(&theme).iter().filter_map(|it| it.fg) {
                    let is_allowed = match depth {
                        ColorDepth::TrueColor => matches!(color, Color::Rgb(..)),
                        ColorDepth::Indexed256 => matches!(color, Color::Indexed(_)),
                        ColorDepth::Ansi16 => !matches!(color, Color::Rgb(..) | Color::Indexed(_)),
                        ColorDepth::None => false,
                    };
                    assert!(is_allowed, "{color:?} {depth:?}");
                }
                assert_eq!(styles(&theme).iter().find_map(|it| it.bg), None);
            }
        }
    }

    #[test]
    fn important_styles_differ_from_text_without_color() {
        let theme = ViewTheme::new(ColorDepth::None);
        for style in
            [theme.needs_user, theme.error, theme.added, theme.removed, theme.link, theme.selected]
        {
            assert_ne!(style, theme.text);
        }
        assert_ne!(theme.added, theme.removed);
    }
}
