//! Validates the flags of kube-apiserver and derives the server's settings.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness::server::{
    AdmissionPlugins, Advertised, AuditPolicy, Authentication, Authenticators, AuthorizationMode,
    Controllers, DefaultTolerationSeconds, Limits, NodePortRange, Options, ServiceRanges, Tokens,
};
use kubernetes_api_listener::{Socket, server_config};

use super::super::flags::Values;
use super::certificates::{self, Serving};
use super::service_ranges;
use crate::Failure;
use crate::admission_control::AdmissionControl;
use crate::admission_plugins::PluginFlags;
use crate::serve::audit_file::{self, AuditFile};
use crate::serve::credential_flags::client_authorities;
use crate::serve::notices::{self, Advice};
use crate::serve::record_file::{self, RecordFlags};
use crate::serve::running::Running;
use crate::serve::service_account_flags::{self, ServiceAccountFlags};
use crate::serve::traces::Traces;
use crate::serve::{Log, LogFlags, observer, tokens};

/// The environment variable that starts controllers as `--with-controllers` of `admit serve` does.
const WITH_CONTROLLERS: &str = "ADMIT_WITH_CONTROLLERS";
const DEFAULT_PORT: u16 = 6443;
const DEFAULT_CERT_DIR: &str = "/var/run/kubernetes";
/// The size of an audit event in bytes above which `--audit-log-truncate-enabled` removes the event's objects.
const MAX_EVENT_SIZE: usize = 102_400;

/// The settings of the server. They are validated before any file or socket is opened.
pub(super) struct Settings {
    pub(super) listen: SocketAddr,
    pub(super) log: LogFlags,
    authorization_mode: AuthorizationMode,
    /// The advertised address; `None` if the server does not publish its endpoints.
    advertised: Option<IpAddr>,
    /// The address at which other hosts reach the server, whether or not it is advertised.
    external: Option<IpAddr>,
    ranges: ServiceRanges,
}

impl Settings {
    /// Validates the flags and derives the settings.
    ///
    /// # Errors
    /// Returns kube-apiserver's error for a missing or invalid flag, or an error for an unsupported value.
    pub(super) fn new(values: &Values) -> Result<Self, Failure> {
        required(values)?;
        let port = match values.text("secure-port") {
            None => DEFAULT_PORT,
            Some(text) => text.parse().ok().filter(|port| *port > 0).ok_or_else(|| {
                Failure::usage(format!(
                    "--secure-port {text} must be between 1 and 65535, inclusive. It cannot be turned off with 0"
                ))
            })?,
        };
        let ip = |name: &str| values.text(name).and_then(|text| text.trim().parse::<IpAddr>().ok());
        let bound = ip("bind-address").unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let advertised = ip("advertise-address").or_else(|| default_address(bound));
        let is_reconciled = values.text("endpoint-reconciler-type") != Some("none");
        if let Some(address) =
            ip("advertise-address").filter(|address| address.is_loopback() && is_reconciled)
        {
            return Err(Failure::usage(format!(
                "cannot use public IP {address} with endpoint reconciler: <nil>: Invalid value: \"{address}\": may not be in the \
                 loopback range (127.0.0.0/8, ::1/128)"
            )));
        }
        let node_ports = values.text("service-node-port-range").and_then(NodePortRange::parse);
        let (addresses, secondary_addresses) = service_ranges::parse(
            values.text("service-cluster-ip-range").unwrap_or_default(),
            advertised.filter(|_| is_reconciled),
        )?;
        let ranges =
            ServiceRanges { addresses, secondary_addresses, node_ports: node_ports.unwrap_or_default() };
        let verbosity = values.text("v").and_then(|text| text.parse().ok()).unwrap_or(0);
        let log = LogFlags::new(values.text("logging-format") == Some("json"), verbosity);
        let (external, advertised) = (advertised, advertised.filter(|_| is_reconciled));
        let listen = SocketAddr::new(bound, port);
        Ok(Self { listen, log, authorization_mode: mode(values)?, advertised, external, ranges })
    }

    /// Creates the server for `socket`, and returns the path of a newly generated certificate, if any.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or is invalid.
    pub(super) fn running(
        self,
        (values, flags): (&Values, BTreeMap<String, String>),
        socket: Socket,
        traces: Traces,
        log: Log,
    ) -> Result<(Running, Option<PathBuf>), Failure> {
        let host = self.external_host(values);
        let url = format!("https://{host}:{}", self.listen.port());
        let service_account_tokens = service_account_flags(values).tokens(&url, log)?;
        let path = |name: &str| values.text(name).map(Path::new);
        let selection = plugins(values)?;
        let control = AdmissionControl { file: path("admission-control-config-file").map(Path::to_owned) };
        let mut plugins = control.read(&selection)?;
        let seconds = |name: &str, default: i64| {
            values.text(name).and_then(|text| text.parse().ok()).unwrap_or(default)
        };
        let default = DefaultTolerationSeconds::default();
        plugins.in_tree.default_toleration_seconds = DefaultTolerationSeconds {
            not_ready: seconds("default-not-ready-toleration-seconds", default.not_ready),
            unreachable: seconds("default-unreachable-toleration-seconds", default.unreachable),
        };
        let clients = path("client-ca-file").map(client_authorities).transpose()?;
        let (authentication, tokens) = self.authentication(values, log)?;
        let serving = self.serving(values)?;
        let tls = server_config(&serving.certificate, &serving.key, clients.as_ref())
            .map_err(|why| Failure::usage(format!("cannot use the certificate: {why}")))?;
        let (audit, audit_policy) = audit(values, log)?;
        let record = RecordFlags::from_environment()?.open(log)?;
        let root_certificates = String::from_utf8_lossy(&serving.certificate).into_owned();
        let controllers = record_file::is_on(WITH_CONTROLLERS)?.then_some(Controllers { root_certificates });
        let limit = |name: &str, default: usize| {
            values
                .text(name)
                .and_then(|text| text.parse().ok())
                .filter(|number| *number > 0)
                .unwrap_or(default)
        };
        let limits = Limits::default();
        let advertised = Advertised {
            address: self.advertised,
            external: self.external,
            port: socket.address().port(),
            client_authorities: clients.as_ref().map_or_else(String::new, |clients| clients.pem().to_owned()),
        };
        let options = Options {
            credentials: plugins.credentials,
            manifests: plugins.manifests.manifests,
            plugins: selection,
            plugin_configuration: plugins.in_tree,
            hostname: crate::hostname(),
            audit: audit.as_ref().map(AuditFile::sink),
            audit_policy,
            notices: Some(notices::sink(log, Advice::Omitted)),
            spans: traces.contexts(),
            tokens,
            service_account_tokens,
            observer: observer(record.as_ref(), None),
            controllers,
            authorization_mode: self.authorization_mode,
            limits: Limits {
                requests: limit("max-requests-inflight", limits.requests),
                mutating_requests: limit("max-mutating-requests-inflight", limits.mutating_requests),
                ..limits
            },
            advertised,
            service_ranges: self.ranges.clone(),
            flags,
            ..Options::default()
        };
        let running = Running {
            socket,
            tls: Arc::new(tls),
            authentication,
            clients,
            options,
            folders: plugins.manifests.folders,
            audit,
            traces,
            record,
            ui: None,
            fakes: None,
            log,
        };
        Ok((running, serving.made))
    }

    fn authentication(&self, values: &Values, log: Log) -> Result<(Authentication, Tokens), Failure> {
        let mut known = Tokens::default();
        if let Some(path) = values.text("token-auth-file") {
            tokens::read(Path::new(path), &mut known, log)?;
        }
        let mut anonymous = values.is_set("anonymous-auth", true);
        if anonymous && self.authorization_mode == AuthorizationMode::AlwaysAllow {
            log.info(
                "AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false. You should use \
                 a different authorizer",
            );
            anonymous = false;
        }
        Ok((Authentication::Authenticators(Authenticators { anonymous }), known))
    }

    /// Returns the server's name or address for other hosts: `--external-hostname`, or the external address.
    ///
    /// Source: kubernetes pkg/controlplane/apiserver/options/options.go, `Complete`.
    fn external_host(&self, values: &Values) -> String {
        let given = values.text("external-hostname").map(str::to_owned);
        given.unwrap_or_else(|| match self.external {
            Some(IpAddr::V6(address)) => format!("[{address}]"),
            Some(address @ IpAddr::V4(_)) => address.to_string(),
            None => crate::hostname(),
        })
    }

    fn serving(&self, values: &Values) -> Result<Serving, Failure> {
        match (values.text("tls-cert-file"), values.text("tls-private-key-file")) {
            (Some(certificate), Some(key)) => certificates::read(Path::new(certificate), Path::new(key)),
            (None, None) => {
                let folder = Path::new(values.text("cert-dir").unwrap_or(DEFAULT_CERT_DIR));
                let mut addresses = vec![self.ranges.addresses.first()];
                addresses.extend(self.advertised);
                if !self.listen.ip().is_unspecified() {
                    addresses.push(self.listen.ip());
                }
                certificates::in_folder(folder, &addresses)
            }
            _ => Err(Failure::usage("--tls-cert-file and --tls-private-key-file must be specified together")),
        }
    }
}

/// Checks the flags that kube-apiserver requires.
///
/// Source: kubernetes pkg/controlplane/apiserver/options/validation.go; the messages of kube-apiserver 1.37.1.
fn required(values: &Values) -> Result<(), Failure> {
    let has = |name: &str| values.text(name).is_some();
    let mut errors = Vec::new();
    let mut is_missing = |why: &str| errors.push(why.to_owned());
    if !has("etcd-servers") {
        is_missing("--etcd-servers must be specified");
    }
    let issuers = values.all("service-account-issuer");
    errors.extend(service_account_flags::issuer_errors(issuers)?);
    let mut is_missing = |why: &str| errors.push(why.to_owned());
    if issuers.is_empty() {
        is_missing("service-account-issuer is a required flag");
    }
    if values.all("service-account-key-file").is_empty() {
        is_missing("either `--service-account-key-file` or `--service-account-signing-endpoint` must be set");
    }
    let signs = has("service-account-signing-key-file");
    let has_issuer = issuers.first().is_some_and(|issuer| !issuer.is_empty());
    if !signs && !has_issuer && values.list("api-audiences").is_empty() {
        is_missing("--service-account-signing-key-file and --service-account-issuer are required flags");
    } else if !signs || !has_issuer {
        is_missing(
            "--service-account-signing-key-file, --service-account-issuer, and --api-audiences should be specified together",
        );
    }
    service_account_flags::refuse(&errors)
}

/// Returns the admission plugins that the flags select.
///
/// Source: kubernetes pkg/kubeapiserver/options/admission.go, `Validate` and `computePluginNames`.
fn plugins(values: &Values) -> Result<AdmissionPlugins, Failure> {
    let (enable, disable) =
        (values.list("enable-admission-plugins"), values.list("disable-admission-plugins"));
    let only = values.list("admission-control");
    if only.is_empty() {
        return PluginFlags::new(&enable, &disable).for_assets();
    }
    let mut errors = Vec::new();
    if !enable.is_empty() || !disable.is_empty() {
        let why = "admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive";
        errors.push(why.to_owned());
    }
    let known = |name: &&String| AdmissionPlugins::names().any(|known| known == name.as_str());
    errors.extend(
        only.iter()
            .filter(|name| !known(name))
            .map(|name| format!("admission-control plugin {} is unknown", harness::quoting::quote(name))),
    );
    service_account_flags::refuse(&errors)?;
    let others = AdmissionPlugins::names().filter(|name| !only.iter().any(|chosen| chosen == name));
    PluginFlags::new(&only, &others.map(str::to_owned).collect::<Vec<_>>()).for_assets()
}

fn mode(values: &Values) -> Result<AuthorizationMode, Failure> {
    let modes = values.list("authorization-mode");
    match modes.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] | ["AlwaysAllow"] => Ok(AuthorizationMode::AlwaysAllow),
        ["RBAC"] => Ok(AuthorizationMode::Rbac),
        several => {
            const KNOWN: [&str; 6] = ["AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "RBAC", "Node"];
            match several.iter().find(|mode| !KNOWN.contains(mode)) {
                Some(unknown) => {
                    Err(Failure::usage(format!("authorization-mode {unknown:?} is not a valid mode")))
                }
                None => Err(Failure::unsupported(format!(
                    "--authorization-mode={}: admit supports only RBAC or AlwaysAllow",
                    several.join(",")
                ))),
            }
        }
    }
}

/// Returns the address at which other hosts reach this host: `bound`, or the address of the default interface.
///
/// Returns `None` if there is only the loopback interface.
///
/// Source: apimachinery pkg/util/net/interface.go, `ResolveBindAddress`.
fn default_address(bound: IpAddr) -> Option<IpAddr> {
    if !bound.is_unspecified() && !bound.is_loopback() {
        return Some(bound);
    }
    // Connecting a UDP socket sends nothing. The address is in a network reserved for documentation.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(203, 0, 113, 1), 9)).ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

/// Opens the audit log and reads its policy. Without a policy, no events are written, as in kube-apiserver.
fn audit(values: &Values, log: Log) -> Result<(Option<AuditFile>, Option<AuditPolicy>), Failure> {
    let Some(policy) = values.text("audit-policy-file") else {
        if values.text("audit-log-path").is_some() {
            log.info("No audit policy file provided, no events will be recorded for log backend");
        }
        return Ok((None, None));
    };
    let policy = audit_file::policy(Path::new(policy))?;
    let Some(path) = values.text("audit-log-path") else { return Ok((None, None)) };
    let path = Path::new(if path == "-" { "/dev/stdout" } else { path });
    let size = || values.text("audit-log-truncate-max-event-size").and_then(|text| text.parse().ok());
    let most = values.is_set("audit-log-truncate-enabled", false).then(|| size().unwrap_or(MAX_EVENT_SIZE));
    Ok((Some(AuditFile::open(path, most, log)?), Some(policy)))
}

/// Returns the flags for service account tokens.
fn service_account_flags(values: &Values) -> ServiceAccountFlags {
    let seconds = |text: &str| service_account_flags::seconds(text).ok();
    ServiceAccountFlags {
        service_account_issuer: values.all("service-account-issuer").to_vec(),
        service_account_key_file: values.all("service-account-key-file").iter().map(PathBuf::from).collect(),
        service_account_signing_key_file: values.text("service-account-signing-key-file").map(PathBuf::from),
        api_audiences: values.list("api-audiences"),
        service_account_jwks_uri: values.text("service-account-jwks-uri").unwrap_or_default().to_owned(),
        service_account_max_token_expiration: values
            .text("service-account-max-token-expiration")
            .and_then(seconds),
        service_account_extend_token_expiration: values
            .is_set("service-account-extend-token-expiration", true),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::flags::{Parsed, Syntax, Table};
    use super::*;

    const REQUIRED: [&str; 4] = [
        "--etcd-servers=http://127.0.0.1:1",
        "--service-account-issuer=https://x",
        "--service-account-key-file=/x",
        "--service-account-signing-key-file=/x",
    ];

    fn values(arguments: &[&str]) -> Values {
        let table = Table::read(super::super::FLAGS, Syntax::Pflag);
        match table.parse(arguments.iter().map(|&argument| argument.to_owned())) {
            Ok(Parsed::Run(values)) => values,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn refused(arguments: &[&str], expected: &str) {
        let failure = Settings::new(&values(arguments)).err().unwrap().to_string();
        assert_eq!(failure, expected, "{arguments:?}");
    }

    #[test]
    fn missing_and_invalid_flags_have_the_servers_errors() {
        refused(
            &[],
            "[--etcd-servers must be specified, service-account-issuer is a required flag, either \
             `--service-account-key-file` or `--service-account-signing-endpoint` must be set, \
             --service-account-signing-key-file and --service-account-issuer are required flags]",
        );
        let and = |more: &'static str| [&REQUIRED[..], &[more]].concat();
        refused(&REQUIRED[1..], "--etcd-servers must be specified");
        refused(
            &and("--secure-port=0"),
            "--secure-port 0 must be between 1 and 65535, inclusive. It cannot be turned off with 0",
        );
        refused(&and("--authorization-mode=Foo"), "authorization-mode \"Foo\" is not a valid mode");
        refused(
            &and("--advertise-address=127.0.0.1"),
            "cannot use public IP 127.0.0.1 with endpoint reconciler: <nil>: Invalid value: \"127.0.0.1\": may not be in the \
             loopback range (127.0.0.0/8, ::1/128)",
        );
    }

    #[test]
    fn admission_control_selects_exactly_these_plugins() {
        let selected = plugins(&values(&["--admission-control=NamespaceLifecycle,LimitRanger"])).unwrap();
        assert_eq!(selected.in_order().collect::<Vec<_>>(), ["NamespaceLifecycle", "LimitRanger"]);
        let failure = plugins(&values(&["--admission-control=Foo", "--enable-admission-plugins=Priority"]))
            .unwrap_err();
        assert_eq!(
            failure.to_string(),
            "[admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive, \
             admission-control plugin \"Foo\" is unknown]"
        );
    }

    #[test]
    fn unsupported_values_are_reported() {
        let more = "--authorization-mode=Node,RBAC";
        let failure = Settings::new(&values(&[&REQUIRED[..], &[more]].concat())).err().unwrap();
        assert_eq!(failure.code, crate::ExitCode::Unsupported);
    }

    #[test]
    fn defaults_are_those_of_kube_apiserver() {
        let settings = Settings::new(&values(&REQUIRED)).unwrap();
        assert_eq!(settings.listen, "0.0.0.0:6443".parse().unwrap());
        assert_eq!(settings.authorization_mode, AuthorizationMode::AlwaysAllow);
    }
}
