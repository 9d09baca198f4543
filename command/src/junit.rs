//! JUnit reports: test suites with their cases, formatted as XML.

use std::fmt::Write as _;
use std::time::Duration;

/// The root of a document.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) name: &'static str,
    pub(crate) time: Option<Duration>,
    pub(crate) suites: Vec<TestSuite>,
}

#[derive(Debug, Default)]
pub(crate) struct TestSuite {
    pub(crate) name: String,
    pub(crate) time: Option<Duration>,
    pub(crate) cases: Vec<TestCase>,
}

#[derive(Debug, Default)]
pub(crate) struct TestCase {
    pub(crate) name: String,
    pub(crate) class: String,
    pub(crate) time: Option<Duration>,
    /// The file and the line that the case is about.
    pub(crate) location: Option<(String, u64)>,
    pub(crate) status: Status,
    /// Attempts that failed before the one that decided the status.
    pub(crate) earlier: Vec<Failure>,
    pub(crate) output: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) enum Status {
    #[default]
    Passed,
    Failed(Failure),
    /// The reason why the case did not run.
    Skipped(String),
}

#[derive(Debug, Default)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) kind: Option<&'static str>,
    pub(crate) time: Option<Duration>,
    pub(crate) description: String,
}

impl Report {
    /// Returns the report as XML. U+FFFD replaces each character that XML 1.0 does not allow.
    pub(crate) fn document(&self) -> String {
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites");
        attribute(&mut xml, "name", self.name);
        let cases = || self.suites.iter().flat_map(|suite| &suite.cases);
        for (name, value) in counts(cases, ["tests", "skipped", "failures", "errors"]) {
            attribute(&mut xml, name, &value.to_string());
        }
        time(&mut xml, self.time);
        xml.push_str(">\n");
        for suite in &self.suites {
            suite.write(&mut xml);
        }
        xml.push_str("</testsuites>\n");
        output::xml(&xml).into_owned()
    }
}

/// Returns the value of each of the `names`, which are attributes of a suite and of the report.
fn counts<'a, I: Iterator<Item = &'a TestCase>>(
    cases: impl Fn() -> I,
    names: [&'static str; 4],
) -> [(&'static str, usize); 4] {
    names.map(|name| {
        let count = match name {
            "skipped" => cases().filter(|case| matches!(case.status, Status::Skipped(_))).count(),
            "failures" => cases().filter(|case| matches!(case.status, Status::Failed(_))).count(),
            "tests" => cases().count(),
            // A check or a scenario fails; an error in admit itself ends the run.
            _ => 0,
        };
        (name, count)
    })
}

impl TestSuite {
    fn write(&self, xml: &mut String) {
        xml.push_str("    <testsuite");
        attribute(xml, "name", &self.name);
        for (name, value) in counts(|| self.cases.iter(), ["tests", "skipped", "errors", "failures"]) {
            attribute(xml, name, &value.to_string());
        }
        time(xml, self.time);
        if self.cases.is_empty() {
            xml.push_str("/>\n");
            return;
        }
        xml.push_str(">\n");
        for case in &self.cases {
            case.write(xml);
        }
        xml.push_str("    </testsuite>\n");
    }
}

impl TestCase {
    fn write(&self, xml: &mut String) {
        xml.push_str("        <testcase");
        attribute(xml, "name", &self.name);
        if !self.class.is_empty() {
            attribute(xml, "classname", &self.class);
        }
        time(xml, self.time);
        if let Some((file, line)) = &self.location {
            attribute(xml, "file", file);
            attribute(xml, "line", &line.to_string());
        }
        if matches!(self.status, Status::Passed) && self.earlier.is_empty() && self.output.is_none() {
            xml.push_str("/>\n");
            return;
        }
        xml.push_str(">\n");
        match &self.status {
            Status::Passed => {}
            Status::Failed(failure) => failure.write(xml, "failure"),
            Status::Skipped(reason) => {
                xml.push_str("            <skipped");
                attribute(xml, "message", reason);
                xml.push_str("/>\n");
            }
        }
        let repeated = if matches!(self.status, Status::Passed) { "flakyFailure" } else { "rerunFailure" };
        for failure in &self.earlier {
            failure.write(xml, repeated);
        }
        if let Some(output) = &self.output {
            xml.push_str("            <system-out>");
            escape(xml, output);
            xml.push_str("</system-out>\n");
        }
        xml.push_str("        </testcase>\n");
    }
}

impl Failure {
    fn write(&self, xml: &mut String, element: &str) {
        let _ = write!(xml, "            <{element}");
        time(xml, self.time);
        attribute(xml, "message", &self.message);
        if let Some(kind) = self.kind {
            attribute(xml, "type", kind);
        }
        xml.push('>');
        escape(xml, &self.description);
        let _ = writeln!(xml, "</{element}>");
    }
}

fn attribute(xml: &mut String, name: &str, value: &str) {
    let _ = write!(xml, " {name}=\"");
    escape(xml, value);
    xml.push('"');
}

/// Writes a duration in seconds.
fn time(xml: &mut String, time: Option<Duration>) {
    if let Some(time) = time {
        let _ = write!(xml, " time=\"{:.3}\"", time.as_secs_f64());
    }
}

fn escape(xml: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' => xml.push_str("&quot;"),
            '\'' => xml.push_str("&apos;"),
            _ => xml.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str) -> TestCase {
        TestCase { name: name.to_owned(), ..TestCase::default() }
    }

    #[test]
    fn failed_attempts_are_flaky_if_the_last_one_passes() {
        let attempt = || Failure {
            message: "a < b".into(),
            time: Some(Duration::from_millis(1_500)),
            description: "\"x\" & 'y'\u{1b}".into(),
            ..Failure::default()
        };
        let flaky = TestCase { earlier: vec![attempt()], ..case("flaky") };
        let failed =
            TestCase { status: Status::Failed(attempt()), earlier: vec![attempt()], ..case("failed") };
        let suite = TestSuite { name: "s".into(), cases: vec![flaky, failed, case("passed")], time: None };
        let empty = TestSuite { name: "empty".into(), ..TestSuite::default() };
        let report = Report { name: "r", time: Some(Duration::from_secs(2)), suites: vec![suite, empty] };
        expect_test::expect![[r#"
            <?xml version="1.0" encoding="UTF-8"?>
            <testsuites name="r" tests="3" skipped="0" failures="1" errors="0" time="2.000">
                <testsuite name="s" tests="3" skipped="0" errors="0" failures="1">
                    <testcase name="flaky">
                        <flakyFailure time="1.500" message="a &lt; b">&quot;x&quot; &amp; &apos;y&apos;�</flakyFailure>
                    </testcase>
                    <testcase name="failed">
                        <failure time="1.500" message="a &lt; b">&quot;x&quot; &amp; &apos;y&apos;�</failure>
                        <rerunFailure time="1.500" message="a &lt; b">&quot;x&quot; &amp; &apos;y&apos;�</rerunFailure>
                    </testcase>
                    <testcase name="passed"/>
                </testsuite>
                <testsuite name="empty" tests="0" skipped="0" errors="0" failures="0"/>
            </testsuites>
        "#]]
        .assert_eq(&report.document());
    }
}
