//! What an edit changed, as lines with a plus or a minus. Agents send the text before and after,
//! often of the whole file; what did not change is left out, save for a little around it.

const CONTEXT_LINES: usize = 3;
/// More than this is not compared line by line: all of it was replaced.
const COMPARED_MAX: usize = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Kept,
    Removed,
    Added,
}

/// `old` is nothing where there was no file.
pub(super) fn diff(path: &str, old: Option<&str>, new: &str) -> String {
    let lines = changes(
        &old.unwrap_or_default().lines().collect::<Vec<_>>(),
        &new.lines().collect::<Vec<_>>(),
    );
    let mut shown = match old {
        Some(_) => format!("--- {path}\n+++ {path}\n"),
        None => format!("--- /dev/null\n+++ {path}\n"),
    };
    let is_near = |at: usize| {
        let from = at.saturating_sub(CONTEXT_LINES);
        let to = lines.len().min(at + CONTEXT_LINES + 1);
        lines[from..to].iter().any(|it| it.0 != Change::Kept)
    };
    let mut gap = false;
    for (at, (change, line)) in lines.iter().enumerate() {
        if !is_near(at) {
            gap = true;
            continue;
        }
        if std::mem::take(&mut gap) {
            shown.push_str("@@\n");
        }
        shown.push(match change {
            Change::Kept => ' ',
            Change::Removed => '-',
            Change::Added => '+',
        });
        shown.push_str(line);
        shown.push('\n');
    }
    shown
}

/// The lines of both texts, in order.
fn changes<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(Change, &'a str)> {
    let begin = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[begin..], &new[begin..]);
    let both = old_rest.iter().rev().zip(new_rest.iter().rev());
    let end = both.take_while(|(old, new)| old == new).count();
    let (old_middle, kept) = old_rest.split_at(old_rest.len() - end);
    let new_middle = &new_rest[..new_rest.len() - end];
    let keep = |it: &&'a str| (Change::Kept, *it);
    let mut lines: Vec<_> = old[..begin].iter().map(keep).collect();
    lines.extend(middle(old_middle, new_middle));
    lines.extend(kept.iter().map(keep));
    lines
}

/// What differs, by the longest sequence of lines that both have.
fn middle<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(Change, &'a str)> {
    let replaced = || {
        let removed = old.iter().map(|it| (Change::Removed, *it));
        removed.chain(new.iter().map(|it| (Change::Added, *it))).collect()
    };
    if old.is_empty() || new.is_empty() || COMPARED_MAX / old.len() < new.len() {
        return replaced();
    }
    // How long that sequence is from each pair of lines on.
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
            lines.push((Change::Kept, old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len()
            || i < old.len() && common[i * width + j + 1] <= common[(i + 1) * width + j]
        {
            lines.push((Change::Removed, old[i]));
            i += 1;
        } else {
            lines.push((Change::Added, new[j]));
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
    fn what_changed_is_shown_with_a_little_around_it() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n";
        let new = old.replace("4\n5\n", "four\n5\n").replace("13\n", "");
        let shown =
            "--- a\n+++ a\n 1\n 2\n 3\n-4\n+four\n 5\n 6\n 7\n@@\n 10\n 11\n 12\n-13\n 14\n";
        assert_eq!(diff("a", Some(old), &new), shown);
        assert_eq!(diff("a", None, "x\n"), "--- /dev/null\n+++ a\n+x\n");
        assert_eq!(diff("a", Some("x"), "x"), "--- a\n+++ a\n");
    }

    #[test]
    fn a_text_too_long_to_compare_is_replaced() {
        let (old, new) = ("a\n".repeat(1_100), "b\n".repeat(1_100));
        assert_eq!(diff("a", Some(&old), &new).lines().count(), 2_202);
    }

    proptest! {
        #[test]
        fn both_texts_are_in_it(
            old in proptest::collection::vec("[abc]", 0..12),
            new in proptest::collection::vec("[abc]", 0..12),
        ) {
            let (old, new): (Vec<&str>, Vec<&str>) =
                (old.iter().map(String::as_str).collect(), new.iter().map(String::as_str).collect());
            let lines = changes(&old, &new);
            let without = |change: Change| -> Vec<&str> {
                lines.iter().filter(|it| it.0 != change).map(|it| it.1).collect()
            };
            prop_assert_eq!(without(Change::Added), old);
            prop_assert_eq!(without(Change::Removed), new);
        }
    }
}
