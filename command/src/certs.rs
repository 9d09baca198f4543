//! `admit certs`: generates certificates for webhooks.

use std::fmt;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use certs::{CertificateAuthority, Leaf, Name};
use harness::json::set;
use output::{OutputFile, Readers};
use serde_json::{Value, json};

use crate::service_map::namespace_and_name;
use crate::{ExitCode, Failure, screen};

/// Generate a certificate for a webhook, signed by a new certificate authority.
///
/// Writes ca.crt, tls.crt, and tls.key (readable only by you) to a directory and prints the caBundle for the webhook
/// configuration, or prints a Secret with all three. The key of the certificate authority is discarded.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("names").required(true).multiple(true).args(["services", "dns", "ip"])))]
pub(crate) struct Certs {
    /// Issue the certificate for all in-cluster DNS names of this Service; can be repeated
    #[arg(long = "service", value_name = "NAMESPACE/NAME")]
    services: Vec<Service>,
    /// Add a DNS name
    #[arg(long, value_name = "NAME", value_parser = dns)]
    dns: Vec<Name>,
    /// Add an IP address
    #[arg(long, value_name = "ADDRESS")]
    ip: Vec<std::net::IpAddr>,
    /// Write ca.crt, tls.crt, and tls.key to this directory
    #[arg(long, value_name = "DIR", required_unless_present = "output")]
    out: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long, requires = "out")]
    force: bool,
    /// Print the Secret in this format instead of the caBundle
    #[arg(short, long, value_enum)]
    output: Option<Output>,
    /// Use this namespace for the Secret [default: the namespace of the first Service]
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<Label>,
    /// Use this name for the Secret; by default, the name of the first Service followed by `-tls`
    #[arg(long, value_name = "NAME")]
    secret_name: Option<Label>,
}

/// The values of `--output`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Output {
    /// A Secret of type kubernetes.io/tls as YAML
    Secret,
    /// The same Secret as JSON
    Json,
}

/// A Service in a cluster.
#[derive(Clone, Debug)]
struct Service {
    name: Label,
    namespace: Label,
}

/// The name of a Kubernetes object. It must be a DNS label.
#[derive(Clone, Debug)]
struct Label(String);

impl Certs {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        if let Some(directory) = &self.out {
            check_targets(directory, self.force)?;
        }
        let made = GeneratedCertificate::new(&self.names()?).map_err(Failure::environment)?;
        if let Some(directory) = &self.out {
            made.write(directory).map_err(|error| {
                Failure::environment(format!(
                    "cannot write the certificate to {}: {error}",
                    directory.display()
                ))
            })?;
        }
        let text = match self.output {
            None => {
                if let Some(directory) = &self.out {
                    let directory = directory.display();
                    screen::status!("wrote {AUTHORITY}, {CERTIFICATE}, and {KEY} to {directory}");
                }
                screen::status!("clientConfig.caBundle for the webhook configuration:");
                format!("{}\n", STANDARD.encode(&made.authority))
            }
            Some(Output::Json) => format!("{:#}\n", self.secret(&made)),
            Some(Output::Secret) => {
                serde_saphyr::to_string(&self.secret(&made)).map_err(Failure::environment)?
            }
        };
        screen::print_document(&text)?;
        Ok(ExitCode::Ok)
    }

    fn names(&self) -> Result<Vec<Name>, Failure> {
        let services = self.services.iter().flat_map(Service::dns_names).map(|name| name.parse());
        let mut names = services.collect::<Result<Vec<Name>, _>>().map_err(Failure::usage)?;
        names.extend(self.dns.iter().cloned());
        names.extend(self.ip.iter().copied().map(Name::from));
        Ok(names)
    }

    fn secret(&self, made: &GeneratedCertificate) -> Value {
        let first = self.services.first();
        let name = match (&self.secret_name, first) {
            (Some(name), _) => name.to_string(),
            (None, Some(service)) => format!("{}-tls", service.name),
            (None, None) => "webhook-tls".to_owned(),
        };
        let mut metadata = json!({"name": name});
        if let Some(namespace) = self.namespace.as_ref().or(first.map(|service| &service.namespace)) {
            set(&mut metadata, &["namespace"], namespace.to_string());
        }
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": metadata,
            "data": {
                "ca.crt": STANDARD.encode(&made.authority),
                "tls.crt": STANDARD.encode(&made.leaf.certificate_pem),
                "tls.key": STANDARD.encode(&made.leaf.key_pem),
            },
        })
    }
}

const AUTHORITY: &str = "ca.crt";
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

/// The generated certificates and key, in PEM.
struct GeneratedCertificate {
    authority: String,
    leaf: Leaf,
}

impl GeneratedCertificate {
    fn new(names: &[Name]) -> Result<Self, certs::Error> {
        let authority = CertificateAuthority::new("admit test CA")?;
        Ok(Self { leaf: authority.issue(names)?, authority: authority.certificate_pem().to_owned() })
    }

    /// Writes all files under temporary names before renaming them, so that incomplete files never appear.
    fn write(&self, directory: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let files = [
            (AUTHORITY, &self.authority, Readers::Umask),
            (CERTIFICATE, &self.leaf.certificate_pem, Readers::Umask),
            (KEY, &self.leaf.key_pem, Readers::Owner),
        ];
        let mut written = Vec::new();
        for (name, text, readers) in files {
            let mut file = OutputFile::create(&directory.join(name), readers)?;
            file.fill(text.as_bytes())?;
            written.push(file);
        }
        written.into_iter().try_for_each(OutputFile::publish)
    }
}

/// Checks for foreseeable errors before anything is written.
fn check_targets(directory: &Path, force: bool) -> Result<(), Failure> {
    for name in [AUTHORITY, CERTIFICATE, KEY] {
        let path = directory.join(name);
        match fs::symlink_metadata(&path) {
            Err(_) => {}
            Ok(found) if found.is_dir() => {
                return Err(Failure::usage(format!(
                    "{} is a directory: must be a file or not exist",
                    path.display()
                )));
            }
            Ok(_) if force => {}
            Ok(_) => {
                let path = path.display();
                return Err(Failure::usage(format!("{path} already exists: use --force to replace it")));
            }
        }
    }
    Ok(())
}

fn dns(text: &str) -> Result<Name, String> {
    match text.parse().map_err(|error: certs::InvalidName| error.to_string())? {
        name @ Name::Dns(_) => Ok(name),
        Name::Ip(_) => Err("this is an IP address: pass it with --ip".to_owned()),
    }
}

impl Service {
    fn dns_names(&self) -> [String; 4] {
        let Self { name, namespace } = self;
        // The name that the API server uses comes first, because the first name becomes the common name.
        [
            format!("{name}.{namespace}.svc"),
            format!("{name}.{namespace}.svc.cluster.local"),
            format!("{name}.{namespace}"),
            name.to_string(),
        ]
    }
}

impl FromStr for Service {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (namespace, name) =
            namespace_and_name(text).ok_or("expected NAMESPACE/NAME, such as default/hooks")?;
        Ok(Self { name: name.parse()?, namespace: namespace.parse()? })
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Parses a name and checks that it is a DNS label.
///
/// Source: apimachinery pkg/util/validation/validation.go, `IsDNS1123Label`.
impl FromStr for Label {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = text.as_bytes();
        let ends = [bytes.first(), bytes.last()];
        if bytes.len() <= 63
            && bytes.iter().all(|byte| plain(byte) || *byte == b'-')
            && ends.into_iter().all(|end| end.is_some_and(plain))
        {
            return Ok(Self(text.to_owned()));
        }
        let expected =
            "must be 1 to 63 lower-case letters, digits, and `-`, and start and end with a letter or digit";
        Err(format!("invalid name `{text}`: {expected}"))
    }
}
