//! Writes the proof of a finding: a folder for readers who are not familiar with admit.

mod claims;
mod feature;
mod pattern;
mod sending;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use harness::client::ServiceResolver as _;
use harness::config::{STATIC_SUFFIX, Source, WebhookTarget};
use harness::verify::Subject;
use harness::verify::report::{CheckReport, Finding, Report, Step, TOGETHER};
use output::OneLine;
use serde_json::{Value, json};

use self::feature::Setting;
use super::target::Services;
use crate::Failure;
use crate::serve::shell_word;

/// The note in a proof that masks values of Secrets.
const MASKED: &str = "
Values of Secrets are masked: `Kioq`, which is `***` in base64, in `data`, and `***` elsewhere. The commands below send the
masked values. If the finding depends on what the values were, run `admit verify` again with `--show-secrets`.
";

/// The inputs of the proofs of a report.
#[derive(Debug)]
pub(crate) struct Proofs {
    /// The parent folder of the proofs.
    pub(crate) folder: PathBuf,
    /// The webhooks under test.
    pub(crate) subjects: Vec<Subject>,
    /// The addresses of the webhooks' Services.
    pub(crate) services: Services,
    /// The namespaces and custom resource definitions.
    pub(crate) around: Vec<Value>,
    /// Whether a webhook called the API server of `--api-server-out`.
    pub(crate) has_called_api_server: bool,
}

impl Proofs {
    /// Writes a folder for each finding, and records its path in the report.
    pub(crate) fn write(&self, report: &mut Report) -> Result<(), Failure> {
        for check in &mut report.checks {
            let about = check.clone();
            for (number, finding) in (1..).zip(&mut check.findings) {
                let webhook: String = finding.webhook().chars().map(plain).collect();
                let folder = self.folder.join(format!("{}-{number}-{webhook}", about.id));
                self.folder_of(&folder, &about, finding).map_err(|error| {
                    Failure::environment(format!("cannot write the proof {}: {error}", folder.display()))
                })?;
                finding.proof = Some(folder.display().to_string());
            }
        }
        Ok(())
    }

    fn folder_of(&self, folder: &Path, check: &CheckReport, finding: &Finding) -> io::Result<()> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let webhooks: Vec<String> = finding.webhooks.keys().map(|webhook| format!("`{webhook}`")).collect();
        let mut text = format!(
            "# {} {}\n\n{}: {}\n\n{}\n\nSource: {}\n",
            check.id,
            check.title,
            webhooks.join(", "),
            OneLine(&finding.message),
            check.why,
            check.source
        );
        let shows = |subject: &&Subject| {
            finding.webhooks.contains_key(&subject.name()) || finding.webhooks.contains_key(TOGETHER)
        };
        for subject in self.subjects.iter().filter(shows) {
            if let Some(caveat) = subject.caveat() {
                let _ = writeln!(text, "\nCaveat: `{}`: {caveat}", subject.name());
            }
        }
        if !finding.differences.is_empty() {
            text.push_str("\n## What differs\n\n```diff\n");
            for difference in &finding.differences {
                let _ = writeln!(text, "  {}", OneLine(&difference.path));
                for (sign, value) in [('-', &difference.expected), ('+', &difference.found)] {
                    if let Some(value) = value {
                        let _ = writeln!(text, "{sign} {}", OneLine(value));
                    }
                }
            }
            text.push_str("```\n");
        }
        if let Some(object) = &finding.object {
            write(folder.join("object.yaml"), yaml(object))?;
            text.push_str("\nThe smallest object that shows it is `object.yaml`.\n");
        }
        if finding.masked {
            text.push_str(MASKED);
        }
        if !finding.steps.is_empty() {
            text.push_str("\n## The calls\n");
        }
        let around: Vec<String> = self.around.iter().map(yaml).collect();
        write(folder.join("with.yaml"), around.join("---\n"))?;
        let mut configured = Vec::new();
        for (number, step) in (1..).zip(&finding.steps) {
            if let Some(name) = sent(step, number) {
                write(folder.join(name), pretty(&step.review))?;
            }
            write(folder.join(format!("{number}-reply.json")), pretty(&step.reply))?;
            let subject = self.subject_of(step, finding);
            self.step(&mut text, folder, (number, step), subject, &mut configured)?;
        }
        self.on_an_api_server(&mut text, folder, check, finding)?;
        if finding.steps.is_empty() {
            let own = self.subjects.iter().filter(|subject| finding.webhooks.contains_key(&subject.name()));
            let configurations: Vec<String> = own.map(|subject| yaml(&own_configuration(subject))).collect();
            if !configurations.is_empty() {
                write(folder.join("configuration.yaml"), configurations.join("---\n"))?;
                text.push_str("\nThe configuration is `configuration.yaml`.\n");
            }
        }
        write(folder.join("README.md"), text)
    }

    /// Writes the feature that shows the finding on an API server. Appends how to run it, or why it cannot be written.
    fn on_an_api_server(
        &self,
        text: &mut String,
        folder: &Path,
        check: &CheckReport,
        finding: &Finding,
    ) -> io::Result<()> {
        text.push_str("\n## On an API server\n");
        let setting = Setting { subjects: &self.subjects, around: &self.around };
        let feature = match feature::feature(check, finding, setting) {
            Ok(feature) => feature,
            Err(reason) => {
                let _ = writeln!(text, "\nThere is no `{}` for this: {reason}.", feature::FILE);
                return Ok(());
            }
        };
        write(folder.join(feature::FILE), &feature.text)?;
        for (name, manifest) in &feature.manifests {
            if !folder.join(name).exists() {
                write(folder.join(name), manifest)?;
            }
        }
        let met = finding.requests.iter().flat_map(|shown| &shown.webhooks).filter(|shown| !shown.is_down);
        let met = met.filter_map(|shown| self.subjects.iter().find(|subject| shown.webhook.is(subject)));
        let services: BTreeSet<String> = met.filter_map(|subject| self.service(subject)).collect();
        let services: String = services.into_iter().collect();
        let is_outside = feature.text.contains(feature::OUTSIDE);
        text.push_str(&if self.has_called_api_server {
            on_the_webhooks_server(is_outside, &services)
        } else {
            on_a_new_server(is_outside, &services)
        });
        Ok(())
    }

    /// Returns the ` --service` option for a webhook that is called through a Service.
    fn service(&self, subject: &Subject) -> Option<String> {
        let WebhookTarget::Service(service) = &subject.webhook.client_config.target else { return None };
        let (host, port) = self.services.resolve(service).ok()?;
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        let option = format!("{}/{}={host}:{port}", service.namespace, service.name);
        Some(format!(" --service {}", shell_word(&option)))
    }

    /// Returns the webhook that `step` called.
    ///
    /// If a mutating and a validating webhook have the same name, returns the webhook with the finding.
    fn subject_of(&self, step: &Step, finding: &Finding) -> Option<&Subject> {
        let named = self.subjects.iter().filter(|subject| id(subject) == step.webhook);
        named.max_by_key(|subject| finding.webhooks.contains_key(&subject.name()))
    }

    /// Appends a description of a call and the commands that repeat it, and writes their files.
    fn step(
        &self,
        text: &mut String,
        folder: &Path,
        (number, step): (usize, &Step),
        subject: Option<&Subject>,
        configured: &mut Vec<String>,
    ) -> io::Result<()> {
        let status = step.status.map_or_else(|| "no reply".to_owned(), |status| format!("HTTP {status}"));
        let _ = writeln!(
            text,
            "\n{number}. {}, answered by `{number}-reply.json` ({status})",
            sent(step, number).map_or_else(|| "no body".to_owned(), |name| format!("`{name}`"))
        );
        if step.is_other {
            text.push_str("   from another webhook, which admit simulated\n");
            return Ok(());
        }
        let Some(subject) = subject else { return Ok(()) };
        let name: String = step.webhook.chars().map(plain).collect();
        if !configured.contains(&name) {
            write(folder.join(format!("{name}.yaml")), yaml(&own_configuration(subject)))?;
            write(folder.join(format!("{name}.pem")), &subject.webhook.client_config.ca_bundle)?;
            configured.push(name.clone());
        }
        let (curl, service) = self.commands(subject, &format!("{name}.pem"), step, number);
        // `admit review` cannot repeat calls that bypass the dispatcher.
        let review = match step.direct {
            Some(_) => String::new(),
            None => format!(
                "\n   $ admit review -f {number}-review.json -c {name}.yaml --with with.yaml{service}"
            ),
        };
        let _ = writeln!(text, "\n   ```console\n   $ {curl}{review}\n   ```");
        Ok(())
    }

    /// Returns a curl command that sends the request again, and the `--service` option for admit.
    fn commands(&self, subject: &Subject, ca_file: &str, step: &Step, number: usize) -> (String, String) {
        let webhook = &subject.webhook;
        let trust = if webhook.client_config.ca_bundle.is_empty() {
            String::new()
        } else {
            format!(" --cacert {ca_file}")
        };
        let seconds = webhook.timeout.as_secs();
        let (method, content_type) = match &step.direct {
            None => ("POST", "application/json"),
            Some(direct) => (direct.method.as_str(), direct.content_type.as_str()),
        };
        let body = match sent(step, number) {
            Some(name) => format!(" -H 'Content-Type: {content_type}' --data-binary @{name}"),
            None => String::new(),
        };
        // curl sends a POST if there is a body, and otherwise a GET.
        let method = match (method, body.is_empty()) {
            ("POST", false) | ("GET", true) => String::new(),
            _ => format!(" -X {method}"),
        };
        let curl = |more: &str, url: &str| {
            let url = shell_word(&format!("{url}?timeout={seconds}s"));
            format!("curl -sS{trust}{more}{method}{body} {url}")
        };
        match &webhook.client_config.target {
            WebhookTarget::Url(url) => (curl("", url), String::new()),
            WebhookTarget::Service(service) => {
                let authority = service.authority();
                let path = service.path.trim_start_matches('/');
                let (there, option) = match self.services.resolve(service) {
                    Ok((host, port)) => {
                        let host = if host.contains(':') { format!("[{host}]") } else { host };
                        let connect = shell_word(&format!("{authority}:{host}:{port}"));
                        (format!(" --connect-to {connect}"), self.service(subject).unwrap_or_default())
                    }
                    Err(_) => (String::new(), String::new()),
                };
                (curl(&there, &format!("https://{authority}/{path}")), option)
            }
        }
    }
}

/// The meaning of the feature in a proof.
const SHOWS: &str = "shows the finding on an API server, with the webhook that was verified: it passes while the webhook, or its \
     configuration, has the defect, and fails once the defect is fixed.";

/// Returns how to run the feature on a server that `admit run` starts.
fn on_a_new_server(is_outside: bool, services: &str) -> String {
    let on_a_cluster = if is_outside {
        "It does not run on a cluster (`--target cluster`): webhooks are called for objects outside of the \
         scenario's namespace."
    } else {
        "On a cluster (`--target cluster`), steps about the audit log need `--audit-log`."
    };
    format!(
        "\n`{file}` {SHOWS} The first command runs it on a kube-apiserver from KUBEBUILDER_ASSETS, the second in \
         process.\n\n```console\n$ admit run {file} --target envtest{services}\n$ admit run \
         {file}{services}\n```\n\n{on_a_cluster}\n",
        file = feature::FILE,
    )
}

/// Returns how to run the feature on the server whose objects the webhook reads.
///
/// A webhook that reads from another server does not find the objects of the scenario.
fn on_the_webhooks_server(is_outside: bool, services: &str) -> String {
    let file = feature::FILE;
    let reads = "During the verification, a webhook called the API server of `--api-server-out`.";
    if is_outside {
        return format!(
            "\n{reads} `{file}` cannot show the finding if the webhook depends on what it reads there: the feature runs \
             only on a server that `admit run` starts, because webhooks are called for objects outside of the scenario's \
             namespace, and the webhook does not have a kubeconfig for that server. Send the calls above instead.\n"
        );
    }
    format!(
        "\n{reads} `{file}` {SHOWS} The webhook must read from the API server on which the feature runs:\n\n1. Start an API \
         server.\n\n   ```console\n   $ admit serve --with-controllers --kubeconfig-out kubeconfig --audit-log \
         audit.log\n   ```\n\n2. Restart the webhook with this kubeconfig, and create the objects that it needs, such as \
         its own configuration.\n\n3. Run the feature on the same server.\n\n   ```console\n   $ admit run {file} --target \
         cluster --kubeconfig kubeconfig --fakes-host 127.0.0.1 --audit-log audit.log{services}\n   ```\n\nOn another cluster, \
         use its kubeconfig in steps 2 and 3. `--fakes-host` is the host at which its API server reaches this \
         machine.\n"
    )
}

/// Writes a new file that only its owner can read.
fn write(path: PathBuf, text: impl AsRef<[u8]>) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(text.as_ref())
}

/// Returns the name of the file for the body of a step, or `None` if the step does not have a body.
fn sent(step: &Step, number: usize) -> Option<String> {
    if step.direct.as_ref().is_some_and(|direct| direct.content_type.is_empty()) {
        return None;
    }
    Some(if step.review.is_string() {
        format!("{number}-request.txt")
    } else {
        format!("{number}-review.json")
    })
}

/// Returns the name of the webhook in the format of `Step::webhook`.
fn id(subject: &Subject) -> String {
    format!("{}/{}", configuration_name(subject), subject.webhook.id.name)
}

/// Returns the name of the configuration in a proof.
///
/// A proof creates the configuration through the API, which rejects the suffix for configurations from files.
fn configuration_name(subject: &Subject) -> &str {
    let name = &subject.webhook.id.configuration;
    match subject.webhook.source {
        Source::Api => name,
        Source::Manifest => name.strip_suffix(STATIC_SUFFIX).unwrap_or(name),
    }
}

/// Returns the webhook's configuration without other webhooks.
fn own_configuration(subject: &Subject) -> Value {
    json!({
        "apiVersion": subject.configuration.get("apiVersion"),
        "kind": subject.configuration.get("kind"),
        "metadata": {"name": configuration_name(subject)},
        "webhooks": [subject.declaration()],
    })
}

/// Returns `letter`, or `_` if the character is not allowed in the file names of a proof.
fn plain(letter: char) -> char {
    if letter.is_ascii_alphanumeric() || "-_.".contains(letter) { letter } else { '_' }
}

fn yaml(value: &Value) -> String {
    serde_saphyr::to_string(value).unwrap_or_else(|_| value.to_string())
}

fn pretty(value: &Value) -> String {
    // A reply that is not JSON is written as text.
    value.as_str().map_or_else(|| serde_json::to_string_pretty(value).unwrap_or_default(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feature_of_a_webhook_that_reads_objects_runs_on_the_server_of_the_webhook() {
        let services = " --service a/b=127.0.0.1:1";
        let text = on_the_webhooks_server(false, services);
        let run = "admit run proof.feature --target cluster --kubeconfig kubeconfig --fakes-host 127.0.0.1 --audit-log audit.log";
        assert!(text.contains(&format!("{run}{services}\n")) && !text.contains("--target envtest"), "{text}");
        // The webhook cannot read from a server that `admit run` starts, so no command can run the feature.
        let text = on_the_webhooks_server(true, services);
        assert!(
            text.contains("cannot show the finding") && !text.contains("admit run proof.feature"),
            "{text}"
        );
        assert!(on_a_new_server(false, services).contains("--target envtest --service"));
    }
}
