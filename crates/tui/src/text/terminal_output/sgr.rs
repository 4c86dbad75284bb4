//! Colors and styles of output (SGR), made readable in this terminal.

use crate::text::{
    ColorDepth,
    color::{contrast, is_extreme, palette_color, reduce_color},
};
use ratatui::style::{Color, Modifier, Style};

/// Text with less contrast to its background is hidden, by mistake or by intent.
const CONTRAST_MIN: f64 = 1.6;

/// The colors and styles that the output has set.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OutputStyle {
    foreground: Option<Color>,
    background: Option<Color>,
    modifiers: Modifier,
}

impl OutputStyle {
    /// Applies the parameters of a sequence: `1;31`, `38;5;208`, `38:2::255:0:0`.
    pub(super) fn apply(&mut self, parameters: &str) {
        let mut groups = parameters.split(';');
        while let Some(group) = groups.next() {
            let (code, rest) = group.split_once(':').unwrap_or((group, ""));
            match parse_number(code) {
                Some(code @ (38 | 48)) => {
                    let color = if rest.is_empty() {
                        parse_color(&mut groups)
                    } else {
                        parse_color(&mut rest.split(':').filter(|it| !it.is_empty()))
                    };
                    let place =
                        if code == 38 { &mut self.foreground } else { &mut self.background };
                    *place = color.or(*place);
                }
                Some(4) if rest == "0" => self.modifiers.remove(Modifier::UNDERLINED),
                Some(code) => self.apply_code(code),
                None => {}
            }
        }
    }

    fn apply_code(&mut self, code: u8) {
        match code {
            0 => *self = OutputStyle::default(),
            1 => self.modifiers.insert(Modifier::BOLD),
            2 => self.modifiers.insert(Modifier::DIM),
            3 => self.modifiers.insert(Modifier::ITALIC),
            4 | 21 => self.modifiers.insert(Modifier::UNDERLINED),
            7 => self.modifiers.insert(Modifier::REVERSED),
            9 => self.modifiers.insert(Modifier::CROSSED_OUT),
            22 => self.modifiers.remove(Modifier::BOLD | Modifier::DIM),
            23 => self.modifiers.remove(Modifier::ITALIC),
            24 => self.modifiers.remove(Modifier::UNDERLINED),
            27 => self.modifiers.remove(Modifier::REVERSED),
            29 => self.modifiers.remove(Modifier::CROSSED_OUT),
            30..=37 => self.foreground = Some(palette_color(code - 30)),
            39 => self.foreground = None,
            40..=47 => self.background = Some(palette_color(code - 40)),
            49 => self.background = None,
            90..=97 => self.foreground = Some(palette_color(code - 82)),
            100..=107 => self.background = Some(palette_color(code - 92)),
            // Among them the ones that blink or hide text.
            _ => {}
        }
    }

    /// The style in a terminal with these colors. Text never has the color of its background.
    pub(super) fn to_style(self, depth: ColorDepth) -> Style {
        let style = Style::new().add_modifier(self.modifiers);
        if depth == ColorDepth::None {
            return style;
        }
        let reduce = |it: Color| reduce_color(it, depth);
        match (self.foreground.map(reduce), self.background.map(reduce)) {
            (None, None) => style,
            (Some(color), None) if is_extreme(color) => style,
            (Some(color), None) => style.fg(color),
            (Some(color), Some(background)) if contrast(color, background) >= CONTRAST_MIN => {
                style.fg(color).bg(background)
            }
            (_, Some(background)) => {
                let is_light =
                    contrast(background, Color::Black) > contrast(background, Color::White);
                style.fg(if is_light { Color::Black } else { Color::White }).bg(background)
            }
        }
    }
}

/// An empty parameter is 0.
fn parse_number(text: &str) -> Option<u8> {
    if text.is_empty() { Some(0) } else { text.parse().ok() }
}

/// The parameters after 38 or 48: `5;n` or `2;r;g;b`.
fn parse_color<'a>(parameters: &mut impl Iterator<Item = &'a str>) -> Option<Color> {
    let mut next = || parameters.next().and_then(parse_number);
    match next()? {
        5 => Some(palette_color(next()?)),
        2 => {
            let (red, green, blue) = (next(), next(), next());
            Some(Color::Rgb(red?, green?, blue?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(parameters: &[&str], depth: ColorDepth) -> Style {
        let mut style = OutputStyle::default();
        for it in parameters {
            style.apply(it);
        }
        style.to_style(depth)
    }

    #[test]
    fn parameters_become_styles() {
        let plain = Style::new();
        let orange = Color::Rgb(255, 135, 0);
        for (parameters, expected) in [
            (&["1;31"][..], plain.fg(Color::Red).add_modifier(Modifier::BOLD)),
            (
                &["1;2;3;4;7;9"],
                plain.add_modifier(
                    Modifier::BOLD
                        | Modifier::DIM
                        | Modifier::ITALIC
                        | Modifier::UNDERLINED
                        | Modifier::REVERSED
                        | Modifier::CROSSED_OUT,
                ),
            ),
            (&["1;31", "22;39"], plain),
            (&["1;31", ""], plain),
            (&["94"], plain.fg(Color::LightBlue)),
            (&["38;5;208"], plain.fg(Color::Indexed(208))),
            (&["38;5;9"], plain.fg(Color::LightRed)),
            (&["38;2;255;135;0"], plain.fg(orange)),
            (&["38:2::255:135:0"], plain.fg(orange)),
            (&["38:2:255:135:0;1"], plain.fg(orange).add_modifier(Modifier::BOLD)),
            (&["4:3"], plain.add_modifier(Modifier::UNDERLINED)),
            (&["4", "4:0"], plain),
            (&["38;5;9999"], plain),
            (&["38;2;999;-1;1"], plain),
            (&["5;6;8"], plain),
            (&["9999999999;?25"], plain),
        ] {
            assert_eq!(style(parameters, ColorDepth::TrueColor), expected, "{parameters:?}");
        }
    }

    #[test]
    fn text_is_never_hidden_by_its_colors() {
        let plain = Style::new();
        for (parameters, expected) in [
            ("8", plain),
            ("30", plain),
            ("97", plain),
            ("38;2;10;10;10", plain),
            ("30;40", plain.fg(Color::White).bg(Color::Black)),
            ("47", plain.fg(Color::Black).bg(Color::Gray)),
            ("38;2;1;1;1;48;2;2;2;2", plain.fg(Color::White).bg(Color::Rgb(2, 2, 2))),
            ("97;41", plain.fg(Color::White).bg(Color::Red)),
        ] {
            assert_eq!(style(&[parameters], ColorDepth::TrueColor), expected, "{parameters}");
        }
    }

    #[test]
    fn styles_without_color_remain() {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        assert_eq!(style(&["1;31;42"], ColorDepth::None), bold);
    }
}
