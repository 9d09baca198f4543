//! Parses and compares semantic versions.

use std::cmp::Ordering;
use std::fmt;

use go_std::quote::quote;

/// A parsed semantic version.
///
/// Source: github.com/blang/semver/v4 semver.go, `Version`.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    numbers: [u64; 3],
    prerelease: Vec<Prerelease>,
    build: Vec<String>,
}

/// A prerelease identifier; numbers sort before names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Prerelease {
    Number(u64),
    Name(String),
}

impl Version {
    /// Parses a version such as `1.2.3-rc.1+build`.
    ///
    /// # Errors
    /// Returns blang/semver's message if the text is not a version.
    ///
    /// Source: github.com/blang/semver/v4 semver.go, `Parse`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let major = number("Major", major)?;
        let minor = number("Minor", minor)?;
        let (rest, build) = rest.split_once('+').map_or((rest, None), |(rest, build)| (rest, Some(build)));
        let (patch, prerelease) =
            rest.split_once('-').map_or((rest, None), |(patch, prerelease)| (patch, Some(prerelease)));
        let patch = number("Patch", patch)?;
        let prerelease = prerelease.into_iter().flat_map(|text| text.split('.')).map(Prerelease::parse);
        let prerelease = prerelease.collect::<Result<_, _>>()?;
        let build = build.into_iter().flat_map(|text| text.split('.')).map(build_metadata);
        Ok(Self { numbers: [major, minor, patch], prerelease, build: build.collect::<Result<_, _>>()? })
    }

    /// Parses a version that may begin with `v`, omit the minor and patch numbers, and contain leading zeros.
    ///
    /// # Errors
    /// Returns kube-apiserver's or blang/semver's message if the text is not a version.
    ///
    /// Source: apiserver pkg/cel/library/semverlib.go, `normalizeAndParse`.
    pub(crate) fn parse_normalized(text: &str) -> Result<Self, String> {
        let mut parts: Vec<_> =
            text.strip_prefix('v').unwrap_or(text).splitn(3, '.').map(without_leading_zeros).collect();
        if parts.len() < 3 {
            if parts.last().is_some_and(|part| part.contains(['+', '-'])) {
                return Err("short version cannot contain PreRelease/Build meta data".to_owned());
            }
            parts.resize(3, "0".to_owned());
        }
        Self::parse(&parts.join("."))
    }

    pub(crate) fn major(&self) -> i64 {
        self.numbers[0].cast_signed()
    }

    pub(crate) fn minor(&self) -> i64 {
        self.numbers[1].cast_signed()
    }

    pub(crate) fn patch(&self) -> i64 {
        self.numbers[2].cast_signed()
    }

    /// Compares two versions, ignoring build metadata.
    ///
    /// Source: github.com/blang/semver/v4 semver.go, `Compare`.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        // A version without a prerelease is newer than one with a prerelease.
        let released = self.prerelease.is_empty().cmp(&other.prerelease.is_empty());
        self.numbers.cmp(&other.numbers).then(released).then_with(|| self.prerelease.cmp(&other.prerelease))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        for (index, part) in self.prerelease.iter().enumerate() {
            f.write_str(if index == 0 { "-" } else { "." })?;
            match part {
                Prerelease::Number(number) => write!(f, "{number}")?,
                Prerelease::Name(name) => f.write_str(name)?,
            }
        }
        for (index, part) in self.build.iter().enumerate() {
            write!(f, "{}{part}", if index == 0 { "+" } else { "." })?;
        }
        Ok(())
    }
}

impl Prerelease {
    /// Parses a prerelease identifier, such as `rc` or `1`.
    ///
    /// Source: github.com/blang/semver/v4 semver.go, `NewPRVersion`.
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Prerelease is empty".to_owned());
        }
        if is_number(text) {
            if has_leading_zeros(text) {
                let text = quote(text);
                return Err(format!("Numeric PreRelease version must not contain leading zeroes {text}"));
            }
            return unsigned(text).map(Self::Number);
        }
        if is_name(text) {
            return Ok(Self::Name(text.to_owned()));
        }
        Err(format!("Invalid character(s) found in prerelease {}", quote(text)))
    }
}

fn build_metadata(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("Build meta data is empty".to_owned());
    }
    if !is_name(text) {
        return Err(format!("Invalid character(s) found in build meta data {}", quote(text)));
    }
    Ok(text.to_owned())
}

/// Parses one of the three numbers of a version; `part` is the name of the number in errors.
fn number(part: &str, text: &str) -> Result<u64, String> {
    if !is_number(text) {
        let part = part.to_ascii_lowercase();
        return Err(format!("Invalid character(s) found in {part} number {}", quote(text)));
    }
    if has_leading_zeros(text) {
        return Err(format!("{part} number must not contain leading zeroes {}", quote(text)));
    }
    unsigned(text)
}

/// Parses digits, and returns an error if the text is empty or the number does not fit into 64 bits.
///
/// Source: Go strconv/atoi.go, `ParseUint`.
fn unsigned(text: &str) -> Result<u64, String> {
    let why = if text.is_empty() { "invalid syntax" } else { "value out of range" };
    text.parse().ok().ok_or_else(|| format!("strconv.ParseUint: parsing {}: {why}", quote(text)))
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn has_leading_zeros(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0')
}

/// Removes leading zeros from a part of a version, but keeps one zero if no other digit follows.
fn without_leading_zeros(part: &str) -> String {
    if part.len() <= 1 {
        return part.to_owned();
    }
    let rest = part.trim_start_matches('0');
    if rest.starts_with(|first: char| first.is_ascii_digit()) { rest.to_owned() } else { format!("0{rest}") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn invalid_version_has_the_error_of_the_server() {
        for (text, error) in [
            ("", "Version string empty"),
            ("1.2", "No Major.Minor.Patch elements found"),
            ("v1.2.3", "Invalid character(s) found in major number \"v1\""),
            ("01.2.3", "Major number must not contain leading zeroes \"01\""),
            (".2.3", "strconv.ParseUint: parsing \"\": invalid syntax"),
            (
                "1.18446744073709551616.3",
                "strconv.ParseUint: parsing \"18446744073709551616\": value out of range",
            ),
            ("1.2.3.4", "Invalid character(s) found in patch number \"3.4\""),
            ("1.2.3-", "Prerelease is empty"),
            ("1.2.3-01", "Numeric PreRelease version must not contain leading zeroes \"01\""),
            ("1.2.3-é", "Invalid character(s) found in prerelease \"é\""),
            ("1.2.3+", "Build meta data is empty"),
            ("1.2.3-a+b_c", "Invalid character(s) found in build meta data \"b_c\""),
        ] {
            assert_eq!(Version::parse(text).map(|_| ()), Err(error.to_owned()), "{text}");
        }
    }

    #[test]
    fn partial_version_is_completed() {
        for (text, expected) in
            [("v1", "1.0.0"), ("01.002", "1.2.0"), ("v1.2.03-rc.1+b", "1.2.3-rc.1+b"), ("00.0.0", "0.0.0")]
        {
            let version = Version::parse_normalized(text).map(|version| version.to_string());
            assert_eq!(version, Ok(expected.to_owned()), "{text}");
        }
        let error = "short version cannot contain PreRelease/Build meta data".to_owned();
        assert_eq!(Version::parse_normalized("1.0-rc").map(|_| ()), Err(error));
    }

    #[test]
    fn versions_are_ordered_as_in_the_specification() {
        let versions = [
            "0.9.9",
            "1.0.0-1",
            "1.0.0-2",
            "1.0.0-10",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta",
            "1.0.0",
            "1.0.1-rc",
            "1.10.0",
            "18446744073709551615.0.0",
        ];
        let versions = versions.map(|text| Version::parse(text).unwrap());
        for (left, version) in versions.iter().enumerate() {
            for (right, other) in versions.iter().enumerate() {
                assert_eq!(version.compare(other), left.cmp(&right), "{version} {other}");
            }
        }
        let [plain, built] = ["1.0.0", "1.0.0+b"].map(|text| Version::parse(text).unwrap());
        assert!(plain.compare(&built).is_eq());
    }

    proptest! {
        #[test]
        fn formatted_version_parses_to_the_same_version(text in "[0-9]{1,3}(\\.[0-9]{1,2}){2}(-[a-z0-9-]{1,3}(\\.[0-9]{1,2})?)?(\\+[a-z0]{1,2})?") {
            if let Ok(version) = Version::parse(&text) {
                prop_assert_eq!(version.to_string(), text);
            }
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = Version::parse(&text);
            let _ = Version::parse_normalized(&text);
        }
    }
}
