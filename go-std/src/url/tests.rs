//! Tests URLs against Go's recorded results, and their properties.

use proptest::prelude::*;

use super::*;

/// Checks the error for a request's URL, or its scheme, host, hostname, port, path, and text.
#[track_caller]
fn check(text: &str, expected: Result<[&str; 6], &str>) {
    let found = Url::parse_request_uri(text).and_then(|_| Url::parse(text)).map(|url| {
        let string = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        [
            url.scheme.clone(),
            string(&url.host),
            string(url.hostname()),
            string(url.port()),
            url.escaped_path(),
            url.to_string(),
        ]
    });
    let expected = expected.map(|parts| parts.map(str::to_owned));
    assert_eq!(found, expected.map_err(|error| format!("parse {}: {error}", quote(text))), "{text}");
}

#[test]
fn valid_parts_are_kept_as_written() {
    check(
        "HTTPS://user:pa%20ss@Example.com:8443/a%2Fb/c?q=1#f g",
        Ok([
            "https",
            "Example.com:8443",
            "Example.com",
            "8443",
            "/a%2Fb/c",
            "https://user:pa%20ss@Example.com:8443/a%2Fb/c?q=1#f%20g",
        ]),
    );
    check("/a%2Fb/c d", Ok(["", "", "", "", "/a/b/c%20d", "/a/b/c%20d"]));
    check("/a:b", Ok(["", "", "", "", "/a:b", "/a:b"]));
    check("//a/b", Ok(["", "a", "a", "", "/b", "//a/b"]));
    check("*", Ok(["", "", "", "", "*", "*"]));
    check("mailto:a@b?c", Ok(["mailto", "", "", "", "", "mailto:a@b?c"]));
    check("file:///a", Ok(["file", "", "", "", "/a", "file:///a"]));
    check("http://a?", Ok(["http", "a", "a", "", "", "http://a?"]));
}

#[test]
fn host_may_be_an_ip_address() {
    check("http://[::1]:80/", Ok(["http", "[::1]:80", "::1", "80", "/", "http://[::1]:80/"]));
    check(
        "http://[fe80::1%25en0]/",
        Ok(["http", "[fe80::1%en0]", "fe80::1%en0", "", "/", "http://[fe80::1%25en0]/"]),
    );
    check("mongodb://a:1,b:2/", Ok(["mongodb", "a:1,b:2", "a:1,b", "2", "/", "mongodb://a:1,b:2/"]));
    check("http://a:1,b:2/", Err("invalid port \":1,b:2\" after host"));
    check("http://[1.2.3.4]/", Err("invalid IP-literal"));
    check("http://a[::1]/", Err("invalid IP-literal"));
    check("http://[::1/", Err("missing ']' in host"));
    check(
        "http://[::g]/",
        Err(
            "invalid host: ParseAddr(\"::g\"): each colon-separated field must have at least one digit (at \"g\")",
        ),
    );
}

#[test]
fn invalid_url_has_the_error_of_go() {
    check("", Err("empty url"));
    check("a", Err("invalid URI for request"));
    check("../a", Err("invalid URI for request"));
    check(":a", Err("missing protocol scheme"));
    check("http://a\u{7f}", Err("net/url: invalid control character in URL"));
    check("http://a b/", Err("invalid character \" \" in host name"));
    check("http://a%20b/", Err("invalid URL escape \"%20\""));
    check("http://a/%zé", Err("invalid URL escape \"%z\\xc3\""));
    check("http://a/#%z", Err("invalid URL escape \"%z\""));
    check("http://a?#%z", Err("invalid URL escape \"%z\""));
    check("http://a:b/", Err("invalid port \":b\" after host"));
    check("http://é@a/", Err("net/url: invalid userinfo"));
    assert_eq!(Url::parse("//a b/").unwrap_err(), "parse \"//a b/\": invalid character \" \" in host name");
    assert_eq!(Url::parse("a:b/c").map(|url| url.to_string()), Ok("a:b/c".to_owned()),);
    assert_eq!(
        Url::parse("1:b").unwrap_err(),
        "parse \"1:b\": first path segment in URL cannot contain colon"
    );
}

#[test]
fn parameter_values_keep_their_order() {
    let parameters = |text: &str| Url::parse(text).unwrap().parameters();
    let text = |text: &str| text.as_bytes().to_vec();
    assert_eq!(
        parameters("/?b=2&a=1&b=%201+1&c&=d&e;f=1&g=%z&"),
        [
            (text(""), vec![text("d")]),
            (text("a"), vec![text("1")]),
            (text("b"), vec![text("2"), text(" 1 1")]),
            (text("c"), vec![text("")]),
        ]
        .into(),
    );
    assert_eq!(parameters(&format!("/?{}", "a&".repeat(9_999))).len(), 1);
    assert!(parameters(&format!("/?{}", "a&".repeat(10_000))).is_empty());
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC*", fragment in "\\PC*") {
        let _ = Url::parse_request_uri(&text);
        if let Ok(url) = Url::parse(&format!("{text}#{fragment}")) {
            let _ = (url.to_string(), url.parameters(), url.hostname().len(), url.port().len());
        }
    }

    #[test]
    fn unescaping_reverses_escaping(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
        for mode in [Mode::Path, Mode::UserPassword, Mode::QueryComponent, Mode::Fragment] {
            let text = escape(&bytes, mode);
            prop_assert!(is_valid_encoding(&text, mode));
            prop_assert_eq!(unescape(text.as_bytes(), mode), Ok(bytes.clone()));
        }
    }

    #[test]
    fn formatted_url_parses_to_the_same_url(
        text in "(http|a)://([a-z%A-F0-9]{0,4}@)?[a-z0-9.:%C\\[\\]]{0,8}(/[a-z%2F0-9é ;]{0,6}){0,2}(\\?[a-z=&%]{0,5})?(#[a-z% é]{0,4})?"
    ) {
        if let Ok(url) = Url::parse(&text) {
            let printed = url.to_string();
            prop_assert_eq!(Url::parse(&printed).map(|url| url.to_string()), Ok(printed));
        }
    }
}
