//! What a client takes for an answer.

use http::HeaderMap;
use http::header::ACCEPT;

use crate::status::{Status, Unsupported};

/// Whether the client takes what the server answers: JSON of the objects themselves.
///
/// Source: apiserver pkg/endpoints/handlers/negotiation/negotiate.go, `NegotiateOutputMediaType`; go-restful for 406.
///
/// # Errors
/// 406 for what no server has, 501 for what this one has not.
pub(super) fn check_accept(headers: &HeaderMap) -> Result<(), Box<Status>> {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let plain = ["*/*", "application/*", "application/json"];
    let other = ["application/yaml", "application/vnd.kubernetes.protobuf"];
    let mut known = false;
    for accepted in accept.split(',').map(str::trim) {
        let (media_type, parameters) = accepted.split_once(';').unwrap_or((accepted, ""));
        let media_type = media_type.trim();
        let whole = !parameters.split(';').any(|parameter| parameter.trim().starts_with("as="));
        if media_type.is_empty() || (plain.contains(&media_type) && whole) {
            return Ok(());
        }
        known |= plain.contains(&media_type) || other.contains(&media_type);
    }
    if known {
        let what = format!("answers as {accept} (application/json it does)");
        return Err(Box::new(Status::unsupported(&Unsupported { what })));
    }
    let message = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
                   application/vnd.kubernetes.protobuf";
    let mut status = Status::failure(406, "NotAcceptable", message);
    status.details = Some(crate::status::StatusDetails::default());
    Err(Box::new(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_accepted(accept: &str, code: Option<i32>) {
        let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
        let found = check_accept(&headers).err().map(|status| i64::from(status.code));
        assert_eq!(found, code.map(i64::from), "{accept}");
    }

    #[test]
    fn a_client_that_takes_no_json_is_told_so() {
        for accept in [
            "",
            "*/*",
            "application/json",
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            "application/vnd.kubernetes.protobuf,application/json",
            "text/html, application/xhtml+xml, */*;q=0.8",
        ] {
            check_accepted(accept, None);
        }
        check_accepted("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", Some(501));
        check_accepted("application/yaml", Some(501));
        check_accepted("text/html", Some(406));
    }
}
