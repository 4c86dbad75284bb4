//! Times, durations, costs, counts and paths as short text.

use super::{cell_width, sanitize_line};
use jackfield_views::UsageCost;
use unicode_segmentation::UnicodeSegmentation as _;

/// `now`, `42s`, `4m`, `2h`, `3d`.
pub(crate) fn format_age(ms: u64) -> String {
    jackfield_protocol::format_age(ms / 1_000)
}

/// `320 ms`, `4.2 s`, `3 min 12 s`, `2 h 5 min`.
pub(crate) fn format_duration(ms: u64) -> String {
    if ms < 1_000 {
        return format!("{ms} ms");
    }
    let tenths = ms.saturating_add(50) / 100;
    if tenths < 600 {
        return format!("{}.{} s", tenths / 10, tenths % 10);
    }
    let seconds = ms.saturating_add(500) / 1_000;
    if seconds < 3_600 {
        return join_units(seconds / 60, "min", seconds % 60, "s");
    }
    let minutes = (seconds + 30) / 60;
    join_units(minutes / 60, "h", minutes % 60, "min")
}

fn join_units(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    if small == 0 {
        return format!("{large} {large_unit}");
    }
    format!("{large} {large_unit} {small} {small_unit}")
}

/// `0.0421 USD`, `12.50 USD`: an amount below one has four digits, because cents are too coarse for one turn.
pub(crate) fn format_cost(cost: &UsageCost) -> String {
    let mut amount = format!("{:.*}", if cost.amount.abs() < 1.0 { 4 } else { 2 }, cost.amount);
    let digits = amount.find('.').map_or(0, |it| amount.len() - it - 1);
    for _ in 2..digits {
        if amount.ends_with('0') {
            amount.pop();
        }
    }
    let currency: String = sanitize_line(&cost.currency).chars().take(8).collect();
    format!("{amount} {currency}")
}

/// `950`, `1.2k`, `34k`, `1.5M`.
pub(crate) fn format_tokens(count: u64) -> String {
    if count < 1_000 {
        return count.to_string();
    }
    let (mut unit, mut suffix) = (1_000, "k");
    for (next, next_suffix) in [(1_000_000, "M"), (1_000_000_000, "B")] {
        // 999,950 is 1M, not 1000k.
        if count >= next - next / 2_000 {
            (unit, suffix) = (next, next_suffix);
        }
    }
    let tenths = count.saturating_add(unit / 20) / (unit / 10);
    match (tenths / 10, tenths % 10) {
        (whole, 1..) if whole < 10 => format!("{whole}.{}{suffix}", tenths % 10),
        _ => format!("{}{suffix}", count.saturating_add(unit / 2) / unit),
    }
}

/// A path with `~` for the home directory. A path that is too long loses directories in the middle: `~/…/src/main.rs`.
pub(crate) fn shorten_path(path: &str, home: &str, width: usize) -> String {
    let path = sanitize_line(path).into_owned();
    let home = home.trim_end_matches('/');
    let path = match path.strip_prefix(home) {
        Some(rest) if !home.is_empty() && (rest.is_empty() || rest.starts_with('/')) => {
            format!("~{rest}")
        }
        _ => path,
    };
    if cell_width(&path) <= width {
        return path;
    }
    let start = if path.starts_with("~/") { "~/…" } else { "…" };
    // The longest end that starts with a slash and fits, without the first slash.
    let end = &path[suffix_start(&path, width.saturating_sub(cell_width(start)))..];
    if let Some(index) = end.find('/').filter(|&it| it + 1 < end.len()) {
        return format!("{start}{}", &end[index..]);
    }
    let name = path.rsplit('/').find(|it| !it.is_empty()).unwrap_or(&path);
    truncate_start(name, width)
}

/// The end of a text that fits into `width` cells, after `…` if something is missing.
fn truncate_start(text: &str, width: usize) -> String {
    if cell_width(text) <= width {
        return text.to_owned();
    }
    let Some(free) = width.checked_sub(1) else { return String::new() };
    format!("…{}", &text[suffix_start(text, free)..])
}

/// Where the longest end of `text` starts that fits into `width` cells.
fn suffix_start(text: &str, width: usize) -> usize {
    let mut filled = 0;
    let mut start = text.len();
    for (index, cluster) in text.grapheme_indices(true).rev() {
        filled += cell_width(cluster);
        if filled > width {
            break;
        }
        start = index;
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_one_unit() {
        for (seconds, expected) in
            [(0, "now"), (9, "now"), (42, "42s"), (240, "4m"), (7_300, "2h"), (260_000, "3d")]
        {
            assert_eq!(format_age(seconds * 1_000), expected);
        }
    }

    #[test]
    fn durations_have_two_units() {
        for (ms, expected) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1.0 s"),
            (4_230, "4.2 s"),
            (59_949, "59.9 s"),
            (59_950, "1 min"),
            (192_000, "3 min 12 s"),
            (3_600_000, "1 h"),
            (7_500_000, "2 h 5 min"),
        ] {
            assert_eq!(format_duration(ms), expected);
        }
    }

    #[test]
    fn costs_below_one_have_four_digits() {
        for (amount, expected) in [
            (0.0, "0.00 USD"),
            (0.042_13, "0.0421 USD"),
            (0.5, "0.50 USD"),
            (0.125, "0.125 USD"),
            (12.5, "12.50 USD"),
            (1_234.567, "1234.57 USD"),
        ] {
            let cost = UsageCost { amount, currency: "USD".to_owned() };
            assert_eq!(format_cost(&cost), expected);
        }
        let hostile = UsageCost { amount: 1.0, currency: "\u{1b}[31mVERY LONG NAME".to_owned() };
        assert_eq!(format_cost(&hostile), "1.00 VERY LON");
    }

    #[test]
    fn tokens_have_at_most_three_digits() {
        for (count, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1k"),
            (1_249, "1.2k"),
            (9_940, "9.9k"),
            (9_960, "10k"),
            (34_400, "34k"),
            (999_400, "999k"),
            (999_600, "1M"),
            (1_500_000, "1.5M"),
            (2_000_000_000, "2B"),
        ] {
            assert_eq!(format_tokens(count), expected);
        }
    }

    #[test]
    fn paths_lose_directories_in_the_middle() {
        let path = "/srv/user/project/crates/tui/src/main.rs";
        for (home, width, expected) in [
            ("/srv/user", 40, "~/project/crates/tui/src/main.rs"),
            ("/srv/user/", 40, "~/project/crates/tui/src/main.rs"),
            ("/srv/us", 40, path),
            ("", 40, path),
            ("/srv/user", 25, "~/…/tui/src/main.rs"),
            ("/srv/user", 16, "~/…/src/main.rs"),
            ("", 16, "…/src/main.rs"),
            ("", 7, "main.rs"),
            ("", 5, "…n.rs"),
            ("", 0, ""),
        ] {
            assert_eq!(shorten_path(path, home, width), expected, "{home} {width}");
        }
        assert_eq!(shorten_path("/srv/user", "/srv/user", 20), "~");
        assert_eq!(shorten_path("/a\u{1b}[2J\nb", "", 20), "/a b");
    }
}
