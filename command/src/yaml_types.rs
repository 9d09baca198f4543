//! Explains strings that YAML reads as booleans or numbers because they are not quoted.

/// Explains how to fix a value that must be a string, based on the API server's message.
///
/// `written` is the value in the YAML file, if known. Returns `None` if the message is about something else.
pub(crate) fn help(message: &str, written: Option<&str>) -> Option<String> {
    let (found, rest) = message.split_once("cannot unmarshal ")?.1.split_once(" into Go struct field ")?;
    let (_, expected) = rest.split_once(" of type ")?;
    let is_string = expected.strip_prefix("string").is_some_and(|rest| {
        !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || ['.', '['].contains(&next))
    });
    let (kind, examples) = match found.split(' ').next().unwrap_or_default() {
        "bool" => ("a boolean", "`y`, `on`, or `true`"),
        "number" => ("a number", "`1`, `0777`, or `1e3`"),
        _ => return None,
    };
    is_string.then(|| match written {
        Some(written) => format!("quote the value: YAML reads `{written}` without quotes as {kind}"),
        None => format!("quote the value: YAML reads values such as {examples} without quotes as {kind}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_that_yaml_reads_as_another_type_is_to_be_quoted() {
        let message = |found: &str, expected: &str| {
            format!(
                "json: cannot unmarshal {found} into Go struct field ServiceReference.service.name of type {expected}"
            )
        };
        let boolean = message("bool", "string");
        assert_eq!(
            help(&boolean, Some("y")).unwrap(),
            "quote the value: YAML reads `y` without quotes as a boolean"
        );
        assert!(help(&boolean, None).unwrap().contains("such as `y`, `on`, or `true`"));
        assert!(help(&message("number", "string"), None).unwrap().ends_with("as a number"));
        for other in [message("bool", "[]string"), message("object", "string"), message("bool", "int32")] {
            assert_eq!(help(&other, None), None, "{other}");
        }
        assert_eq!(help("configmaps \"a\" not found", None), None);
    }
}
