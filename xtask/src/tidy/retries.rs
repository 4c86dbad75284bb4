//! Tests that may pass on a second try: a short list, each by its name, with a date and a reason.

/// Where the test runner is configured.
pub(super) const CONFIG: &str = ".config/nextest.toml";

/// More flaky tests than this are a problem of the product, not of the tests.
const TESTS_MAX: usize = 20;

/// Complaints about the configuration of the test runner.
///
/// A test is allowed a second try by a block like this one:
///
/// ```toml
/// # 2026-11-16: the kernel may refuse the port that was free a moment ago
/// [[profile.ci.overrides]]
/// filter = 'package(jackfield-e2e) and test(=bus::network::port_is_reused)'
/// flaky-result = "pass"
/// ```
pub(super) fn check(config: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let lines: Vec<&str> = config.lines().collect();
    let allowed = (0..lines.len()).filter(|it| is_setting(lines[*it], "flaky-result", "\"pass\""));
    let allowed: Vec<usize> = allowed.collect();
    for at in &allowed {
        let start = (0..*at).rev().find(|it| lines[*it].starts_with('[')).unwrap_or(0);
        let block = &lines[start..*at];
        let names = block.iter().map(|it| it.matches("test(=").count()).sum::<usize>();
        let is_profile = lines[start].starts_with("[[profile.ci.overrides]]");
        if !is_profile || names != 1 {
            let line = at + 1;
            complaints.push(format!(
                "{CONFIG}:{line}: a second try is allowed for one test by its name: `test(=NAME)`"
            ));
        }
        if !start.checked_sub(1).is_some_and(|it| has_date_and_reason(lines[it])) {
            complaints.push(format!("{CONFIG}:{}: say `# YYYY-MM-DD: reason` above it", start + 1));
        }
    }
    if TESTS_MAX < allowed.len() {
        let count = allowed.len();
        complaints
            .push(format!("{CONFIG}: {count} tests have a second try; the limit is {TESTS_MAX}"));
    }
    complaints
}

fn is_setting(line: &str, name: &str, value: &str) -> bool {
    line.split_once('=').is_some_and(|(key, it)| key.trim() == name && it.trim() == value)
}

fn has_date_and_reason(comment: &str) -> bool {
    let Some((date, reason)) = comment.strip_prefix("# ").and_then(|it| it.split_once(": ")) else {
        return false;
    };
    let is_date = |(at, it): (usize, u8)| match at {
        4 | 7 => it == b'-',
        _ => it.is_ascii_digit(),
    };
    date.len() == 10 && date.bytes().enumerate().all(is_date) && !reason.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: &str = "# 2026-11-16: the reason\n[[profile.ci.overrides]]\n\
        filter = 'test(=a::b)'\nflaky-result = \"pass\"\n";

    #[test]
    fn named_test_with_date_and_reason_is_accepted() {
        assert_eq!(check(ALLOWED), [""; 0]);
        assert_eq!(check("[profile.ci]\nflaky-result = \"fail\"\n"), [""; 0]);
    }

    #[test]
    fn missing_reason_is_refused() {
        let complaints = check(&ALLOWED.replace("# 2026-11-16: the reason", "# later"));
        assert_eq!(complaints.len(), 1, "{complaints:?}");
        assert!(complaints[0].contains("say `# YYYY-MM-DD: reason`"));
    }

    #[test]
    fn pattern_and_whole_profile_are_refused() {
        let complaints = check(&ALLOWED.replace("test(=a::b)", "package(x)"));
        assert!(complaints[0].contains("for one test by its name"), "{complaints:?}");
        let complaints = check("# 2026-11-16: all\n[profile.ci]\nflaky-result = \"pass\"\n");
        assert!(complaints[0].contains("for one test by its name"), "{complaints:?}");
    }

    #[test]
    fn twenty_tests_are_accepted_and_one_more_is_refused() {
        assert_eq!(check(&ALLOWED.repeat(TESTS_MAX)), [""; 0]);
        let complaints = check(&ALLOWED.repeat(TESTS_MAX + 1));
        assert_eq!(complaints, [format!("{CONFIG}: 21 tests have a second try; the limit is 20")]);
    }
}
