//! What a client takes for an answer.

use http::HeaderMap;
use http::header::ACCEPT;

use kubernetes_types::status::{Status, Unsupported};

/// What of an object a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Representation {
    /// All of it.
    Whole,
    /// `PartialObjectMetadata`.
    Metadata,
}

/// What the client takes of what the server answers: JSON of the objects themselves, or of their metadata. `is_list` where
/// the answer is a list.
///
/// Source: apiserver pkg/endpoints/handlers/negotiation/negotiate.go, `NegotiateOutputMediaType`; go-restful for 406.
/// Rule: KND-10.
///
/// # Errors
/// 406 for what no server has, 501 for what this one has not.
pub(super) fn check_accept(headers: &HeaderMap, is_list: bool) -> Result<Representation, Box<Status>> {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let plain = ["*/*", "application/*", "application/json"];
    let other = ["application/yaml", "application/vnd.kubernetes.protobuf"];
    let partial = if is_list { "PartialObjectMetadataList" } else { "PartialObjectMetadata" };
    let mut known = false;
    for accepted in accept.split(',').map(str::trim) {
        let (media_type, parameters) = accepted.split_once(';').unwrap_or((accepted, ""));
        let media_type = media_type.trim();
        let parameter = |name: &str| {
            let mut pairs = parameters.split(';').filter_map(|parameter| parameter.trim().split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let is_plain = media_type.is_empty() || plain.contains(&media_type);
        match parameter("as") {
            None if is_plain => return Ok(Representation::Whole),
            Some(kind) if is_plain && kind == partial => {
                if (parameter("g"), parameter("v")) == (Some("meta.k8s.io"), Some("v1")) {
                    return Ok(Representation::Metadata);
                }
            }
            Some(_) | None => {}
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
    status.details = Some(kubernetes_types::status::StatusDetails::default());
    Err(Box::new(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_accepted(accept: &str, code: Option<i32>) {
        let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
        let found = check_accept(&headers, false).err().map(|status| i64::from(status.code));
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
        check_accepted("application/json;as=Table;v=v1;g=meta.k8s.io", Some(501));
        check_accepted("application/yaml", Some(501));
        check_accepted("text/html", Some(406));
    }

    #[test]
    fn metadata_alone_are_of_one_version_and_of_objects_or_lists() {
        use Representation::{Metadata, Whole};
        const OBJECT: &str = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
        const LIST: &str = "as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
        for (accept, is_list, expected) in [
            (format!("application/json;{OBJECT}"), false, Some(Metadata)),
            (format!("application/json;{OBJECT}"), true, None),
            (format!("application/json;{LIST}"), true, Some(Metadata)),
            (format!("application/json;{LIST},application/json"), false, Some(Whole)),
            (
                format!(
                    "application/vnd.kubernetes.protobuf;{OBJECT},application/json;{OBJECT},application/json"
                ),
                false,
                Some(Metadata),
            ),
            (format!("application/json,application/json;{OBJECT}"), false, Some(Whole)),
            ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1".to_owned(), false, None),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
            assert_eq!(check_accept(&headers, is_list).ok(), expected, "{accept} {is_list}");
        }
    }
}
