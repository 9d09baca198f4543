//! Validates names, label keys, and label values as kube-apiserver does.
//!
//! Each function returns kube-apiserver's error messages, or an empty list if the text is valid.

const SUBDOMAIN_LENGTH: usize = 253;
const LABEL_LENGTH: usize = 63;

const DNS1123_LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS1035_LABEL: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const LABEL_KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

/// Validates a lowercase DNS subdomain, such as the name of most objects, and returns the error messages.
///
/// Source: apimachinery pkg/util/validation/validation.go, `IsDNS1123Subdomain`.
pub fn dns1123_subdomain(name: &str) -> Vec<String> {
    let too_long = format!("must be no more than {SUBDOMAIN_LENGTH} characters");
    subdomain(name, too_long)
}

/// Validates a lowercase DNS label, such as the name of a Namespace, and returns the error messages.
///
/// Source: apimachinery pkg/util/validation/validation.go, `IsDNS1123Label`.
pub fn dns1123_label(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > LABEL_LENGTH {
        wrong.push(format!("must be no more than {LABEL_LENGTH} characters"));
    }
    if !is_dns1123_label(name) {
        wrong.push(if name.split('.').all(is_dns1123_label) {
            "must not contain dots".to_owned()
        } else {
            format!(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
                 and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                 '{DNS1123_LABEL}')"
            )
        });
    }
    wrong
}

/// Validates a DNS label that starts with a letter, such as an API version, and returns the error messages.
///
/// Source: apimachinery pkg/util/validation/validation.go, `IsDNS1035Label`.
pub fn dns1035_label(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > LABEL_LENGTH {
        wrong.push(format!("must be no more than {LABEL_LENGTH} characters"));
    }
    if !(is_dns1123_label(name) && name.starts_with(|first: char| first.is_ascii_lowercase())) {
        wrong.push(format!(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
             validation is '{DNS1035_LABEL}')"
        ));
    }
    wrong
}

/// Validates a label key (a name with an optional `domain/` prefix), and returns the error messages.
///
/// Source: apimachinery pkg/api/validate/content/kube.go, `IsLabelKey`.
pub fn label_key(key: &str) -> Vec<String> {
    let rule = format!(
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
         character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{LABEL_KEY}')"
    );
    let mut wrong = Vec::new();
    let name = match key.split('/').collect::<Vec<_>>().as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                let too_long = format!("must be no more than {SUBDOMAIN_LENGTH} bytes");
                let prefix_wrong = subdomain(prefix, too_long);
                wrong.extend(prefix_wrong.iter().map(|what| format!("prefix part {what}")));
            }
            *name
        }
        _ => {
            return vec![format!(
                "a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_LENGTH {
        wrong.push(format!("name part must be no more than {LABEL_LENGTH} bytes"));
    }
    if !is_label_text(name) {
        wrong.push(format!("name part {rule}"));
    }
    wrong
}

/// Validates a label value, and returns the error messages. An empty value is valid.
///
/// Source: apimachinery pkg/api/validate/content/kube.go, `IsLabelValue`.
pub fn label_value(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if value.len() > LABEL_LENGTH {
        wrong.push(format!("must be no more than {LABEL_LENGTH} bytes"));
    }
    if !(value.is_empty() || is_label_text(value)) {
        wrong.push(format!(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
             for validation is '({LABEL_KEY})?')"
        ));
    }
    wrong
}

fn subdomain(name: &str, too_long: String) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > SUBDOMAIN_LENGTH {
        wrong.push(too_long);
    }
    if !name.split('.').all(is_dns1123_label) {
        wrong.push(format!(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '{DNS1123_LABEL}(\\.{DNS1123_LABEL})*')"
        ));
    }
    wrong
}

fn is_dns1123_label(label: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    is_framed(label, inner)
}

fn is_label_text(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    is_framed(text, inner)
}

/// Returns whether the text is not empty, starts and ends with a letter or digit, and contains only `allowed` bytes.
fn is_framed(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    let ends = [text.bytes().next(), text.bytes().last()];
    ends.iter().all(|end| end.is_some_and(|byte| byte.is_ascii_alphanumeric())) && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(wrong: &[String], beginning: Option<&str>) {
        match beginning {
            None => assert!(wrong.is_empty(), "{wrong:?}"),
            Some(beginning) => assert!(
                matches!(wrong, [what] if what.starts_with(beginning)),
                "{wrong:?} does not start with {beginning:?}"
            ),
        }
    }

    #[test]
    fn subdomain_consists_of_lower_case_labels() {
        let rule = Some("a lowercase RFC 1123 subdomain must consist of");
        check(&dns1123_subdomain("a.b-c.0"), None);
        for name in ["", "A", "a..b", "-a", "a-", "a_b", "a.", "ä"] {
            check(&dns1123_subdomain(name), rule);
        }
        check(&dns1123_subdomain(&"a".repeat(254)), Some("must be no more than 253 characters"));
    }

    #[test]
    fn label_error_mentions_a_subdomain() {
        check(&dns1123_label("a-1"), None);
        check(&dns1123_label("a.b"), Some("must not contain dots"));
        check(&dns1123_label("A"), Some("a lowercase RFC 1123 label must consist of"));
    }

    #[test]
    fn a_dns_1035_label_starts_with_a_letter() {
        check(&dns1035_label("v1"), None);
        check(&dns1035_label("1v"), Some("a DNS-1035 label must consist of"));
        check(&dns1035_label(""), Some("a DNS-1035 label must consist of"));
    }

    #[test]
    fn a_label_key_may_have_one_prefix() {
        check(&label_key("example.com/Name_1"), None);
        check(&label_key("Name"), None);
        check(&label_key("a/b/c"), Some("a valid label key must consist of"));
        check(&label_key("/b"), Some("prefix part must be non-empty"));
        check(&label_key("A/b"), Some("prefix part a lowercase RFC 1123 subdomain"));
        check(&label_key("-"), Some("name part must consist of"));
        assert_eq!(label_key("").len(), 2);
        check(&label_key(&"a".repeat(64)), Some("name part must be no more than 63 bytes"));
    }

    #[test]
    fn a_label_value_may_be_empty() {
        check(&label_value(""), None);
        check(&label_value("a_b"), None);
        check(&label_value("a b"), Some("a valid label must be an empty string or consist of"));
        check(&label_value(&"a".repeat(64)), Some("must be no more than 63 bytes"));
    }
}
