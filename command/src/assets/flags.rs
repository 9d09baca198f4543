//! Parses the command line of a Kubernetes program from a table of its flags.

use std::collections::BTreeMap;
use std::net::IpAddr;

use harness::server::NodePortRange;
use kubernetes_cel::value::parse_duration;

/// How admit handles a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The flag is supported.
    Supported,
    /// admit ignores the flag and logs a message.
    Ignored,
    /// The program rejects the flag, because clients would notice that it has no effect.
    Unsupported,
}

/// A flag of a Kubernetes program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flag {
    /// The name, without dashes.
    pub(super) name: &'static str,
    /// The type in `--help`; `bool` for a flag that does not require a value.
    pub(super) kind: &'static str,
    pub(super) effect: Effect,
}

impl Flag {
    fn needs_value(&self) -> bool {
        self.kind != "bool"
    }

    /// Checks that a value is valid for the type of the flag.
    ///
    /// Source: pflag bool.go, int.go, ip.go, duration.go; the messages of kube-apiserver 1.37.1.
    fn check(&self, value: &str) -> Result<(), String> {
        let number = |function: &str, is_one: bool| {
            if is_one {
                return Ok(());
            }
            Err(format!("strconv.{function}: parsing {}: invalid syntax", quoted(value)))
        };
        let checked = match self.kind {
            "bool" if self.name != "version" => number("ParseBool", boolean(value).is_some()),
            "int" => number("ParseInt", value.parse::<i64>().is_ok()),
            "Level" => number("ParseUint", value.parse::<u32>().is_ok()),
            "float" | "float32" => number("ParseFloat", value.parse::<f64>().is_ok()),
            "duration" if parse_duration(value).is_none() => {
                let why = match value.parse::<f64>() {
                    Ok(_) => "missing unit in duration",
                    Err(_) => "invalid duration",
                };
                Err(format!("time: {why} {}", quoted(value)))
            }
            "portRange" => number("Atoi", NodePortRange::parse(value).is_some()),
            "ip" if value.trim().parse::<IpAddr>().is_err() && !value.is_empty() => {
                Err(format!("failed to parse IP: {}", quoted(value)))
            }
            _ => Ok(()),
        };
        let shown = if self.name == "v" { "-v, --v".to_owned() } else { format!("--{}", self.name) };
        checked.map_err(|why| format!("invalid argument {} for \"{shown}\" flag: {why}", quoted(value)))
    }
}

/// Quotes a string as the messages of a Go program do.
fn quoted(text: &str) -> String {
    harness::quoting::quote(text)
}

/// Parses a boolean as Go does; returns `None` for other strings.
///
/// Source: Go's strconv, `ParseBool`.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

/// The flag syntax of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    /// The syntax of kube-apiserver: two dashes; `_` in a name equals `-`; `-v` and `-h` are short flags.
    Pflag,
    /// The syntax of etcd: one or two dashes.
    Go,
}

/// The flags of a program and their syntax.
#[derive(Debug)]
pub(super) struct Table {
    syntax: Syntax,
    flags: BTreeMap<&'static str, Flag>,
}

/// The result of parsing a command line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// List the flags.
    Help,
    /// Run the program with these values.
    Run(Values),
}

/// The flag values in a command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Values {
    flags: BTreeMap<&'static str, Vec<String>>,
    pub(super) arguments: Vec<String>,
}

impl Values {
    pub(super) fn last(&self, name: &str) -> Option<&str> {
        self.flags.get(name)?.last().map(String::as_str)
    }

    /// Returns the last value of a flag if it is not empty.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.last(name).filter(|value| !value.is_empty())
    }

    /// Returns all values of a flag in order, split at commas.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        let values = self.flags.get(name).into_iter().flatten();
        let split = values.filter(|value| !value.is_empty()).flat_map(|value| value.split(','));
        split.map(str::to_owned).collect()
    }

    /// Returns all values of a flag in order.
    pub(super) fn all(&self, name: &str) -> &[String] {
        self.flags.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the value of a boolean flag, or its default.
    pub(super) fn is_set(&self, name: &str, default: bool) -> bool {
        self.last(name).and_then(boolean).unwrap_or(default)
    }

    /// Returns the flags and their values as `/flagz` shows them.
    pub(super) fn shown(&self, table: &Table) -> BTreeMap<String, String> {
        let show = |name: &'static str| {
            let last = self.last(name).unwrap_or_default();
            let text = match table.flags.get(name).map(|flag| flag.kind) {
                Some("bool") => boolean(last).unwrap_or_default().to_string(),
                Some("strings" | "stringArray") => format!("[{}]", self.list(name).join(",")),
                _ => last.to_owned(),
            };
            (name.to_owned(), text)
        };
        self.names().map(show).collect()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.flags.keys().copied()
    }
}

impl Table {
    /// Parses a table: each line contains a flag's name, type, and effect; lines in brackets are headings.
    pub(super) fn read(text: &'static str, syntax: Syntax) -> Self {
        let flags = text.lines().filter(|line| !line.starts_with(['#', '['])).filter_map(|line| {
            let mut words = line.split(' ');
            let (name, kind, effect) = (words.next()?, words.next()?, words.next()?);
            let effect = match effect {
                "supported" => Effect::Supported,
                "unsupported" => Effect::Unsupported,
                _ => Effect::Ignored,
            };
            Some((name, Flag { name, kind, effect }))
        });
        Self { syntax, flags: flags.collect() }
    }

    /// Returns the flags in `values` with this effect.
    pub(super) fn with_effect(&self, values: &Values, effect: Effect) -> Vec<&'static str> {
        values.names().filter(|name| self.flags.get(name).is_some_and(|flag| flag.effect == effect)).collect()
    }

    /// Parses a command line.
    ///
    /// # Errors
    /// Returns the error message that the program prints for invalid arguments.
    ///
    /// Source: pflag flag.go, `parseArgs`; Go's flag package, `parseOne`.
    pub(super) fn parse(&self, arguments: impl IntoIterator<Item = String>) -> Result<Parsed, String> {
        let mut arguments = arguments.into_iter();
        let mut values = Values::default();
        while let Some(argument) = arguments.next() {
            let is_long = argument.starts_with("--");
            if argument == "--" {
                values.arguments.extend(arguments);
                break;
            }
            if !argument.starts_with('-') || argument == "-" {
                values.arguments.push(argument);
                if self.syntax == Syntax::Go {
                    values.arguments.extend(arguments);
                    break;
                }
                continue;
            }
            let text = argument.trim_start_matches('-');
            if text.is_empty() || text.starts_with('=') || argument.starts_with("---") {
                return Err(format!("bad flag syntax: {argument}"));
            }
            let (written, value) = match (self.syntax, is_long) {
                (Syntax::Pflag, false) => short(text, &argument)?,
                (Syntax::Pflag, true) | (Syntax::Go, _) => match text.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (text, None),
                },
            };
            let name =
                if self.syntax == Syntax::Pflag { written.replace('_', "-") } else { written.to_owned() };
            let Some(flag) = self.flags.get(name.as_str()) else {
                return match (self.syntax, name.as_str()) {
                    (_, "help" | "h") => Ok(Parsed::Help),
                    (Syntax::Pflag, _) => Err(format!("unknown flag: --{written}")),
                    (Syntax::Go, _) => Err(format!("flag provided but not defined: -{written}")),
                };
            };
            let value = match value {
                Some(value) => value,
                None if !flag.needs_value() => "true".to_owned(),
                None => arguments.next().ok_or_else(|| match self.syntax {
                    Syntax::Pflag => format!("flag needs an argument: --{name}"),
                    Syntax::Go => format!("flag needs an argument: -{name}"),
                })?,
            };
            flag.check(&value)?;
            values.flags.entry(flag.name).or_default().push(value);
        }
        Ok(Parsed::Run(values))
    }
}

/// Parses a short flag of kube-apiserver, with its value if it is attached.
fn short<'a>(text: &'a str, argument: &str) -> Result<(&'a str, Option<String>), String> {
    if text == "h" {
        return Ok((text, None));
    }
    let Some(value) = text.strip_prefix('v') else {
        let first: String = text.chars().take(1).collect();
        return Err(format!("unknown shorthand flag: '{first}' in {argument}"));
    };
    let value = value.strip_prefix('=').unwrap_or(value);
    Ok(("v", (text != "v").then(|| value.to_owned())))
}

/// Formats the flags of a table for `--help`.
pub(super) fn help(text: &str) -> String {
    let mut help = String::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.ends_with(" deprecated")) {
        if let Some(heading) = line.strip_prefix('[') {
            help.extend(["\n", heading.trim_end_matches(']'), ":\n\n"]);
            continue;
        }
        let mut words = line.split(' ');
        let (name, kind) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let begin = if name == "v" { "  -v, " } else { "      " };
        let kind = if kind == "bool" { String::new() } else { format!(" {kind}") };
        let effect = match words.next() {
            Some("ignored") => "without effect",
            Some("unsupported") => "not supported: exit status 5",
            _ => "",
        };
        let line = format!("{begin}--{:<58} {effect}", format!("{name}{kind}"));
        help.extend([line.trim_end(), "\n"]);
    }
    help
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# A table.\n[Some flags]\na-flag string supported\non bool ignored\nport int supported\nat ip unsupported\nv Level supported";

    #[track_caller]
    fn check(syntax: Syntax, line: &str, expected: Result<&[(&str, &[&str])], &str>) {
        let parsed = Table::read(TEXT, syntax).parse(line.split_whitespace().map(str::to_owned));
        let found = parsed.map(|parsed| match parsed {
            Parsed::Help => vec![("help".to_owned(), vec![])],
            Parsed::Run(values) => {
                let flags = values.flags.into_iter().map(|(name, values)| (name.to_owned(), values));
                let arguments = (!values.arguments.is_empty()).then(|| ("-".to_owned(), values.arguments));
                flags.chain(arguments).collect()
            }
        });
        let owned = |pairs: &[(&str, &[&str])]| {
            let texts = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect::<Vec<_>>();
            pairs.iter().map(|(name, values)| ((*name).to_owned(), texts(values))).collect::<Vec<_>>()
        };
        assert_eq!(found, expected.map(owned).map_err(str::to_owned), "{line}");
    }

    #[test]
    fn flags_are_parsed_as_by_kube_apiserver() {
        let pflag = |line, expected| check(Syntax::Pflag, line, expected);
        pflag("", Ok(&[]));
        pflag("--a-flag=x --a_flag y --on", Ok(&[("a-flag", &["x", "y"]), ("on", &["true"])]));
        pflag("--on=false --a-flag=", Ok(&[("a-flag", &[""]), ("on", &["false"])]));
        pflag("-v=2 -v3 -v 4 --v 5", Ok(&[("v", &["2", "3", "4", "5"])]));
        pflag("--on x -- --y", Ok(&[("on", &["true"]), ("-", &["x", "--y"])]));
        pflag("--help --foo", Ok(&[("help", &[])]));
        pflag("-h", Ok(&[("help", &[])]));
        pflag("--foo", Err("unknown flag: --foo"));
        pflag("--a-flag", Err("flag needs an argument: --a-flag"));
        pflag("--=x", Err("bad flag syntax: --=x"));
        pflag("-x", Err("unknown shorthand flag: 'x' in -x"));
        pflag(
            "--port x",
            Err(r#"invalid argument "x" for "--port" flag: strconv.ParseInt: parsing "x": invalid syntax"#),
        );
        pflag(
            "--on=x",
            Err(r#"invalid argument "x" for "--on" flag: strconv.ParseBool: parsing "x": invalid syntax"#),
        );
        pflag("--at x", Err(r#"invalid argument "x" for "--at" flag: failed to parse IP: "x""#));
        pflag(
            "-v x",
            Err(r#"invalid argument "x" for "-v, --v" flag: strconv.ParseUint: parsing "x": invalid syntax"#),
        );
    }

    #[test]
    fn flags_are_parsed_as_by_etcd() {
        check(Syntax::Go, "-a-flag x --on", Ok(&[("a-flag", &["x"]), ("on", &["true"])]));
        check(Syntax::Go, "-foo", Err("flag provided but not defined: -foo"));
        check(Syntax::Go, "--foo=1", Err("flag provided but not defined: -foo"));
        check(Syntax::Go, "x --on", Ok(&[("-", &["x", "--on"])]));
    }

    #[test]
    fn help_lists_each_flag_with_its_effect() {
        let help = help(TEXT);
        assert!(help.starts_with("\nSome flags:\n\n      --a-flag string\n      --on  "), "{help}");
        assert!(help.contains("without effect\n") && help.ends_with("  -v, --v Level\n"), "{help}");
    }
}
