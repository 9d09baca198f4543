//! Reads the objects to test: the objects of `-f`, or the built-in corpus.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use harness::verify::corpus::Extent;
use harness::verify::report::Shard;
use harness::verify::{Environment, Subject, corpus};
use serde_json::Value;

use super::shard;
use crate::{Failure, documents};

/// The options that select the objects to send.
#[derive(Debug, clap::Args)]
pub(super) struct Objects {
    /// Send only these objects, instead of a built-in corpus of the kinds that the rules match: files, directories, or -
    /// for standard input
    #[arg(short = 'f', long, value_name = "PATH", num_args = 1..)]
    filename: Vec<PathBuf>,

    /// Add this annotation to most objects of the built-in corpus, for webhooks that act only on objects that have it;
    /// can be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_and_value, conflicts_with = "filename")]
    pub(super) annotation: Vec<(String, String)>,

    /// Add this label to most objects of the built-in corpus; can be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_and_value, conflicts_with = "filename")]
    pub(super) label: Vec<(String, String)>,

    /// Check only whether a webhook is idempotent, safe to reinvoke, and honest about dry runs, and whether its patches
    /// apply (V01, V02, V03, V05, V07, V08, V11, V15, V38, V39, and V40)
    #[arg(long, conflicts_with_all = ["check", "thorough", "list"], help_heading = "Selection")]
    pub(super) quick: bool,

    /// Send all objects of the built-in corpus, not only the representative ones
    #[arg(long, conflicts_with = "filename", help_heading = "Selection")]
    thorough: bool,

    /// Send only a part of the corpus: 3/16 is the third of 16 parts, which has every 16th object. auto/16 reads the
    /// part from `JOB_COMPLETION_INDEX`, counted from 0, as in an Indexed Job. `admit verify merge` combines the
    /// reports
    #[arg(long, value_name = "INDEX/COUNT", value_parser = shard::parse, help_heading = "Selection")]
    pub(super) shard: Option<Shard>,
}

/// The objects of a run. They are read one at a time.
pub(super) struct Corpus {
    pub(super) objects: Box<dyn Iterator<Item = Result<Value, Failure>> + Send>,
    /// The number of objects, or `None` if it is not known before they are read.
    pub(super) count: Option<u64>,
    /// The number of built-in objects that are skipped because they are not representative.
    pub(super) left_out: u64,
}

/// The reason why objects of the built-in corpus are skipped.
pub(super) const NOT_REPRESENTATIVE: &str =
    "without --thorough, only representative objects of the built-in corpus are sent";

impl Objects {
    /// Returns the objects of `-f`, or the built-in objects, limited to the shard.
    ///
    /// `around` must contain the custom resource definitions.
    pub(super) fn corpus(
        &self,
        subjects: &[Subject],
        around: &[Value],
        environment: &Environment,
        is_quiet: bool,
    ) -> Result<Corpus, Failure> {
        let Corpus { objects, count, left_out } = if self.filename.is_empty() {
            self.built_in(subjects, around, environment, is_quiet)
        } else {
            let objects = documents::stream(&self.filename)?.map(|document| Ok(document?.object));
            // Without progress, the count is not shown.
            let count = if is_quiet { None } else { self.count() };
            Corpus { objects: Box::new(objects), count, left_out: 0 }
        };
        let Some(shard) = self.shard else { return Ok(Corpus { objects, count, left_out }) };
        // Every shard reports objects that cannot be read.
        let own =
            (0..).zip(objects).filter(move |(position, object)| object.is_err() || shard.includes(*position));
        let included =
            |positions: Range<u64>| positions.filter(|position| shard.includes(*position)).count() as u64;
        Ok(Corpus {
            objects: Box::new(own.map(|(_, object)| object)),
            count: count.map(|count| included(0..count)),
            left_out: included(0..left_out),
        })
    }

    /// Returns whether the user passed files with objects.
    pub(super) fn has_files(&self) -> bool {
        !self.filename.is_empty()
    }

    fn built_in(
        &self,
        subjects: &[Subject],
        around: &[Value],
        environment: &Environment,
        is_quiet: bool,
    ) -> Corpus {
        let is_definition = |object: &&Value| object["kind"] == "CustomResourceDefinition";
        let definitions: Vec<Value> = around.iter().filter(is_definition).cloned().collect();
        let missing = corpus::missing(subjects, &definitions, environment);
        if !missing.is_empty() && !is_quiet {
            crate::screen::status!("{}", output::lines(&without_objects(&missing)));
        }
        let added =
            [("/metadata/annotations", self.annotation.clone()), ("/metadata/labels", self.label.clone())];
        let objects = |extent| corpus::built_in(subjects, &definitions, environment, extent);
        let extent = if self.thorough { Extent::Whole } else { Extent::Representative };
        let count = objects(extent).count() as u64;
        let left_out = objects(Extent::Whole).count() as u64 - count;
        let marked = move |object| Ok(marked(object, &added));
        let objects = Box::new(objects(extent).map(marked));
        Corpus { objects, count: Some(count), left_out }
    }

    /// Returns whether the files can be read more than once.
    pub(super) fn are_rereadable(&self) -> bool {
        let is_kept = |path: &PathBuf| fs::metadata(path).is_ok_and(|it| it.is_file() || it.is_dir());
        self.filename.iter().all(is_kept)
    }

    /// Returns the Namespaces in the files of `-f`. Their labels determine which webhooks match objects in them.
    ///
    /// Returns an empty list if the files can be read only once.
    pub(super) fn namespaces(&self) -> Vec<Value> {
        if !self.are_rereadable() {
            return Vec::new();
        }
        // Unreadable documents are reported when the checks read the corpus.
        let documents = documents::stream(&self.filename).into_iter().flatten().flatten();
        documents.map(|document| document.object).filter(|object| object["kind"] == "Namespace").collect()
    }

    /// Returns the number of objects in the files.
    ///
    /// Returns `None` if a file can be read only once, such as standard input or a pipe.
    fn count(&self) -> Option<u64> {
        if !self.are_rereadable() {
            return None;
        }
        let documents = documents::stream(&self.filename).ok()?;
        Some(documents.flatten().count() as u64)
    }
}

/// Returns `object` with entries added to the given maps, if the maps exist.
///
/// Objects without labels are not changed, because webhooks must also handle such objects.
fn marked(mut object: Value, added: &[(&str, Vec<(String, String)>)]) -> Value {
    for (map, entries) in added {
        if let Some(own) = object.pointer_mut(map).and_then(Value::as_object_mut) {
            own.extend(entries.iter().map(|(key, value)| (key.clone(), value.clone().into())));
        }
    }
    object
}

/// Parses `KEY=VALUE`, the value of `--annotation` or `--label`.
fn key_and_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or("expected KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Returns a note that lists kinds without objects in the built-in corpus.
fn without_objects(kinds: &[String]) -> String {
    const MAX_SHOWN: usize = 5;
    let more = match kinds.len().saturating_sub(MAX_SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more kinds"),
    };
    let named = kinds.get(..MAX_SHOWN).unwrap_or(kinds).join(", ");
    format!(
        "the rules match {named}{more}, but the built-in corpus has no objects of these kinds: pass objects with -f in a separate run"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(paths: &[PathBuf], shard: Option<Shard>) -> Objects {
        Objects {
            filename: paths.to_vec(),
            annotation: Vec::new(),
            label: Vec::new(),
            quick: false,
            thorough: false,
            shard,
        }
    }

    #[test]
    fn objects_are_counted_where_they_can_be_read_twice() {
        let folder = tempfile::tempdir().unwrap();
        let object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
        fs::write(folder.path().join("a.yaml"), [object; 5].join("---\n")).unwrap();
        fs::write(folder.path().join("b.yaml"), object).unwrap();
        let all = [folder.path().to_owned()];
        assert_eq!(objects(&all, None).count(), Some(6));
        assert_eq!(objects(&["-".into()], None).count(), None);
        assert_eq!(objects(&[folder.path().join("gone")], None).count(), None);

        let environment = Environment::new(
            std::sync::Arc::new(super::super::Services {
                known: std::collections::BTreeMap::new(),
                endpoint: None,
            }),
            harness::server::ClusterFixture::new([]),
            super::super::user(),
        );
        let count = |index, is_quiet| {
            let part = objects(&all, Some(Shard { index, count: 4 }));
            let corpus = part.corpus(&[], &[], &environment, is_quiet).unwrap();
            (corpus.count, corpus.objects.count())
        };
        assert_eq!(
            [count(1, false), count(3, false), count(4, true)],
            [(Some(2), 2), (Some(1), 1), (None, 1)]
        );
    }
}
