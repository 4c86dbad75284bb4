//! Line diffs of edits. Agents send the text before and after an edit, often of the whole file; unchanged
//! lines are left out, except for some context around each change.

const CONTEXT_LINES: usize = 3;
/// The product of both line counts above which all lines count as replaced.
const COMPARISONS_MAX: usize = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineChange {
    Unchanged,
    Removed,
    Added,
}

/// Renders a diff; `old` is `None` for a new file.
pub fn render_diff(path: &str, old: Option<&str>, new: &str) -> String {
    let lines = compare_lines(
        &old.unwrap_or_default().lines().collect::<Vec<_>>(),
        &new.lines().collect::<Vec<_>>(),
    );
    let mut rendered = match old {
        Some(_) => format!("--- {path}\n+++ {path}\n"),
        None => format!("--- /dev/null\n+++ {path}\n"),
    };
    let is_near_change = |index: usize| {
        let from = index.saturating_sub(CONTEXT_LINES);
        let to = lines.len().min(index + CONTEXT_LINES + 1);
        lines[from..to].iter().any(|it| it.0 != LineChange::Unchanged)
    };
    let mut gap = false;
    for (index, (change, line)) in lines.iter().enumerate() {
        if !is_near_change(index) {
            gap = true;
            continue;
        }
        if std::mem::take(&mut gap) {
            rendered.push_str("@@\n");
        }
        rendered.push(match change {
            LineChange::Unchanged => ' ',
            LineChange::Removed => '-',
            LineChange::Added => '+',
        });
        rendered.push_str(line);
        rendered.push('\n');
    }
    rendered
}

/// The lines of both texts in order, each with its change.
fn compare_lines<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(LineChange, &'a str)> {
    let begin = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[begin..], &new[begin..]);
    let both = old_rest.iter().rev().zip(new_rest.iter().rev());
    let end = both.take_while(|(old, new)| old == new).count();
    let (old_middle, common_end) = old_rest.split_at(old_rest.len() - end);
    let new_middle = &new_rest[..new_rest.len() - end];
    let unchanged = |it: &&'a str| (LineChange::Unchanged, *it);
    let mut lines: Vec<_> = old[..begin].iter().map(unchanged).collect();
    lines.extend(compare_middle(old_middle, new_middle));
    lines.extend(common_end.iter().map(unchanged));
    lines
}

/// Compares the lines between the common start and end by their longest common subsequence.
fn compare_middle<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(LineChange, &'a str)> {
    let replaced = || {
        let removed = old.iter().map(|it| (LineChange::Removed, *it));
        removed.chain(new.iter().map(|it| (LineChange::Added, *it))).collect()
    };
    if old.is_empty() || new.is_empty() || COMPARISONS_MAX / old.len() < new.len() {
        return replaced();
    }
    // The length of that subsequence from each pair of lines on.
    let width = new.len() + 1;
    let mut common = vec![0u32; (old.len() + 1) * width];
    for (i, old_line) in old.iter().enumerate().rev() {
        for (j, new_line) in new.iter().enumerate().rev() {
            common[i * width + j] = if old_line == new_line {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push((LineChange::Unchanged, old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len()
            || i < old.len() && common[i * width + j + 1] <= common[(i + 1) * width + j]
        {
            lines.push((LineChange::Removed, old[i]));
            i += 1;
        } else {
            lines.push((LineChange::Added, new[j]));
            j += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn changed_lines_are_rendered_with_context() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n";
        let new = old.replace("4\n5\n", "four\n5\n").replace("13\n", "");
        let expected =
            "--- a\n+++ a\n 1\n 2\n 3\n-4\n+four\n 5\n 6\n 7\n@@\n 10\n 11\n 12\n-13\n 14\n";
        assert_eq!(render_diff("a", Some(old), &new), expected);
        assert_eq!(render_diff("a", None, "x\n"), "--- /dev/null\n+++ a\n+x\n");
        assert_eq!(render_diff("a", Some("x"), "x"), "--- a\n+++ a\n");
    }

    #[test]
    fn text_too_long_to_compare_is_replaced() {
        let (old, new) = ("a\n".repeat(1_100), "b\n".repeat(1_100));
        assert_eq!(render_diff("a", Some(&old), &new).lines().count(), 2_202);
    }

    proptest! {
        #[test]
        fn both_texts_can_be_read_from_the_diff(
            old in proptest::collection::vec("[abc]", 0..12),
            new in proptest::collection::vec("[abc]", 0..12),
        ) {
            let (old, new): (Vec<&str>, Vec<&str>) =
                (old.iter().map(String::as_str).collect(), new.iter().map(String::as_str).collect());
            let lines = compare_lines(&old, &new);
            let without = |change: LineChange| -> Vec<&str> {
                lines.iter().filter(|it| it.0 != change).map(|it| it.1).collect()
            };
            prop_assert_eq!(without(LineChange::Added), old);
            prop_assert_eq!(without(LineChange::Removed), new);
        }
    }
}
