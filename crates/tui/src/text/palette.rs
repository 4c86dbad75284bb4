//! The colors of the interface for each color depth and background of the terminal.

use super::ColorDepth;
use ratatui::style::Color;

/// The background of the terminal, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum TerminalBackground {
    #[default]
    Unknown,
    Dark,
    Light,
}

impl TerminalBackground {
    /// Reads `COLORFGBG`, which some terminals set: the last number is the background.
    pub(crate) fn detect(env: impl Fn(&str) -> Option<String>) -> TerminalBackground {
        let value = env("COLORFGBG").unwrap_or_default();
        match value.rsplit(';').next().and_then(|it| it.parse::<u8>().ok()) {
            Some(0..=6 | 8) => TerminalBackground::Dark,
            Some(7 | 9..=15) => TerminalBackground::Light,
            _ => TerminalBackground::Unknown,
        }
    }
}

/// A color as the terminal names it, and three shades: readable on any background, on a dark one, on a light one.
pub(super) struct ColorShades {
    pub(super) ansi: Color,
    indexed: [u8; 3],
    rgb: [u32; 3],
}

impl ColorShades {
    const fn new(ansi: Color, indexed: [u8; 3], rgb: [u32; 3]) -> ColorShades {
        ColorShades { ansi, indexed, rgb }
    }

    /// `None` in a terminal without colors.
    pub(super) fn pick(&self, depth: ColorDepth, background: TerminalBackground) -> Option<Color> {
        let shade = match background {
            TerminalBackground::Unknown => 0,
            TerminalBackground::Dark => 1,
            TerminalBackground::Light => 2,
        };
        match depth {
            ColorDepth::TrueColor => Some(Color::from_u32(self.rgb[shade])),
            ColorDepth::Indexed256 => Some(Color::Indexed(self.indexed[shade])),
            ColorDepth::Ansi16 => Some(self.ansi),
            ColorDepth::None => None,
        }
    }
}

pub(super) const CYAN: ColorShades =
    ColorShades::new(Color::Cyan, [30, 74, 24], [0x15_80_95, 0x4b_bc_d2, 0x0e_6d_80]);
pub(super) const GREEN: ColorShades =
    ColorShades::new(Color::Green, [28, 77, 22], [0x13_88_27, 0x32_c7_4b, 0x0d_73_1e]);
pub(super) const YELLOW: ColorShades =
    ColorShades::new(Color::Yellow, [130, 179, 94], [0x9d_6c_08, 0xd3_a7_4e, 0x83_5c_0f]);
pub(super) const RED: ColorShades =
    ColorShades::new(Color::Red, [161, 174, 124], [0xe0_2d_27, 0xe5_9a_97, 0xc3_1b_17]);
pub(super) const MAGENTA: ColorShades =
    ColorShades::new(Color::Magenta, [164, 176, 127], [0xc0_24_e0, 0xd8_96_e5, 0xa5_16_c2]);
/// The blue of sixteen colors is hard to read on black.
pub(super) const BLUE: ColorShades =
    ColorShades::new(Color::Cyan, [27, 110, 26], [0x24_72_e0, 0x8c_b0_e2, 0x16_5f_c6]);
pub(super) const GRAY: ColorShades =
    ColorShades::new(Color::Reset, [243, 246, 241], [0x75_75_75, 0x95_95_95, 0x63_63_63]);

/// The backgrounds of added and removed lines. A background of an unknown terminal cannot be tinted.
pub(super) fn diff_backgrounds(
    depth: ColorDepth,
    background: TerminalBackground,
) -> Option<(Color, Color)> {
    use TerminalBackground::{Dark, Light};
    match (depth, background) {
        (ColorDepth::TrueColor, Dark) => Some((rgb(0x12_2b_1c), rgb(0x3a_1a_1e))),
        (ColorDepth::TrueColor, Light) => Some((rgb(0xe3_fb_e8), rgb(0xff_ee_ec))),
        (ColorDepth::Indexed256, Light) => Some((Color::Indexed(194), Color::Indexed(224))),
        _ => None,
    }
}

fn rgb(value: u32) -> Color {
    Color::from_u32(value)
}

#[cfg(test)]
mod tests {
    use super::{super::color::contrast, *};

    const ALL: [ColorShades; 7] = [CYAN, GREEN, YELLOW, RED, MAGENTA, BLUE, GRAY];
    const BLACK: Color = Color::Rgb(0, 0, 0);
    const WHITE: Color = Color::Rgb(255, 255, 255);
    /// Popular backgrounds: One Dark, Solarized Light.
    const DARK_GRAY: Color = Color::Rgb(0x28, 0x2c, 0x34);
    const CREAM: Color = Color::Rgb(0xfd, 0xf6, 0xe3);

    #[test]
    fn colors_are_readable_on_their_backgrounds() {
        use TerminalBackground::{Dark, Light, Unknown};
        for depth in [ColorDepth::TrueColor, ColorDepth::Indexed256] {
            for shades in &ALL {
                for (background, drawn_on, contrast_min) in [
                    (Unknown, BLACK, 4.0),
                    (Unknown, WHITE, 4.0),
                    (Dark, BLACK, 4.5),
                    (Dark, DARK_GRAY, 4.5),
                    (Light, WHITE, 4.5),
                    (Light, CREAM, 4.5),
                ] {
                    let color = shades.pick(depth, background).unwrap();
                    let contrast = contrast(color, drawn_on);
                    assert!(contrast >= contrast_min, "{color:?} on {drawn_on:?}: {contrast}");
                }
            }
        }
    }

    #[test]
    fn code_is_readable_on_the_backgrounds_of_a_diff() {
        use TerminalBackground::{Dark, Light};
        for depth in [ColorDepth::TrueColor, ColorDepth::Indexed256] {
            for background in [Dark, Light] {
                let Some((added, removed)) = diff_backgrounds(depth, background) else { continue };
                for color in ALL.iter().filter_map(|it| it.pick(depth, background)) {
                    for drawn_on in [added, removed] {
                        let contrast = contrast(color, drawn_on);
                        assert!(contrast >= 4.3, "{color:?} on {drawn_on:?}: {contrast}");
                    }
                }
            }
        }
    }

    #[test]
    fn background_is_read_from_the_environment() {
        use TerminalBackground::{Dark, Light, Unknown};
        for (value, expected) in [
            (Some("15;0"), Dark),
            (Some("0;default;15"), Light),
            (Some("0;7"), Light),
            (Some("7;8"), Dark),
            (Some("default"), Unknown),
            (None, Unknown),
        ] {
            let found = TerminalBackground::detect(|_| value.map(str::to_owned));
            assert_eq!(found, expected, "{value:?}");
        }
    }
}
