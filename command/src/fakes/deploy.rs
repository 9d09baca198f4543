//! `admit fakes deploy`: deploys fakes to a cluster and configures their webhooks.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use harness::json::at;
use serde_json::{Value, json};

use super::admin::Admin;
use super::api::{Api, Kind};
use super::configurations::Configurations;
use super::install::{self, described};
use super::manifests::{FIRST_PORT, Manifests, Secrets};
use super::names::{FakesNamespace, NAME};
use super::probe::Probes;
use super::progress::Progress;
use super::safety::{self, Allowances};
use super::source::{FileArguments, Source};
use crate::cluster_client::ClusterArguments;
use crate::{ExitCode, Failure, screen};

/// Deploy fakes to a cluster.
///
/// Applies a Namespace, a Secret, a ConfigMap, a Deployment, and a Service. Applies the webhook configurations once
/// every webhook responds through the API server. A second run updates the objects and keeps the certificate authority.
/// The journal does not contain the calls that check the webhooks.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Webhooks match neither the namespace of the fakes nor kube-system. A webhook with failurePolicy Fail is rejected if it \
matches requests in every namespace, or cluster-scoped objects that every cluster needs.

The certificates both-bundles, expired-issuer, intermediate, missing-intermediate, own-bundle, rsa-1024, and sha1 have \
their own caBundle, which the fakes generate at each start. A dry run prints the caBundle of the authority instead. After \
the pod restarts, deploy the fakes again.

To build the image, run `just image`; to load it into kind, run `kind load docker-image IMAGE`.")]
pub(crate) struct Deploy {
    #[command(flatten)]
    files: FileArguments,
    /// Run in this namespace, which is created if it does not exist
    #[arg(short, long, default_value = NAME)]
    namespace: FakesNamespace,
    /// Use this container image for the fakes
    #[arg(long, default_value = DEFAULT_IMAGE)]
    image: String,
    #[command(flatten)]
    allowances: Allowances,
    /// Print the objects with a new certificate authority instead of applying them
    #[arg(long, value_enum, value_name = "WHERE")]
    dry_run: Option<DryRun>,
    /// Print objects in this format
    #[arg(short, long, value_enum, default_value_t, requires = "dry_run")]
    output: Output,
    #[command(flatten)]
    cluster: ClusterArguments,
    /// Wait up to this many seconds for the fakes to become ready
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    timeout: u64,
}

/// The image that `just image` builds from this version.
pub(crate) const DEFAULT_IMAGE: &str = concat!("admit-fakes:", env!("CARGO_PKG_VERSION"));

/// The extent of a dry run.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum DryRun {
    /// Do not contact the cluster
    Client,
}

/// The output format of objects.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum Output {
    /// YAML, one document per object
    #[default]
    Yaml,
    /// One JSON list
    Json,
}

impl Deploy {
    pub(crate) async fn run(self) -> Result<ExitCode, Failure> {
        let listen = SocketAddr::from((Ipv4Addr::UNSPECIFIED, FIRST_PORT));
        let source = self.files.read(listen, &self.namespace.host())?;
        let refusals = safety::safety_violations(&source.plan, &self.namespace, self.allowances);
        if !refusals.is_empty() {
            let lines: Vec<_> = refusals.iter().map(ToString::to_string).collect();
            return Err(Failure::usage(lines.join("\n")));
        }
        match self.dry_run {
            Some(DryRun::Client) => self.print(&source)?,
            None => self.deploy(&source).await?,
        }
        Ok(ExitCode::Ok)
    }

    fn print(&self, source: &Source) -> Result<(), Failure> {
        let secrets = install::new_secrets()?;
        let (manifests, configurations) = self.objects(source, &secrets);
        let mut objects = vec![manifests.namespace()];
        objects.extend(manifests.workload());
        objects.extend(configurations.for_files());
        let text = match self.output {
            Output::Yaml => serde_saphyr::to_string_multiple(&objects).map_err(Failure::environment)?,
            Output::Json => format!("{:#}\n", json!({"apiVersion": "v1", "kind": "List", "items": objects})),
        };
        screen::print_document(&text)
    }

    async fn deploy(&self, source: &Source) -> Result<(), Failure> {
        let api = Api::new(self.cluster.connect().await?);
        let progress = Progress::new(Duration::from_secs(self.timeout));
        let secrets = install::secrets(&api, &self.namespace).await?;
        let (manifests, configurations) = self.objects(source, &secrets);
        let wanted = configurations.for_files();
        install::check_owners(&api, &self.namespace, &manifests.workload(), "use another --namespace")
            .await?;
        install::check_owners(&api, &self.namespace, &wanted, "change the `name` in the file").await?;
        for configuration in &wanted {
            api.apply_dry_run(configuration).await?;
        }

        self.remove_other_configurations(&api, &progress, &wanted).await?;
        let admin = install::install(&api, &progress, &manifests).await?;
        let ca_bundles = admin.ca_bundles().await?;
        let configurations = Configurations { ca_bundles: Some(&ca_bundles), ..configurations };
        let wanted = configurations.for_files();
        let probes = Probes::new(&api, &admin, configurations);
        let checked = Self::check_and_apply(&api, &progress, &probes, &admin, source, &wanted).await;
        // The probes are also removed after a failure, whose error takes precedence.
        let removed = probes.remove().await;
        checked.and(removed)
    }

    /// Checks that the webhooks respond, applies their configurations, and waits until the API server uses them.
    async fn check_and_apply(
        api: &Api,
        progress: &Progress,
        probes: &Probes<'_>,
        admin: &Admin,
        source: &Source,
        wanted: &[Value],
    ) -> Result<(), Failure> {
        probes.wait_for_webhooks(progress).await?;
        let names: Vec<&str> = source.plan.fakes().map(|fake| fake.entry.name.as_str()).collect();
        progress.tell(&format!("every webhook responds through the API server: {}", names.join(", ")));
        admin.reset(names.iter().copied()).await?;
        for configuration in wanted {
            api.apply(configuration).await?;
            progress.tell(&format!("applied {}", described(configuration)));
        }
        probes.wait_for_configurations(progress).await?;
        progress.tell("the API server uses the configurations");
        Ok(())
    }

    fn objects<'a>(
        &'a self,
        source: &'a Source,
        secrets: &'a Secrets,
    ) -> (Manifests<'a>, Configurations<'a>) {
        let namespace = &self.namespace;
        let manifests = Manifests { namespace, image: &self.image, source, spare_ports: 0, secrets };
        let configurations = Configurations {
            namespace,
            ca_certificate: &secrets.ca_certificate,
            ca_bundles: None,
            plan: &source.plan,
            allowances: self.allowances,
        };
        (manifests, configurations)
    }

    /// Deletes the configurations from an earlier deployment that are not in `wanted`.
    async fn remove_other_configurations(
        &self,
        api: &Api,
        progress: &Progress,
        wanted: &[Value],
    ) -> Result<(), Failure> {
        for kind in [Kind::MUTATING, Kind::VALIDATING] {
            for found in api.list(kind, "", &self.namespace.label_selector()).await? {
                let name = |object| at(object, &["metadata", "name"]);
                let is_wanted =
                    wanted.iter().any(|object| object["kind"] == kind.name && name(object) == name(&found));
                let name = name(&found).as_str().unwrap_or_default();
                if !is_wanted && api.delete(&kind.path("", name)).await? {
                    progress.tell(&format!("deleted {} {name}", kind.name));
                }
            }
        }
        Ok(())
    }
}
