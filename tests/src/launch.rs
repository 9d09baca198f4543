//! Prepares the launch settings of a server: its arguments, and the files that the arguments refer to.
//!
//! Webhooks that run as long as the server are also started here, because the files contain their ports.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use admit_command::target::{TargetArguments, TargetKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use certs::CertificateAuthority;
use fake_webhooks::{Authority, Connection, Fake, FakeWebhook, HttpVersions};
use tempfile::TempDir;

use crate::case::Plugins;
use crate::server_error::ServerError;

/// The launch settings of a server, and the resources to keep while it runs.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) arguments: TargetArguments,
    /// The running webhooks that the files refer to, by name.
    pub(crate) standing: BTreeMap<String, Arc<FakeWebhook>>,
    /// The path of the audit log, if the case has an audit policy.
    pub(crate) audit_log: Option<PathBuf>,
    /// The temporary directory that contains the files, if there are any.
    folder: Option<TempDir>,
}

impl Launch {
    /// Starts the webhooks and writes the files.
    ///
    /// # Errors
    /// Returns an error if a webhook does not start, or a file cannot be written.
    pub(crate) async fn prepare(
        kind: TargetKind,
        plugins: &Plugins,
        authority: &Arc<CertificateAuthority>,
    ) -> Result<Self, ServerError> {
        let mut arguments = TargetArguments::new(kind).with_plugins(&plugins.enable, &plugins.disable);
        let mut standing = BTreeMap::new();
        for name in &plugins.webhooks {
            let asks = name.starts_with("certificate");
            let fake = Fake {
                connection: if asks { Connection::ClientCertificate } else { Connection::Accepted },
                http: HttpVersions::Http1,
                authority: Authority::Shared(Arc::clone(authority)),
                names: vec!["hook.default.svc".to_owned(), "localhost".to_owned()],
                ..Fake::default()
            };
            standing.insert(name.clone(), Arc::new(FakeWebhook::start(fake).await?));
        }
        let texts = [&plugins.configuration, &plugins.audit_policy];
        if plugins.files.is_empty() && texts.iter().all(|text| text.is_empty()) {
            return Ok(Self { arguments, standing, audit_log: None, folder: None });
        }
        let folder = TempDir::new()?;
        let bundle = STANDARD.encode(authority.certificate_pem());
        let path = |name: &str| folder.path().join(name);
        let client = authority.issue_for_client("jane")?;
        let filled = |text: &str| {
            let mut text = text
                .replace("<credentials>", &path("credentials").display().to_string())
                .replace("<folder>", &folder.path().display().to_string())
                .replace("<client certificate>", &client.certificate_pem)
                .replace("<client key>", &client.key_pem)
                .replace("<caBundle>", &bundle);
            for (name, fake) in &standing {
                text = text.replace(&format!("<port of {name}>"), &fake.address().port().to_string());
            }
            text
        };
        for (name, text) in &plugins.files {
            if name.ends_with('/') {
                fs::create_dir_all(path(name))?;
            } else {
                write(&path(name), &filled(text))?;
            }
        }
        if !plugins.configuration.is_empty() {
            write(&path("credentials"), &filled(&plugins.credentials))?;
            write(&path("admission.yaml"), &filled(&plugins.configuration))?;
            arguments = arguments.with_admission_control_config_file(path("admission.yaml"));
        }
        let audit_log = (!plugins.audit_policy.is_empty()).then(|| path("audit.log"));
        if let Some(log) = &audit_log {
            write(&path("audit-policy.yaml"), &plugins.audit_policy)?;
            arguments = arguments.with_audit(path("audit-policy.yaml"), log.clone());
        }
        Ok(Self { arguments, standing, audit_log, folder: Some(folder) })
    }

    /// Replaces the path of the directory in server output with a placeholder.
    pub(crate) fn masked(&self, text: &str) -> String {
        match &self.folder {
            Some(folder) => text.replace(&folder.path().display().to_string(), "<folder>"),
            None => text.to_owned(),
        }
    }
}

fn write(path: &Path, text: &str) -> Result<(), std::io::Error> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}
