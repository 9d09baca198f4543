//! What a client takes for an answer.

use http::HeaderMap;
use http::header::ACCEPT;

use kubernetes_types::status::{Status, Unsupported};

use super::tables::TableOptions;

/// What of an object a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Representation {
    /// All of it.
    Whole,
    /// `PartialObjectMetadata`.
    Metadata,
    /// A row of a Table.
    Table(TableOptions),
}

/// What the client takes of what the server answers: JSON of the objects themselves, of their metadata, or Tables.
/// `is_list` where the answer is a list, `has_table` where Tables are served.
///
/// Source: apiserver pkg/endpoints/handlers/negotiation/negotiate.go, `NegotiateOutputMediaType`; go-restful for 406.
/// Rule: KND-10, TBL-04.
///
/// # Errors
/// 406 for what no server has, 501 for what this one has not.
pub(super) fn check_accept(
    headers: &HeaderMap,
    is_list: bool,
    has_table: bool,
) -> Result<Representation, Box<Status>> {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let plain = ["*/*", "application/*", "application/json"];
    let other = ["application/yaml", "application/vnd.kubernetes.protobuf"];
    let partial = if is_list { "PartialObjectMetadataList" } else { "PartialObjectMetadata" };
    let (mut is_known, mut is_unsupported) = (false, false);
    for accepted in accept.split(',').map(str::trim) {
        let (media_type, parameters) = accepted.split_once(';').unwrap_or((accepted, ""));
        let media_type = media_type.trim();
        let parameter = |name: &str| {
            let mut pairs = parameters.split(';').filter_map(|parameter| parameter.trim().split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let is_plain = media_type.is_empty() || plain.contains(&media_type);
        if !is_plain && !other.contains(&media_type) {
            continue;
        }
        is_known = true;
        let version = match (parameter("g"), parameter("v")) {
            (Some("meta.k8s.io"), Some("v1")) => Some("meta.k8s.io/v1"),
            (Some("meta.k8s.io"), Some("v1beta1")) => Some("meta.k8s.io/v1beta1"),
            _ => None,
        };
        match (parameter("as"), version) {
            (None, _) if is_plain => return Ok(Representation::Whole),
            (Some("Table"), Some(version)) if is_plain && has_table => {
                return Ok(Representation::Table(TableOptions::new(version)));
            }
            (Some("Table"), Some(_)) if !has_table || media_type == "application/vnd.kubernetes.protobuf" => {
            }
            (Some(kind), Some("meta.k8s.io/v1")) if is_plain && kind == partial => {
                return Ok(Representation::Metadata);
            }
            (None, _) | (Some("Table" | "PartialObjectMetadata" | "PartialObjectMetadataList"), Some(_)) => {
                is_unsupported = true;
            }
            (Some(_), _) => {}
        }
    }
    if is_unsupported {
        let what = format!("answers as {accept} (application/json it does)");
        return Err(Box::new(Status::unsupported(&Unsupported { what })));
    }
    let message = if is_known {
        "only the following media types are accepted: application/json, application/yaml, \
         application/vnd.kubernetes.protobuf"
    } else {
        "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
         application/vnd.kubernetes.protobuf"
    };
    let mut status = Status::failure(406, "NotAcceptable", message);
    status.details = (!is_known).then(kubernetes_types::status::StatusDetails::default);
    Err(Box::new(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_accepted(accept: &str, code: Option<i32>) {
        let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
        let found = check_accept(&headers, false, true).err().map(|status| i64::from(status.code));
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
        check_accepted("application/json;as=Table;v=v1;g=meta.k8s.io", None);
        check_accepted("application/json;as=Table;v=v2;g=meta.k8s.io", Some(406));
        check_accepted("application/json;as=Chair;v=v1;g=meta.k8s.io", Some(406));
        check_accepted("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io", Some(406));
        check_accepted("application/yaml;as=Table;v=v1;g=meta.k8s.io", Some(501));
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
            assert_eq!(check_accept(&headers, is_list, true).ok(), expected, "{accept} {is_list}");
        }
    }

    #[test]
    fn tables_are_of_two_versions_and_of_resources_that_have_them() {
        const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
        const FORMER: &str = "application/json;as=Table;v=v1beta1;g=meta.k8s.io";
        let table = |version| Some(Representation::Table(TableOptions::new(version)));
        for (accept, has_table, expected) in [
            (TABLE.to_owned(), true, table("meta.k8s.io/v1")),
            (format!("{FORMER},{TABLE}"), true, table("meta.k8s.io/v1beta1")),
            (format!("{TABLE},{FORMER},application/json"), false, Some(Representation::Whole)),
            (TABLE.to_owned(), false, None),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
            assert_eq!(check_accept(&headers, false, has_table).ok(), expected, "{accept} {has_table}");
        }
    }
}
