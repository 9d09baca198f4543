//! Assembles the HTML file, and the page of `admit serve --ui`.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::document::{Content, Document};
use super::markup::escape;
use super::summary;
use crate::Failure;
use crate::verdict::verdict_summaries;

/// The script and the style sheet of the page. `npm run build` in `report` generates them.
pub(super) const SCRIPT: &str = include_str!("assets/bundle.js");
pub(super) const STYLE: &str = include_str!("assets/bundle.css");

/// Returns the HTML file that shows `documents`.
///
/// A content security policy allows only the script and the style of the page itself.
///
/// # Errors
/// Returns an error if a report cannot be serialized or compressed.
pub(super) fn page(documents: &[Document]) -> Result<String, Failure> {
    let parts = Parts {
        title: &title(documents),
        summary: &format!(
            "<noscript><p>This is a summary. Enable JavaScript to see the details.</p></noscript>\n{}",
            summary::summary(documents)
        ),
        data: &format!("<script type=\"text/plain\" id=\"data\">{}</script>", data(documents)?),
        policy: &policy("'none'"),
    };
    Ok(parts.html())
}

/// The page of `admit serve --ui`, which requests its data from the server that it comes from.
#[derive(Clone, Debug)]
pub(crate) struct LivePage {
    pub(crate) html: String,
    /// The content security policy for the header of the response. It also forbids frames.
    pub(crate) policy: String,
}

impl LivePage {
    pub(crate) fn new() -> Self {
        let policy = policy("'self'");
        let parts = Parts {
            title: "admit serve",
            summary: "<noscript><p>Enable JavaScript to see the requests.</p></noscript>\n",
            data: "<script type=\"text/plain\" id=\"live\"></script>",
            policy: &policy,
        };
        Self { html: parts.html(), policy: format!("{policy}; frame-ancestors 'none'") }
    }
}

/// Returns a content security policy that allows only the script and the style of the page, and requests to `connect`.
fn policy(connect: &str) -> String {
    let (script, style) = (hash(SCRIPT), hash(STYLE));
    format!(
        "default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; connect-src {connect}; \
         base-uri 'none'; form-action 'none'"
    )
}

/// The parts in which pages differ.
struct Parts<'a> {
    title: &'a str,
    /// HTML below the title, which is hidden when the script runs.
    summary: &'a str,
    /// The element with the data.
    data: &'a str,
    policy: &'a str,
}

impl Parts<'_> {
    fn html(&self) -> String {
        let Self { summary, data, policy, .. } = self;
        let title = escape(self.title);
        let version = env!("CARGO_PKG_VERSION");
        format!(
            "<!DOCTYPE html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<meta name=\"color-scheme\" content=\"light dark\">
<meta name=\"generator\" content=\"admit {version}\">
<title>{title}</title>
<link rel=\"icon\" href=\"data:,\">
<style>{STYLE}</style>
</head>
<body>
<a class=\"skip\" href=\"#main\">Skip to the content</a>
<header class=\"top\"><p><strong>admit</strong> {version}</p></header>
<main id=\"main\" tabindex=\"-1\">
<div id=\"summary\">
<h1>{title}</h1>
{summary}</div>
<div id=\"app\"></div>
</main>
{data}
<script>{SCRIPT}</script>
</body>
</html>
"
        )
    }
}

/// Returns the page title.
///
/// For a single report, the title contains the command and, for `admit review`, the request or the number of requests.
/// For several reports, it contains their number.
fn title(documents: &[Document]) -> String {
    match documents {
        [Document { content: Content::Review(requests), .. }] => match requests.as_slice() {
            [request] => format!("admit review: {}", summary::about(request)),
            requests => format!("admit review: {} requests", requests.len()),
        },
        [document] => document.content.command().to_owned(),
        documents => format!("admit: {} reports", documents.len()),
    }
}

/// Returns the reports as compressed JSON in base64, so that the data cannot contain markup.
fn data(documents: &[Document]) -> Result<String, Failure> {
    let documents: Vec<_> = documents
        .iter()
        .map(|document| {
            let verdicts = match &document.content {
                Content::Verify(report) => Some(verdict_summaries(report)),
                Content::Run(_) | Content::Review(_) | Content::Lint(_) => None,
            };
            json!({
                "command": document.content.command(),
                "name": document.name,
                "report": document.value,
                "verdicts": verdicts,
            })
        })
        .collect();
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    let json = json!({ "admit": env!("CARGO_PKG_VERSION"), "documents": documents }).to_string();
    let compressed = encoder.write_all(json.as_bytes()).and_then(|()| encoder.finish());
    Ok(STANDARD.encode(compressed.map_err(Failure::environment)?))
}

/// Returns the hash of a script or a style sheet in the format of the content security policy.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}
