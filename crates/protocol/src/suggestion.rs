//! Suggests a known name for a misspelled one.

/// The known name with the smallest edit distance to `name`, if it is close enough to be meant. Of
/// several equally close ones the first is returned.
pub fn find_similar_name<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let name = name.to_lowercase();
    // A short name may differ in one character, a longer one in a third of them.
    let distance_max = (name.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|it| (edit_distance(&name, &it.to_lowercase()), it))
        .filter(|(distance, it)| *distance <= distance_max && *distance < it.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, it)| it)
}

/// ``; did you mean `NAME`?``, or nothing if no known name is similar. For the end of an error
/// message.
pub fn suggest_name<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    find_similar_name(name, known).map(|it| format!("; did you mean `{it}`?")).unwrap_or_default()
}

/// The number of characters to insert, remove or replace, and of neighbors to swap.
fn edit_distance(one: &str, other: &str) -> usize {
    let one: Vec<char> = one.chars().collect();
    let other: Vec<char> = other.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for row in 1..=one.len() {
        let mut current = vec![row];
        for column in 1..=other.len() {
            let is_different = usize::from(one[row - 1] != other[column - 1]);
            let mut distance = (last[column - 1] + is_different)
                .min(last[column] + 1)
                .min(current[column - 1] + 1);
            let is_swapped = 1 < row
                && 1 < column
                && one[row - 1] == other[column - 2]
                && one[row - 2] == other[column - 1];
            if is_swapped {
                distance = distance.min(before[column - 2] + 1);
            }
            current.push(distance);
        }
        before = std::mem::replace(&mut last, current);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 6] = ["amp", "claude", "codex", "gemini", "opencode", "pi"];

    #[test]
    fn swapped_missing_added_and_wrong_characters_are_recognized() {
        let cases = [
            ("cluade", "claude"),
            ("claud", "claude"),
            ("codexx", "codex"),
            ("gemmini", "gemini"),
            ("Gemini", "gemini"),
            ("opncod", "opencode"),
            ("amo", "amp"),
        ];
        for (wrong, meant) in cases {
            assert_eq!(find_similar_name(wrong, NAMES), Some(meant), "{wrong}");
        }
        assert_eq!(suggest_name("cluade", NAMES), "; did you mean `claude`?");
    }

    #[test]
    fn unrelated_name_has_no_suggestion() {
        for unrelated in ["", "x", "nobody", "cursor", "claude-opus-4-5"] {
            assert_eq!(find_similar_name(unrelated, NAMES), None, "{unrelated}");
        }
        assert_eq!(suggest_name("nobody", NAMES), "");
    }
}
