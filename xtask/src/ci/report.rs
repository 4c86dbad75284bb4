//! Judges the report of a test run: prints the slowest tests, and fails if the tests take longer than they may.

use anyhow::{Context as _, Result, bail};
use quick_xml::{
    Reader, XmlVersion,
    events::{BytesStart, Event},
};
use std::{fs, time::Duration};

/// Rows in the table of the slowest tests.
const ROWS: usize = 50;

/// How long tests may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeLimits {
    /// Where the test runner writes its `JUnit` report.
    pub(super) report: &'static str,
    /// All tests together, from the start of the runner to its end.
    pub(super) total: Duration,
    /// A single test.
    pub(super) test: Duration,
}

/// One row of the report.
#[derive(Debug, PartialEq)]
struct TestCase {
    suite: String,
    name: String,
    time: Duration,
    /// Failed at first and passed when it was run again.
    is_flaky: bool,
}

/// Prints the table; `took` is the time of the whole run.
pub(super) fn check(limits: &TimeLimits, took: Duration) -> Result<()> {
    let path = limits.report;
    let text = fs::read_to_string(path).with_context(|| format!("failed to read {path}"))?;
    let mut cases = parse(&text).with_context(|| format!("failed to parse {path}"))?;
    cases.sort_by_key(|it| std::cmp::Reverse(it.time));
    let sum: Duration = cases.iter().map(|it| it.time).sum();
    let count = cases.len();
    println!("== {count} tests in {} s, {} s one after the other", took.as_secs(), sum.as_secs());
    for TestCase { suite, name, time, .. } in cases.iter().take(ROWS) {
        println!("{:>8.1} s  {suite} {name}", time.as_secs_f64());
    }
    for TestCase { suite, name, .. } in cases.iter().filter(|it| it.is_flaky) {
        println!("flaky: {suite} {name}");
    }
    let complaints = complaints(limits, took, &cases);
    if complaints.is_empty() { Ok(()) } else { bail!("{}", complaints.join("\n")) }
}

fn complaints(limits: &TimeLimits, took: Duration, cases: &[TestCase]) -> Vec<String> {
    let mut complaints = Vec::new();
    if cases.is_empty() {
        complaints.push("the report has no tests".to_owned());
    }
    if limits.total < took {
        let (took, total) = (took.as_secs(), limits.total.as_secs());
        complaints.push(format!(
            "the tests took {took} s; the limit is {total} s: move what a cheaper test proves to `just nightly`"
        ));
    }
    for TestCase { suite, name, time, .. } in cases.iter().filter(|it| limits.test < it.time) {
        let (time, test) = (time.as_secs(), limits.test.as_secs());
        complaints.push(format!("{suite} {name} took {time} s; the limit is {test} s"));
    }
    complaints
}

fn parse(text: &str) -> Result<Vec<TestCase>> {
    let mut reader = Reader::from_str(text);
    let (mut cases, mut suite) = (Vec::<TestCase>::new(), String::new());
    loop {
        match reader.read_event()? {
            Event::Start(tag) | Event::Empty(tag) => match tag.name().as_ref() {
                b"testsuite" => suite = attribute(&tag, "name")?,
                b"testcase" => {
                    let seconds: f64 = attribute(&tag, "time")?.parse()?;
                    let (name, time) = (attribute(&tag, "name")?, Duration::from_secs_f64(seconds));
                    cases.push(TestCase { suite: suite.clone(), name, time, is_flaky: false });
                }
                b"flakyFailure" => {
                    let case = cases.last_mut().context("a flaky failure outside a test")?;
                    case.is_flaky = true;
                }
                _ => {}
            },
            Event::Eof => return Ok(cases),
            _ => {}
        }
    }
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> Result<String> {
    let attribute = tag.try_get_attribute(name)?.with_context(|| format!("no attribute {name}"))?;
    Ok(attribute.normalized_value(XmlVersion::Implicit1_0)?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: TimeLimits =
        TimeLimits { report: "", total: Duration::from_mins(20), test: Duration::from_mins(1) };

    const REPORT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="2" time="62.000">
    <testsuite name="jackfield-hub" tests="1">
        <testcase name="a::b" classname="jackfield-hub" time="0.250"/>
    </testsuite>
    <testsuite name="jackfield-e2e::main" tests="1">
        <testcase name="slow" classname="jackfield-e2e::main" time="61.500">
            <flakyFailure time="1.0" message="it &lt; failed" type="test failure"></flakyFailure>
        </testcase>
    </testsuite>
</testsuites>"#;

    #[test]
    fn report_gives_suite_name_time_and_retries_of_each_test() {
        let cases = parse(REPORT).unwrap();
        assert_eq!(cases[0].suite, "jackfield-hub");
        assert_eq!((&*cases[0].name, cases[0].time), ("a::b", Duration::from_millis(250)));
        assert_eq!([cases[0].is_flaky, cases[1].is_flaky], [false, true]);
    }

    #[test]
    fn slow_test_is_named_with_its_time_and_the_limit() {
        let found = complaints(&LIMITS, Duration::from_secs(62), &parse(REPORT).unwrap());
        assert_eq!(found, ["jackfield-e2e::main slow took 61 s; the limit is 60 s"]);
    }

    #[test]
    fn slow_run_and_empty_report_are_refused() {
        let found = complaints(&LIMITS, Duration::from_secs(1_201), &[]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[1].starts_with("the tests took 1201 s; the limit is 1200 s"));
    }
}
