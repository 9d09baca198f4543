//! Compares the tests that the pages show with the examples that CI runs.

use std::path::Path;

use super::{markdown, read};

/// A page, the language of its first test, and the example that contains the lines of the test.
const SNIPPETS: [(&str, &str, &str); 5] = [
    ("README.md", "rust", "examples/rust/tests/webhook.rs"),
    ("docs/guide/go.md", "go", "examples/go/webhook_test.go"),
    ("docs/guide/java.md", "java", "examples/java/src/test/java/com/example/WebhookTest.java"),
    ("docs/guide/python.md", "python", "examples/python/test_webhook.py"),
    ("docs/guide/typescript.md", "ts", "examples/typescript/webhook.test.ts"),
];

#[test]
fn tests_on_the_pages_are_those_of_the_examples() {
    for (page, language, example) in SNIPPETS {
        let text = read(Path::new(page));
        let blocks = markdown::blocks(&text);
        let shown = blocks.iter().find(|block| block.language == language).map(|block| block.text);
        let shown = shown.unwrap_or_else(|| panic!("{page}: no block in {language}"));
        let source = read(Path::new(example));
        let mut lines = source.lines().map(str::trim);
        for line in shown.lines().map(str::trim).filter(|line| !line.is_empty() && *line != "// …") {
            assert!(lines.any(|it| it == line), "{page}: {example} does not contain, in this order: {line}");
        }
    }
}
