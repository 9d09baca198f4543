//! How a webhook is built and started: `NAME/webhook.yaml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;

/// A webhook of another project.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Manifest {
    /// The folder with this file; not in it.
    #[serde(skip)]
    pub(crate) name: String,
    /// Its name for people.
    pub(crate) title: String,
    /// What it is for, what it is made with, and what is special about the run: one paragraph.
    pub(crate) about: String,
    /// Where it comes from.
    pub(crate) go: GoPackage,
    /// The service that its configuration names, as `NAMESPACE/NAME`.
    pub(crate) service: String,
    /// Whether it only runs where it finds the files of a pod's service account.
    #[serde(default)]
    pub(crate) in_cluster: bool,
    /// The arguments of its program, with `{port}`, `{other-port}`, `{third-port}` and `{folder}`, where `tls.crt`,
    /// `tls.key` and `kubeconfig` are.
    #[serde(default)]
    pub(crate) arguments: Vec<String>,
    /// Variables of its environment, with the same placeholders.
    #[serde(default)]
    pub(crate) environment: BTreeMap<String, String>,
    /// Files in the folder by their names, with the same placeholders.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
    /// Files of the module with definitions of custom resources.
    #[serde(default)]
    pub(crate) definitions: Vec<String>,
    /// Further arguments of `admit verify`.
    #[serde(default)]
    pub(crate) verify: Vec<String>,
}

/// A program in a Go module.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GoPackage {
    pub(crate) module: String,
    pub(crate) version: String,
    /// The folder of the program in the module, such as `./cmd/webhook`.
    pub(crate) package: String,
}

impl Manifest {
    /// The webhook in the folder `name`.
    pub(crate) fn read(name: &str) -> Self {
        let path = folder(name).join("webhook.yaml");
        let text = fs::read_to_string(&path).expect("there is a webhook.yaml");
        let manifest: Self =
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self { name: name.to_owned(), ..manifest }
    }

    /// Where its files are.
    pub(crate) fn folder(&self) -> PathBuf {
        folder(&self.name)
    }
}

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/verified").join(name)
}
