//! Represents the settings for building and starting a webhook: `NAME/webhook.yaml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

/// A webhook of another project.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Manifest {
    /// The name of the directory that contains the file. It is not a field of the file.
    #[serde(skip)]
    pub(crate) name: String,
    /// The display name.
    pub(crate) title: String,
    /// One paragraph about the webhook's purpose, its framework, and the specifics of the run.
    pub(crate) about: String,
    /// The package that contains the webhook.
    pub(crate) from: Source,
    /// The Service in the webhook's configuration, as `NAMESPACE/NAME`.
    pub(crate) service: String,
    /// Whether the webhook requires the files of a pod's service account.
    #[serde(default)]
    pub(crate) in_cluster: bool,
    /// The arguments of the webhook's program.
    ///
    /// They can contain the placeholders `{port}`, `{other-port}`, `{third-port}`, `{folder}` for the directory with
    /// `tls.crt`, `tls.key`, and `kubeconfig`, and `{here}` for the directory with this file.
    #[serde(default)]
    pub(crate) arguments: Vec<String>,
    /// The environment variables, with the same placeholders.
    #[serde(default)]
    pub(crate) environment: BTreeMap<String, String>,
    /// Additional files in `{folder}`, by name, with the same placeholders.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
    /// The files of the module that contain custom resource definitions.
    #[serde(default)]
    pub(crate) definitions: Vec<String>,
    /// How to detect that the webhook has loaded its rules. By default, it is ready once it listens.
    pub(crate) ready: Option<Ready>,
    /// Additional arguments of `admit verify`.
    #[serde(default)]
    pub(crate) verify: Vec<String>,
}

/// A request that shows that a webhook is ready.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ready {
    /// The path of the mutating webhook.
    pub(crate) path: String,
    /// The Pod to create.
    pub(crate) object: Value,
    /// The Pod after the patch of the webhook.
    pub(crate) becomes: Value,
}

/// The registry package of a webhook.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) enum Source {
    /// A program in a Go module, from the module proxy.
    Go(GoPackage),
    /// A package from the Python Package Index that runs with `python3 -m`.
    ///
    /// `requirements.txt` in the directory pins the package and its dependencies.
    Pip(Package),
    /// A package from npm that a program in the directory loads.
    ///
    /// `package-lock.json` in the directory pins the package and its dependencies.
    Npm(Package),
    /// An artifact from Maven Central, `GROUP:ARTIFACT`, that a program in the directory loads.
    ///
    /// `pom.xml` in the directory pins the artifact.
    Maven(Package),
    /// A crate from crates.io that the program `webhook` in the directory uses.
    ///
    /// `Cargo.toml` and `Cargo.lock` in the directory pin the crate and its dependencies.
    Cargo(Package),
}

/// A program in a Go module.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GoPackage {
    pub(crate) module: String,
    pub(crate) version: String,
    /// The directory of the program in the module, such as `./cmd/webhook`.
    pub(crate) package: String,
}

/// A package in a registry.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Package {
    pub(crate) package: String,
    pub(crate) version: String,
}

impl Source {
    pub(crate) fn version(&self) -> &str {
        match self {
            Self::Go(package) => &package.version,
            Self::Pip(package) | Self::Npm(package) | Self::Maven(package) | Self::Cargo(package) => {
                &package.version
            }
        }
    }

    /// Returns the programming language of the webhook.
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
    /// Reads the settings of the webhook in the directory `name`.
    pub(crate) fn read(name: &str) -> Self {
        let path = folder(name).join("webhook.yaml");
        let text = fs::read_to_string(&path).expect("there is a webhook.yaml");
        let manifest: Self =
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self { name: name.to_owned(), ..manifest }
    }

    /// Returns the directory with the files of the webhook.
    pub(crate) fn folder(&self) -> PathBuf {
        folder(&self.name)
    }
}

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/verified").join(name)
}
