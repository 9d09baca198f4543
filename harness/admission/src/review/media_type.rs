//! Validates `Content-Type` headers as Go does.

/// Returns the error of Go's `mime.ParseMediaType` for an invalid header; `None` if it is valid.
///
/// Source: Go mime/mediatype.go.
pub(super) fn parse_error(header: &str) -> Option<&'static str> {
    let is_part = |byte: u8| byte.is_ascii_graphic() && !br#"()<>@,;:\"/[]?="#.contains(&byte);
    let is_token = |text: &str| !text.is_empty() && text.bytes().all(is_part);
    if header.is_empty() {
        return None;
    }
    let mut parts = header.split(';');
    let media_type = parts.next().unwrap_or_default().trim();
    let token = |text: &str| text.bytes().take_while(|&byte| is_part(byte)).count();
    let (main, rest) = media_type.split_at(token(media_type));
    let error = match (main, rest.strip_prefix('/')) {
        ("", _) => Some("mime: no media type"),
        (_, None) if rest.is_empty() => None,
        (_, None) => Some("mime: expected slash after first token"),
        (_, Some(sub)) if token(sub) == 0 => Some("mime: expected token after slash"),
        (_, Some(sub)) if token(sub) < sub.len() => Some("mime: unexpected content after media subtype"),
        (_, Some(_)) => None,
    };
    error.or_else(|| {
        let parameters: Vec<&str> = parts.map(str::trim).collect();
        let last = parameters.len().saturating_sub(1);
        let broken =
            parameters.iter().enumerate().any(|(index, parameter)| match parameter.split_once('=') {
                _ if parameter.is_empty() => index != last,
                Some((name, value)) => {
                    !(is_token(name.trim()) && (is_token(value) || value.starts_with('"')))
                }
                None => true,
            });
        let mut names: Vec<String> = parameters
            .iter()
            .filter_map(|parameter| parameter.split_once('='))
            .map(|(name, _)| name.trim().to_ascii_lowercase())
            .collect();
        names.sort_unstable();
        let repeated = !names.is_sorted_by(|one, other| one < other);
        if broken {
            Some("mime: invalid media parameter")
        } else {
            repeated.then_some("mime: duplicate parameter name")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(header: &str, expect: Option<&str>) {
        assert_eq!(parse_error(header), expect, "{header}");
    }

    #[test]
    fn headers_are_rejected_as_by_go() {
        for accepted in ["", "text", "a/b", "a/b;", "a/b; c=d", "application/json; charset=\"utf-8\""] {
            check(accepted, None);
        }
        check(" ", Some("mime: no media type"));
        check("/b", Some("mime: no media type"));
        check("a b", Some("mime: expected slash after first token"));
        check("a/", Some("mime: expected token after slash"));
        check("a/b c", Some("mime: unexpected content after media subtype"));
        check("a/b; c", Some("mime: invalid media parameter"));
        check("a/b; c=", Some("mime: invalid media parameter"));
        check("a/b; c=d; C=e", Some("mime: duplicate parameter name"));
        check("a/b; c=d; e=f; d=g", None);
    }
}
