//! Reads `--token-auth-file`, which maps bearer tokens to users.

use std::path::Path;

use harness::attributes::UserInfo;
use harness::server::Tokens;

use super::Log;
use crate::{Failure, documents};

/// Adds the users in a CSV file to `tokens`.
///
/// Each record contains a token, a user name, a UID and, in quotes, the comma-separated groups.
///
/// # Errors
/// Returns an error if the file cannot be read, is not valid CSV, or has fewer than three columns.
///
/// Source: apiserver pkg/authentication/token/tokenfile/tokenfile.go, `NewCSV`.
/// Rule: RBAC-29.
pub(crate) fn read(path: &Path, tokens: &mut Tokens, log: Log) -> Result<(), Failure> {
    let shown = path.display();
    let bytes = output::read_for_server(path)
        .map_err(|error| Failure::usage(format!("--token-auth-file {shown}: {error}")))?;
    let text = documents::text(bytes, path.display())?;
    let records =
        records(&text).map_err(|why| Failure::usage(format!("--token-auth-file {shown}: {why}")))?;
    for (index, record) in records.iter().enumerate() {
        let [token, name, uid, rest @ ..] = record.as_slice() else {
            let columns = record.len();
            return Err(Failure::usage(format!(
                "token file '{shown}' must have at least 3 columns (token, user name, user uid), found {columns}"
            )));
        };
        let number = index + 1;
        if token.is_empty() {
            log.info(&format!(
                "empty token has been found in token file '{shown}', record number '{number}'"
            ));
            continue;
        }
        let groups =
            rest.first().map_or_else(Vec::new, |groups| groups.split(',').map(str::to_owned).collect());
        let user = UserInfo { username: name.clone(), uid: uid.clone(), groups, ..UserInfo::default() };
        if tokens.insert(token, user).is_some() {
            log.info(&format!(
                "duplicate token has been found in token file '{shown}', record number '{number}'"
            ));
        }
    }
    Ok(())
}

/// Parses the records in CSV text.
///
/// # Errors
/// Returns an error that names the line with an invalid quote.
///
/// Source: Go's encoding/csv, `readRecord`.
fn records(text: &str) -> Result<Vec<Vec<String>>, String> {
    let mut records = Vec::new();
    let mut record: Vec<String> = Vec::new();
    let mut field = String::new();
    let mut is_quoted = false;
    let mut line = 1;
    let mut letters = text.chars().filter(|&letter| letter != '\r').peekable();
    let wrong = |line: usize, why: &str| Err(format!("parse error on line {line}: {why}"));
    while let Some(letter) = letters.next() {
        line += usize::from(letter == '\n');
        match letter {
            '"' if is_quoted => match letters.peek() {
                Some('"') => {
                    letters.next();
                    field.push('"');
                }
                Some(',' | '\n') | None => is_quoted = false,
                Some(_) => return wrong(line, "extraneous or missing \" in quoted-field"),
            },
            '"' if field.is_empty() => is_quoted = true,
            '"' => return wrong(line, "bare \" in non-quoted-field"),
            ',' if !is_quoted => record.push(std::mem::take(&mut field)),
            '\n' if !is_quoted => {
                // Empty lines are ignored.
                if !record.is_empty() || !field.is_empty() {
                    record.push(std::mem::take(&mut field));
                    records.push(std::mem::take(&mut record));
                }
            }
            letter => field.push(letter),
        }
    }
    if is_quoted {
        return wrong(line, "extraneous or missing \" in quoted-field");
    }
    if !record.is_empty() || !field.is_empty() {
        record.push(field);
        records.push(record);
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&[&[&str]], &str>) {
        let owned = |records: &[&[&str]]| {
            let texts = |record: &&[&str]| record.iter().map(|&field| field.to_owned()).collect::<Vec<_>>();
            records.iter().map(texts).collect::<Vec<_>>()
        };
        assert_eq!(records(text), expected.map(owned).map_err(str::to_owned), "{text}");
    }

    #[test]
    fn records_are_comma_separated_lines() {
        check("", Ok(&[]));
        check("a,b,c", Ok(&[&["a", "b", "c"]]));
        check("a,b,c,\"d,e\"\r\n\n,x,\n", Ok(&[&["a", "b", "c", "d,e"], &["", "x", ""]]));
        check("\"a\"\"b\",\"c\nd\"\n", Ok(&[&["a\"b", "c\nd"]]));
        check("a\"b,c", Err("parse error on line 1: bare \" in non-quoted-field"));
        check("x\n\"a\"b", Err("parse error on line 2: extraneous or missing \" in quoted-field"));
        check("\"a", Err("parse error on line 1: extraneous or missing \" in quoted-field"));
    }
}
