//! One call in one line, for people.

use serde_json::Value;

use crate::{Answered, Entry};

/// The call in one line: time, webhook, operation, kind, object, answer.
pub(crate) fn log_line(webhook: &str, entry: &Entry) -> String {
    let request = entry.review().and_then(|review| review.get("request").cloned()).unwrap_or_default();
    let what = match request["operation"].as_str() {
        Some(operation) => {
            let kind = request["kind"]["kind"].as_str().unwrap_or("?");
            let sub = request["subResource"].as_str().map(|sub| format!("/{sub}")).unwrap_or_default();
            let dry_run = if request["dryRun"] == true { " (dry run)" } else { "" };
            format!("{operation} {kind}{sub} {}{dry_run}", object_name(&request))
        }
        None => format!("{} {} without a review", entry.method, entry.path),
    };
    let answer = match &entry.answered {
        Answered::Pending => "no answer yet".to_owned(),
        Answered::Abandoned => "the caller gave up".to_owned(),
        Answered::Closed => "closed the connection".to_owned(),
        Answered::Bytes => "bytes of its own".to_owned(),
        Answered::Sent { summary, .. } => summary.clone(),
    };
    // A caller chooses these texts: they must not be able to write lines of their own or to steer a terminal.
    let line = format!("{:.3} {webhook} {what}: {answer}", entry.time);
    line.chars().map(|char| if char.is_control() { '\u{fffd}' } else { char }).collect()
}

fn object_name(request: &Value) -> String {
    let metadata = &request["object"]["metadata"];
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let generated = || text(&metadata["generateName"]).map(|prefix| format!("{prefix}*"));
    let name = text(&request["name"]).or_else(|| text(&metadata["name"])).or_else(generated);
    let name = name.unwrap_or_else(|| "-".to_owned());
    match request["namespace"].as_str().filter(|namespace| !namespace.is_empty()) {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(body: &Value, answered: Answered, expected: &str) {
        let entry = Entry {
            number: 1,
            time: jiff::Timestamp::UNIX_EPOCH,
            method: http::Method::POST,
            path: "/hook".to_owned(),
            query: String::new(),
            version: http::Version::HTTP_11,
            headers: Vec::new(),
            body: Bytes::from(body.to_string()),
            answered,
        };
        assert_eq!(log_line("a.b.c", &entry), format!("1970-01-01T00:00:00.000Z a.b.c {expected}"));
    }

    #[test]
    fn a_call_is_one_line() {
        let sent =
            |summary: &str| Answered::Sent { status: http::StatusCode::OK, summary: summary.to_owned() };
        let request = |request: Value| json!({"request": request});
        check(
            &request(
                json!({"operation": "CREATE", "kind": {"kind": "Pod"}, "namespace": "demo", "name": "web"}),
            ),
            sent("denied: two\nlines \u{1b}[31m"),
            "CREATE Pod demo/web: denied: two\u{fffd}lines \u{fffd}[31m",
        );
        check(
            &request(json!({
                "operation": "UPDATE", "kind": {"kind": "Scale"}, "subResource": "scale", "dryRun": true,
                "object": {"metadata": {"generateName": "web-"}},
            })),
            Answered::Abandoned,
            "UPDATE Scale/scale web-* (dry run): the caller gave up",
        );
        check(&json!(7), Answered::Closed, "POST /hook without a review: closed the connection");
    }
}
