//! Escapes text for Markdown.

/// Returns a code fence that does not occur in `text`.
pub(crate) fn fence(text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    fence
}

/// Returns text from a webhook, escaped so that it is neither markup nor a terminal control sequence.
pub(crate) fn line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for letter in output::one_line(&text.replace(['\n', '\r'], " ")).chars() {
        match letter {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' => {
                line.push('\\');
                line.push(letter);
            }
            letter => line.push(letter),
        }
    }
    line
}

/// Escapes text for a table cell.
pub(crate) fn cell(text: &str) -> String {
    line(text).replace('|', "\\|")
}
