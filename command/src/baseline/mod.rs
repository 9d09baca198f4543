//! Reads and writes `--baseline` of `admit verify` and `admit lint`: the findings that are accepted, each for a reason.

mod changes;
mod heading;
mod unfinished;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use harness::verify::Check;
use harness::verify::report::{Location, StaleEntry};
use serde::{Deserialize, Serialize};
use serde_saphyr::{Location as At, Spanned};

pub(crate) use self::unfinished::Unfinished;
use crate::report_file::ReportFile;
use crate::{Failure, check_help, documents, screen};

/// The version of the file format.
const VERSION: u32 = 1;

/// The reason that this run reports for a finding that it adds to the baseline.
const ADDED: &str = "added to the baseline";

/// The options to compare findings with a baseline, or to write one.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct BaselineOptions {
    /// Accept the findings in this file, each with a reason, so that only other findings count. Entries that no longer
    /// match a finding are reported
    #[arg(long, value_name = "FILE", conflicts_with = "write_baseline")]
    baseline: Option<PathBuf>,

    /// Write a baseline that accepts the current findings. If the file exists, its reasons are kept, and entries that
    /// no longer match a finding are removed
    #[arg(long, value_name = "FILE")]
    write_baseline: Option<PathBuf>,

    /// Set this reason in the entries that --write-baseline adds. By default it is empty, and --baseline rejects the
    /// file until each entry has a reason
    #[arg(long, value_name = "TEXT", requires = "write_baseline")]
    baseline_reason: Option<String>,
}

/// The command whose findings a baseline lists.
#[derive(Debug)]
pub(crate) struct Subcommand {
    /// The name of the subcommand, such as `verify`.
    pub(crate) name: &'static str,
    /// Returns the canonical ID of a check, if it exists.
    pub(crate) find: fn(&str) -> Option<&'static Check>,
    /// Returns whether a finding can refer to a webhook of a given name.
    pub(crate) is_webhook: fn(&str) -> bool,
    /// The expected format of a webhook name, for error messages.
    pub(crate) webhook: &'static str,
}

impl Subcommand {
    /// Returns a check of the command by its ID, ignoring case.
    ///
    /// # Errors
    /// Returns an error that names the command that lists the checks, and the other command if it has the check.
    pub(crate) fn check(&self, id: &str) -> Result<&'static Check, String> {
        (self.find)(id).ok_or_else(|| check_help::unknown(id, self.name))
    }
}

/// The findings of a run, as a baseline accesses them.
pub(crate) trait Findings {
    /// Returns, for each finding, the keys that the baseline must contain to accept it, and the fields that record
    /// whether it is accepted.
    fn findings(&mut self) -> Vec<(BTreeSet<Known>, Acceptance<'_>)>;

    /// Returns the findings that are reported only as consequences of others, each with its reason in the baseline.
    fn consequences(&mut self) -> Vec<(BTreeSet<Known>, &mut Option<String>)>;

    /// Returns the checks that could not be completed, whose findings may be missing.
    fn unfinished(&self) -> Vec<Unfinished>;

    /// Returns whether this run would have reported the finding, because its check ran for the webhook.
    fn would_find(&self, known: &Known) -> bool;

    /// Records the entries whose findings no longer exist.
    fn report_stale(&mut self, stale: Vec<StaleEntry>);
}

/// The fields of a finding that say whether the baseline accepts it.
#[derive(Debug)]
pub(crate) struct Acceptance<'a> {
    /// The reason in the baseline, if the baseline accepts the finding.
    pub(crate) accepted: &'a mut Option<String>,
    /// Whether this run adds the finding to the baseline.
    pub(crate) added: &'a mut bool,
    /// The message, to which the baseline appends the fields that it does not accept.
    pub(crate) message: &'a mut String,
}

/// Identifies the findings of one check and kind for one webhook.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Known {
    /// The ID of the check.
    pub(crate) check: String,
    /// The kind of the finding.
    pub(crate) kind: String,
    /// The subject, usually `CONFIGURATION/WEBHOOK`.
    pub(crate) webhook: String,
    /// The field, if it is part of the finding's identity; otherwise empty.
    pub(crate) field: String,
}

/// How a run treats known findings.
#[derive(Debug)]
pub(crate) enum Accepting {
    /// Accept no findings, because the user did not specify a baseline.
    Nothing,
    /// Accept the findings in this baseline.
    These(Baseline),
    /// Accept all current findings by writing a baseline.
    All {
        /// The file to write.
        file: ReportFile,
        /// The current content of the file.
        known: Baseline,
        /// The reason for new entries.
        reason: String,
    },
}

/// A baseline: the accepted findings and their reasons.
#[derive(Debug)]
pub(crate) struct Baseline {
    subcommand: &'static Subcommand,
    entries: BTreeMap<Known, Accepted>,
}

/// The reason why a finding is accepted, and the line of its entry.
#[derive(Debug)]
struct Accepted {
    reason: String,
    place: Location,
}

/// Whether every entry of a baseline must have a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reasons {
    /// Every entry must have a reason, because the command uses the baseline to accept findings.
    Required,
    /// An entry may lack a reason, because the command rewrites the file.
    Optional,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenBaseline {
    version: Spanned<u32>,
    findings: Vec<WrittenEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenEntry {
    check: Spanned<String>,
    kind: Spanned<String>,
    fields: Option<Spanned<Vec<String>>>,
    webhooks: Spanned<Vec<Spanned<String>>>,
    reason: Spanned<String>,
}

/// A baseline in the file format.
#[derive(Debug, Serialize)]
struct BaselineDocument<'a> {
    version: u32,
    findings: Vec<Entry<'a>>,
}

/// An entry of a baseline in the file format.
#[derive(Debug, Serialize)]
struct Entry<'a> {
    check: &'a str,
    kind: &'a str,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    fields: BTreeSet<&'a str>,
    webhooks: Vec<&'a str>,
    reason: &'a str,
}

impl BaselineOptions {
    /// Reads the baseline, and creates the file to write, if any.
    ///
    /// # Errors
    /// Returns an error if a baseline is invalid or cannot be read, or if a file cannot be written.
    pub(crate) fn open(&self, subcommand: &'static Subcommand) -> Result<Accepting, Failure> {
        if let Some(path) = &self.baseline {
            return Ok(Accepting::These(Baseline::read(path, subcommand, Reasons::Required)?));
        }
        let Some(path) = &self.write_baseline else { return Ok(Accepting::Nothing) };
        // Only a regular file can contain reasons to keep; a device cannot.
        let is_there = path.is_file();
        let known = if is_there {
            Baseline::read(path, subcommand, Reasons::Optional)?
        } else {
            Baseline::empty(subcommand)
        };
        // The file does not contain objects and is meant to be committed, so others may read it.
        let file = ReportFile::create_shared(path)?;
        let reason = self.baseline_reason.clone().unwrap_or_default();
        Ok(Accepting::All { file, known, reason })
    }
}

impl Accepting {
    /// Marks accepted findings, reports entries without a finding, and writes the new baseline, if any.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub(crate) fn apply(self, report: &mut impl Findings) -> Result<(), Failure> {
        match self {
            Self::Nothing => Ok(()),
            Self::These(baseline) => {
                baseline.apply(report);
                Ok(())
            }
            Self::All { file, known, reason } => {
                let (text, missing) = known.rewritten(report, &reason)?;
                file.write(&text)?;
                for change in known.changes(report) {
                    screen::status!("{change}");
                }
                if let Some(warning) = unfinished::warning(&report.unfinished()) {
                    screen::status!("{warning}");
                }
                if missing > 0 {
                    let entries = several_entries(missing);
                    screen::status!(
                        "{entries} in the baseline {} no reason: fill in `reason`, or pass --baseline-reason TEXT",
                        if missing == 1 { "has" } else { "have" }
                    );
                }
                for (keys, Acceptance { accepted, added, .. }) in report.findings() {
                    let kept = known.reason(&keys);
                    *added = kept.is_none();
                    *accepted = Some(match kept {
                        None => ADDED.to_owned(),
                        Some(kept) if !kept.is_empty() => kept,
                        Some(_) if !reason.is_empty() => reason.clone(),
                        Some(_) => "in the baseline without a reason".to_owned(),
                    });
                }
                Ok(())
            }
        }
    }
}

/// Returns the suffix for a count of findings, such as `, 4 accepted (1 added to the baseline)`; may be empty.
pub(crate) fn counts(accepted: usize, added: usize) -> String {
    match (accepted, added) {
        (0, _) => String::new(),
        (accepted, 0) => format!(", {accepted} accepted"),
        (accepted, added) => format!(", {accepted} accepted ({added} added to the baseline)"),
    }
}

/// Returns the message about an entry whose finding no longer exists.
pub(crate) fn stale(entry: &StaleEntry) -> String {
    let StaleEntry { check, kind, webhook, field, lacks_fields, .. } = entry;
    let what = format!("the baseline accepts {check} \"{kind}\" of {webhook}");
    match (field.as_str(), lacks_fields) {
        ("", true) => {
            format!(
                "{what} in any field, including new ones: list the current fields with --write-baseline FILE"
            )
        }
        ("", false) => format!("{what}, which the check no longer finds: remove the entry"),
        (field, _) => format!(
            "{what} for {field}, which the check no longer finds: remove it, or the entry if it has no other field"
        ),
    }
}

impl Baseline {
    fn empty(subcommand: &'static Subcommand) -> Self {
        Self { subcommand, entries: BTreeMap::new() }
    }

    /// Reads the baseline at `path`.
    ///
    /// # Errors
    /// Returns a usage failure with the file, line, and field of the first error.
    fn read(path: &Path, subcommand: &'static Subcommand, reasons: Reasons) -> Result<Self, Failure> {
        let file = path.display().to_string();
        let bytes = output::read(path).map_err(|error| {
            let hint = if error.kind() == std::io::ErrorKind::NotFound {
                "; create the file with --write-baseline FILE"
            } else {
                ""
            };
            Failure::usage(format!("--baseline {file}: {error}{hint}"))
        })?;
        Self::parse(&documents::text(bytes, &file)?, &file, subcommand, reasons)
    }

    fn parse(
        text: &str,
        file: &str,
        subcommand: &'static Subcommand,
        reasons: Reasons,
    ) -> Result<Self, Failure> {
        let wrong = |at: At, message: &str| Failure::usage(format!("{file}:{}: {message}", at.line()));
        let name = subcommand.name;
        if let Some(other) = heading::writer(text).filter(|other| *other != name) {
            return Err(Failure::usage(format!(
                "{file}: this is a baseline of `admit {other}`, for `admit {other} --baseline {file}`; create one for \
                 `admit {name}` with `admit {name} --write-baseline FILE`"
            )));
        }
        let written: WrittenBaseline = serde_saphyr::from_str(text).map_err(|error| {
            let message = error.without_snippet().to_string();
            let message = message.split(" at line ").next().unwrap_or_default();
            wrong(error.location().unwrap_or(At::UNKNOWN), &fake_webhooks::plain_yaml_message(message))
        })?;
        if written.version.value != VERSION {
            let message = format!("version is {}, expected {VERSION}", written.version.value);
            return Err(wrong(written.version.referenced, &message));
        }
        if reasons == Reasons::Required {
            let empty = written.findings.iter().map(|entry| &entry.reason);
            let empty: Vec<&Spanned<String>> =
                empty.filter(|reason| reason.value.trim().is_empty()).collect();
            if let [first, _, ..] = empty.as_slice() {
                let lines: Vec<String> =
                    empty.iter().map(|reason| reason.referenced.line().to_string()).collect();
                let message = format!(
                    "{} do not say why their findings are accepted: fill in `reason` on lines {}",
                    several_entries(empty.len()),
                    lines.join(", ")
                );
                return Err(wrong(first.referenced, &message));
            }
        }
        let mut baseline = Self::empty(subcommand);
        for (index, entry) in written.findings.into_iter().enumerate() {
            baseline.add(entry, file, reasons).map_err(|(at, field, message)| {
                wrong(at, &format!("findings[{index}].{field}: {message}"))
            })?;
        }
        Ok(baseline)
    }

    /// Adds an entry that was read from `file`.
    ///
    /// # Errors
    /// Returns the invalid field and what is wrong with it.
    fn add(
        &mut self,
        entry: WrittenEntry,
        file: &str,
        reasons: Reasons,
    ) -> Result<(), (At, &'static str, String)> {
        let Subcommand { is_webhook, webhook: expected, .. } = self.subcommand;
        let WrittenEntry { check, kind, fields, webhooks, reason } = entry;
        let is_empty = |text: &str| text.trim().is_empty();
        let known = match self.subcommand.check(&check.value) {
            Ok(known) => known,
            Err(message) => return Err((check.referenced, "check", message)),
        };
        if is_empty(&kind.value) {
            let message = "must be the kind of the finding in the report".to_owned();
            return Err((kind.referenced, "kind", message));
        }
        if reasons == Reasons::Required && is_empty(&reason.value) {
            return Err((reason.referenced, "reason", "must say why the finding is accepted".to_owned()));
        }
        if webhooks.value.is_empty() {
            return Err((webhooks.referenced, "webhooks", "must name at least one webhook".to_owned()));
        }
        let fields = match fields {
            None => vec![String::new()],
            Some(fields) if fields.value.is_empty() || fields.value.iter().any(|field| is_empty(field)) => {
                let message = "must name at least one field, or be absent".to_owned();
                return Err((fields.referenced, "fields", message));
            }
            Some(fields) => fields.value,
        };
        for webhook in webhooks.value {
            let at = webhook.referenced;
            if !is_webhook(&webhook.value) {
                let message = format!("`{}`: expected {expected}", webhook.value);
                return Err((at, "webhooks", message));
            }
            let place = Location { file: file.to_owned(), line: check.referenced.line() };
            for field in &fields {
                let accepted = Accepted { reason: reason.value.trim().to_owned(), place: place.clone() };
                let key = Known {
                    check: known.id.to_owned(),
                    kind: kind.value.clone(),
                    webhook: webhook.value.clone(),
                    field: field.clone(),
                };
                let mut described = format!("{} \"{}\" of {}", key.check, key.kind, key.webhook);
                if !field.is_empty() {
                    described = format!("{described} for {field}");
                }
                if let Some(other) = self.entries.insert(key, accepted) {
                    let message = format!("{described} is also on line {}", other.place.line);
                    return Err((at, "webhooks", message));
                }
            }
        }
        Ok(())
    }

    /// Returns the reason for accepting a finding with these keys, or `None` if the baseline does not have an entry for
    /// each key.
    fn reason(&self, keys: &BTreeSet<Known>) -> Option<String> {
        let reasons: Option<BTreeSet<&str>> =
            keys.iter().map(|key| Some(self.entry(key)?.reason.as_str())).collect();
        reasons.map(|reasons| {
            let filled: Vec<&str> = reasons.into_iter().filter(|reason| !reason.is_empty()).collect();
            filled.join("; ")
        })
    }

    /// Marks accepted findings, and reports entries without a finding.
    ///
    /// A finding is accepted only if the baseline lists all of its webhooks and fields, so that an additional webhook or
    /// field makes it a new finding. An entry without fields accepts all fields, and is reported if the finding has fields.
    fn apply(&self, report: &mut impl Findings) {
        let mut found = BTreeSet::new();
        for (known, Acceptance { accepted, message, .. }) in report.findings() {
            *accepted = self.reason(&known);
            message.push_str(&self.new_fields(&known));
            found.extend(known);
        }
        report.consequences().into_iter().for_each(|(known, accepted)| *accepted = self.reason(&known));
        let entries = self.entries.iter();
        let stale = entries.filter(|(known, _)| {
            known.is_without_the_fields_of(&found) || (!found.contains(known) && report.would_find(known))
        });
        let stale = stale.map(|(known, accepted)| StaleEntry {
            check: known.check.clone(),
            kind: known.kind.clone(),
            webhook: known.webhook.clone(),
            field: known.field.clone(),
            lacks_fields: known.is_without_the_fields_of(&found),
            place: accepted.place.clone(),
        });
        let stale = stale.collect();
        report.report_stale(stale);
    }

    /// Creates a baseline that accepts all findings of `report`.
    ///
    /// Entries keep their reasons, and new ones get `reason`. Entries that `report` cannot confirm, such as those of
    /// checks that did not run, are kept. Also returns the number of entries without a reason.
    fn rewritten(&self, report: &mut impl Findings, reason: &str) -> Result<(String, usize), Failure> {
        let found: BTreeSet<Known> = report.findings().into_iter().flat_map(|(known, _)| known).collect();
        let reason_of = |known: &Known| {
            let kept = self.entry(known).map(|entry| entry.reason.as_str());
            kept.filter(|kept| !kept.is_empty()).unwrap_or(reason)
        };
        let mut accepted: BTreeMap<&Known, &str> =
            found.iter().map(|known| (known, reason_of(known))).collect();
        for (known, Accepted { reason, .. }) in &self.entries {
            let is_replaced = known.is_without_the_fields_of(&found);
            if !found.contains(known) && !is_replaced && !report.would_find(known) {
                accepted.insert(known, reason);
            }
        }
        // The fields of a webhook with the same reason share an entry, and so do webhooks with the same fields.
        let mut by_webhook: BTreeMap<(&str, &str, &str, &str), BTreeSet<&str>> = BTreeMap::new();
        for (known, reason) in accepted {
            let fields = by_webhook.entry((&known.check, &known.kind, reason, &known.webhook)).or_default();
            fields.extend(Some(known.field.as_str()).filter(|field| !field.is_empty()));
        }
        let mut entries: BTreeMap<(&str, &str, &str, BTreeSet<&str>), Vec<&str>> = BTreeMap::new();
        for ((check, kind, reason, webhook), fields) in by_webhook {
            entries.entry((check, kind, reason, fields)).or_default().push(webhook);
        }
        let missing = entries.keys().filter(|(_, _, reason, _)| reason.trim().is_empty()).count();
        let entries = entries.into_iter();
        let findings = entries.map(|((check, kind, reason, fields), webhooks)| Entry {
            check,
            kind,
            fields,
            webhooks,
            reason,
        });
        let written = BaselineDocument { version: VERSION, findings: findings.collect() };
        let text = serde_saphyr::to_string(&written).map_err(Failure::environment)?;
        Ok((format!("{}{text}", heading::new(self.subcommand.name)), missing))
    }
}

/// Formats a number of entries, such as `1 entry` or `2 entries`.
fn several_entries(count: usize) -> String {
    if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") }
}

#[cfg(test)]
mod tests;
