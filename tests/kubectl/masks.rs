//! Masks values that differ between runs, regardless of the server.

use std::path::Path;

use regex::Regex;

/// Regular expressions, each with the replacement for its matches.
pub(crate) struct Masks(Vec<(Regex, &'static str)>);

/// The masks. They are applied in this order, so later expressions do not see values that are already replaced.
const MASKS: [(&str, &str); 18] = [
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uid>"),
    // Times in the API, in describe, in diff, and in the log.
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
    (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "<time>"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}", "<time>"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4} UTC", "<time>"),
    (r"(?m)^([EWI])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ ", "$1 "),
    (r#"(resourceVersion"?: ?"?)\d+"#, "$1<version>"),
    (r"(Resource Version: +)\d+", "$1<version>"),
    (r"\bone-[a-z0-9]{5}\b", "one-<random>"),
    (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "<token>"),
    (r"127\.0\.0\.1:\d{4,5}", "<address>"),
    // Services get random addresses and ports.
    (r"\b10\.0\.0\.\d+", "<cluster address>"),
    (r"\b3[0-2]\d{3}\b", "<node port>"),
    (r"\.[0-9a-f]{16}\b", ".<number>"),
    (r"(LIVE|MERGED)-\d+", "$1-<number>"),
    (r"(kubectl-edit-|edited-file)\d+", "$1<number>"),
    // Ages, and columns whose width depends on the ages.
    (r"(?m)(^|[ (])((\d+h)?(\d+m)?\d+s|[1-5]?\dm)\b", "$1<age>"),
    (r"([^ \n]) {2,}", "$1  "),
];

impl Masks {
    pub(crate) fn new(folder: &Path) -> Self {
        let folder = regex::escape(&folder.display().to_string());
        let masks = MASKS.iter().map(|(expression, shown)| (Regex::new(expression).unwrap(), *shown));
        Self(std::iter::once((Regex::new(&folder).unwrap(), "<folder>")).chain(masks).collect())
    }

    pub(crate) fn apply(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (expression, shown)| {
            expression.replace_all(&text, *shown).into_owned()
        })
    }
}
