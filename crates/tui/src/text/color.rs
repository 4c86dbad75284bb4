//! Colors of foreign output, reduced to what the terminal has.

use super::ColorDepth;
use ratatui::style::Color;

/// The sixteen colors of xterm. Other terminals differ, but not much.
const ANSI: [(u8, u8, u8); 16] = [
    (0, 0, 0),
    (205, 0, 0),
    (0, 205, 0),
    (205, 205, 0),
    (0, 0, 238),
    (205, 0, 205),
    (0, 205, 205),
    (229, 229, 229),
    (127, 127, 127),
    (255, 0, 0),
    (0, 255, 0),
    (255, 255, 0),
    (92, 92, 255),
    (255, 0, 255),
    (0, 255, 255),
    (255, 255, 255),
];

const NAMES: [Color; 16] = [
    Color::Black,
    Color::Red,
    Color::Green,
    Color::Yellow,
    Color::Blue,
    Color::Magenta,
    Color::Cyan,
    Color::Gray,
    Color::DarkGray,
    Color::LightRed,
    Color::LightGreen,
    Color::LightYellow,
    Color::LightBlue,
    Color::LightMagenta,
    Color::LightCyan,
    Color::White,
];

/// The color with this number in a palette of 256.
pub(super) fn palette_color(index: u8) -> Color {
    NAMES.get(usize::from(index)).copied().unwrap_or(Color::Indexed(index))
}

/// The nearest color that a terminal of this depth has; `Reset` if it has none.
pub(super) fn reduce_color(color: Color, depth: ColorDepth) -> Color {
    match (depth, color) {
        (ColorDepth::None, _) => Color::Reset,
        (ColorDepth::Indexed256, Color::Rgb(red, green, blue)) => {
            Color::Indexed(nearest_index(red, green, blue))
        }
        (ColorDepth::Ansi16, Color::Rgb(..) | Color::Indexed(_)) => {
            color_rgb(color).map_or(Color::Reset, nearest_name)
        }
        _ => color,
    }
}

/// The contrast of two colors by the rules of WCAG, 1 to 21.
pub(super) fn contrast(one: Color, other: Color) -> f64 {
    let one = luminance(color_rgb(one).unwrap_or_default()) + 0.05;
    let other = luminance(color_rgb(other).unwrap_or_default()) + 0.05;
    one.max(other) / one.min(other)
}

/// Whether text of this color disappears on a usual background: it is nearly black or nearly white.
pub(super) fn is_extreme(color: Color) -> bool {
    let Some(rgb) = color_rgb(color) else { return false };
    let luminance = luminance(rgb);
    !(0.015..=0.75).contains(&luminance) && {
        let (red, green, blue) = rgb;
        red.max(green).max(blue) - red.min(green).min(blue) < 60
    }
}

/// `None` for the default color of the terminal.
fn color_rgb(color: Color) -> Option<(u8, u8, u8)> {
    match color {
        Color::Rgb(red, green, blue) => Some((red, green, blue)),
        Color::Indexed(index @ 16..=231) => {
            let level = |it: u8| if it == 0 { 0 } else { 55 + 40 * it };
            let index = index - 16;
            Some((level(index / 36), level(index / 6 % 6), level(index % 6)))
        }
        Color::Indexed(index @ 232..) => {
            let level = 8 + 10 * (index - 232);
            Some((level, level, level))
        }
        Color::Indexed(index) => Some(ANSI[usize::from(index)]),
        _ => NAMES.iter().position(|&it| it == color).map(|it| ANSI[it]),
    }
}

fn luminance((red, green, blue): (u8, u8, u8)) -> f64 {
    let linear = |it: u8| {
        let it = f64::from(it) / 255.0;
        if it <= 0.04045 { it / 12.92 } else { ((it + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
}

/// The nearest color of the cube or the grays of 256 colors.
fn nearest_index(red: u8, green: u8, blue: u8) -> u8 {
    let level = |it: u8| match it {
        0..=47 => 0,
        48..=114 => 1,
        _ => (it - 35) / 40,
    };
    let cube = 16 + 36 * level(red) + 6 * level(green) + level(blue);
    let mean = (u16::from(red) + u16::from(green) + u16::from(blue)) / 3;
    let gray = 232 + u8::try_from((mean.saturating_sub(3) / 10).min(23)).unwrap_or(23);
    let distance = |index| rgb_distance(color_rgb(Color::Indexed(index)), (red, green, blue));
    if distance(gray) < distance(cube) { gray } else { cube }
}

/// The nearest of sixteen colors by hue: terminals differ in brightness.
fn nearest_name((red, green, blue): (u8, u8, u8)) -> Color {
    let high = red.max(green).max(blue);
    let low = red.min(green).min(blue);
    if high < 48 {
        return Color::Black;
    }
    if high - low < 32 {
        return match high {
            48..=150 => Color::DarkGray,
            151..=230 => Color::Gray,
            _ => Color::White,
        };
    }
    let is_strong = |it: u8| u16::from(it - low) * 2 > u16::from(high - low);
    let index = usize::from(is_strong(red))
        + 2 * usize::from(is_strong(green))
        + 4 * usize::from(is_strong(blue));
    NAMES[if high > 210 { index + 8 } else { index }]
}

fn rgb_distance(found: Option<(u8, u8, u8)>, (red, green, blue): (u8, u8, u8)) -> u32 {
    let found = found.unwrap_or_default();
    let square = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
    square(found.0, red) + square(found.1, green) + square(found.2, blue)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_are_reduced_to_the_depth() {
        let orange = Color::Rgb(255, 135, 0);
        for (color, depth, expected) in [
            (orange, ColorDepth::TrueColor, orange),
            (orange, ColorDepth::Indexed256, Color::Indexed(208)),
            (orange, ColorDepth::Ansi16, Color::LightYellow),
            (orange, ColorDepth::None, Color::Reset),
            (Color::Rgb(118, 118, 118), ColorDepth::Indexed256, Color::Indexed(243)),
            (Color::Rgb(0, 0, 0), ColorDepth::Indexed256, Color::Indexed(16)),
            (Color::Indexed(208), ColorDepth::Indexed256, Color::Indexed(208)),
            (Color::Indexed(22), ColorDepth::Ansi16, Color::Green),
            (Color::Indexed(240), ColorDepth::Ansi16, Color::DarkGray),
            (Color::Red, ColorDepth::Ansi16, Color::Red),
            (Color::Red, ColorDepth::None, Color::Reset),
        ] {
            assert_eq!(reduce_color(color, depth), expected, "{color:?} {depth:?}");
        }
    }

    #[test]
    fn every_reduced_color_exists_in_the_depth() {
        for index in 0..=255 {
            let color = palette_color(index);
            assert!(NAMES.contains(&reduce_color(color, ColorDepth::Ansi16)), "{index}");
            let Some((red, green, blue)) = color_rgb(Color::Indexed(index)) else { continue };
            let reduced = reduce_color(Color::Rgb(red, green, blue), ColorDepth::Indexed256);
            if index >= 16 {
                assert_eq!(color_rgb(reduced), Some((red, green, blue)), "{index}");
            }
        }
    }

    #[test]
    fn only_black_white_and_near_grays_are_extreme() {
        for color in [
            Color::Black,
            Color::White,
            Color::Gray,
            Color::Indexed(232),
            Color::Rgb(250, 250, 245),
        ] {
            assert!(is_extreme(color), "{color:?}");
        }
        for color in
            [Color::Reset, Color::Blue, Color::Yellow, Color::DarkGray, Color::Indexed(245)]
        {
            assert!(!is_extreme(color), "{color:?}");
        }
    }
}
