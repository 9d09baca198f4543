//! Splits a manifest into its YAML documents.

/// Splits a file into YAML documents and trims them. Documents that contain only whitespace are omitted.
///
/// A separator at the start of a document is part of that document: `---\n---\n` has one document, `---`.
///
/// Source: apiserver pkg/admission/plugin/manifest/loader.go, `splitYAMLDocuments`; apimachinery
/// pkg/util/yaml/decoder.go, `YAMLReader.Read`.
/// Rule: LOAD-11.
///
/// # Errors
/// Returns kube-apiserver's error if a line starts with `---` and continues with something other than a comment.
pub(super) fn split(bytes: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let mut documents = Vec::new();
    let mut document = Vec::new();
    let mut finish = |document: &mut Vec<u8>| {
        let trimmed = trim(document);
        if !trimmed.is_empty() {
            documents.push(trimmed.to_vec());
        }
        document.clear();
    };
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(rest) = line.strip_prefix(b"---") {
            let rest = String::from_utf8_lossy(trim(rest));
            if !rest.is_empty() && !rest.starts_with('#') {
                return Err(format!("invalid Yaml document separator: {rest}"));
            }
            if !document.is_empty() {
                finish(&mut document);
                continue;
            }
        }
        document.extend_from_slice(line);
        document.push(b'\n');
    }
    finish(&mut document);
    Ok(documents)
}

/// Trims whitespace as Go defines it, including U+0085 and U+00A0.
fn trim(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.trim().as_bytes(),
        Err(_) => bytes.trim_ascii(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(file: &str, expect: &[&str]) {
        let found = split(file.as_bytes()).unwrap();
        let found: Vec<&str> = found.iter().map(|document| std::str::from_utf8(document).unwrap()).collect();
        assert_eq!(found, expect, "{file:?}");
    }

    #[test]
    fn documents_are_split_at_separators() {
        check("a: b\n---\nc: d", &["a: b", "c: d"]);
        check("a: b\r\n--- # next\r\nc: d\r\n", &["a: b", "c: d"]);
        check("a: b\n---   \n\n\n---\nc: d\n", &["a: b", "c: d"]);
        check("---\na: b\n", &["---\na: b"]);
        check("---\n---\n", &["---"]);
        check("# hello\n---\na: b\n", &["# hello", "a: b"]);
        check(" ---\n", &["---"]);
    }

    #[test]
    fn whitespace_is_not_a_document() {
        check("", &[]);
        check("\n  \n", &[]);
        check("a: b\n---\n", &["a: b"]);
    }

    #[test]
    fn text_after_a_separator_is_an_error() {
        let error = split(b"a: b\n--- {c: d}\n").unwrap_err();
        assert_eq!(error, "invalid Yaml document separator: {c: d}");
        let error = split(b"-----BEGIN CERTIFICATE-----\n").unwrap_err();
        assert_eq!(error, "invalid Yaml document separator: --BEGIN CERTIFICATE-----");
    }
}
