//! How a webhook is built and started: `NAME/webhook.yaml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

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
    pub(crate) from: Source,
    /// The service that its configuration names, as `NAMESPACE/NAME`.
    pub(crate) service: String,
    /// Whether it only runs where it finds the files of a pod's service account.
    #[serde(default)]
    pub(crate) in_cluster: bool,
    /// The arguments of its program, with `{port}`, `{other-port}`, `{third-port}`, `{folder}`, where `tls.crt`,
    /// `tls.key` and `kubeconfig` are, and `{here}`, the folder with this file.
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
    /// How it is known to have loaded what it applies; when it listens, if there is none.
    pub(crate) ready: Option<Ready>,
    /// Further arguments of `admit verify`.
    #[serde(default)]
    pub(crate) verify: Vec<String>,
}

/// What a webhook does once it is ready.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ready {
    /// The path of the mutating webhook.
    pub(crate) path: String,
    /// A Pod that is created.
    pub(crate) object: Value,
    /// The Pod with the patch of the webhook.
    pub(crate) becomes: Value,
}

/// The package of a registry that a webhook comes from.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) enum Source {
    /// A program in a Go module, from the module proxy.
    Go(GoPackage),
    /// A package of the Python Package Index that is run with `python3 -m`; the folder's `requirements.txt` pins it and
    /// what it needs.
    Pip(Package),
    /// A package of npm that a program of the folder loads; the folder's `package-lock.json` pins it and what it needs.
    Npm(Package),
    /// An artifact of Maven Central, `GROUP:ARTIFACT`, that a program of the folder loads; the folder's `pom.xml` pins
    /// it.
    Maven(Package),
    /// A crate of crates.io that the program `webhook` of the folder is made with; the folder's `Cargo.toml` and
    /// `Cargo.lock` pin it and what it needs.
    Cargo(Package),
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

/// A package of a registry.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Package {
    pub(crate) package: String,
    pub(crate) version: String,
}

impl Source {
    /// The version that is verified.
    pub(crate) fn version(&self) -> &str {
        match self {
            Self::Go(package) => &package.version,
            Self::Pip(package) | Self::Npm(package) | Self::Maven(package) | Self::Cargo(package) => {
                &package.version
            }
        }
    }

    /// The language that it is written in.
    pub(crate) fn language(&self) -> &'static str {
        match self {
            Self::Go(_) => "Go",
            Self::Pip(_) => "Python",
            Self::Npm(_) => "TypeScript",
            Self::Maven(_) => "Java",
            Self::Cargo(_) => "Rust",
        }
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Go(GoPackage { module, version, package }) => {
                write!(formatter, "`{module}` {version}, `{package}`")
            }
            Self::Pip(Package { package, version })
            | Self::Npm(Package { package, version })
            | Self::Maven(Package { package, version })
            | Self::Cargo(Package { package, version }) => write!(formatter, "`{package}` {version}"),
        }
    }
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
