//! Implements `/healthz`, `/livez`, and `/readyz` with kube-apiserver's checks.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use kubernetes_types::quoting::quote;

use crate::apimachinery::query::Query;

/// The checks of kube-apiserver 1.37.1, in the same order.
///
/// Each line contains a check and its endpoints. A check without endpoints belongs to all endpoints.
///
/// All checks always succeed, including those of components that admit does not have.
///
/// Source: apiserver pkg/server/healthz.go; the responses of kube-apiserver 1.37.1 to `?verbose`.
const CHECKS: &str = include_str!("health-checks.txt");

/// An endpoint that reports the health of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Healthz,
    Livez,
    Readyz,
}

impl Endpoint {
    fn name(self) -> &'static str {
        match self {
            Self::Healthz => "healthz",
            Self::Livez => "livez",
            Self::Readyz => "readyz",
        }
    }

    fn checks(self) -> impl Iterator<Item = &'static str> {
        CHECKS.lines().filter_map(move |line| match line.split_once(' ') {
            None => Some(line),
            Some((check, of)) => of.split(' ').any(|of| of == self.name()).then_some(check),
        })
    }
}

/// Returns the paths of the endpoints and of all checks.
pub(crate) fn paths() -> impl Iterator<Item = String> {
    [Endpoint::Healthz, Endpoint::Livez, Endpoint::Readyz].into_iter().flat_map(|endpoint| {
        let name = endpoint.name();
        let checks = endpoint.checks().map(move |check| format!("/{name}/{check}"));
        std::iter::once(format!("/{name}")).chain(checks)
    })
}

/// Returns the response to `/metrics/slis`: one successful run of each check of `/readyz`.
///
/// Source: component-base metrics/prometheus/slis/metrics.go.
pub(crate) fn slis() -> String {
    let checks: BTreeSet<&str> = Endpoint::Readyz.checks().collect();
    let mut text = String::from(
        "# HELP kubernetes_healthcheck [STABLE] This metric records the result of a single healthcheck.\n\
         # TYPE kubernetes_healthcheck gauge\n",
    );
    for check in &checks {
        let _: std::fmt::Result =
            writeln!(text, "kubernetes_healthcheck{{name=\"{check}\",type=\"readyz\"}} 1");
    }
    text.push_str(
        "# HELP kubernetes_healthchecks_total [STABLE] This metric records the results of all healthcheck.\n\
         # TYPE kubernetes_healthchecks_total counter\n",
    );
    for check in &checks {
        let labels = format!("name=\"{check}\",status=\"success\",type=\"readyz\"");
        let _: std::fmt::Result = writeln!(text, "kubernetes_healthchecks_total{{{labels}}} 1");
    }
    text
}

/// A health request: a whole endpoint or one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Health {
    endpoint: Endpoint,
    is_whole: bool,
}

impl Health {
    /// Parses the path of a health request. Returns `None` for any other path, including an unknown check.
    pub(crate) fn from_path(path: &str) -> Option<Self> {
        let path = path.strip_prefix('/')?;
        let (name, check) = path.split_once('/').map_or((path, None), |(name, check)| (name, Some(check)));
        let endpoint = match name {
            "healthz" => Endpoint::Healthz,
            "livez" => Endpoint::Livez,
            "readyz" => Endpoint::Readyz,
            _ => return None,
        };
        let is_there = check.is_none_or(|check| endpoint.checks().any(|known| known == check));
        is_there.then_some(Self { endpoint, is_whole: check.is_none() })
    }

    /// Returns whether the request is for all checks of an endpoint.
    pub(crate) const fn is_whole(self) -> bool {
        self.is_whole
    }

    /// Returns the response text. It always reports a healthy server.
    ///
    /// Source: apiserver pkg/server/healthz/healthz.go, `handleRootHealth`.
    /// Rule: RBAC-28.
    pub(crate) fn answer(self, query: &Query) -> String {
        if !self.is_whole || query.all("verbose").is_empty() {
            return "ok".to_owned();
        }
        let mut unknown: BTreeSet<&str> = query.all("exclude").iter().map(String::as_str).collect();
        let excluded = unknown.clone();
        let mut text = String::new();
        for check in self.endpoint.checks() {
            unknown.remove(check);
            let how = if excluded.contains(check) { " excluded:" } else { "" };
            let _: std::fmt::Result = writeln!(text, "[+]{check}{how} ok");
        }
        if !unknown.is_empty() {
            let names: Vec<String> = unknown.into_iter().map(quote).collect();
            let names = names.join(",");
            let _: std::fmt::Result =
                writeln!(text, "warn: some health checks cannot be excluded: no matches for {names}");
        }
        text + self.endpoint.name() + " check passed\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, query: &str) -> Vec<String> {
        let answer = Health::from_path(path).unwrap().answer(&Query::parse(query));
        answer.lines().map(str::to_owned).collect()
    }

    #[test]
    fn paths_are_endpoints_or_their_checks() {
        for path in
            ["/healthz", "/livez/ping", "/readyz/poststarthook/rbac/bootstrap-roles", "/readyz/shutdown"]
        {
            assert!(Health::from_path(path).is_some(), "{path}");
        }
        for path in ["/readyz/", "/readyz/nope", "/livez/shutdown", "/health", "healthz", "/"] {
            assert_eq!(Health::from_path(path), None, "{path}");
        }
    }

    #[test]
    fn each_endpoint_lists_its_checks() {
        assert_eq!(lines("/readyz", ""), ["ok"]);
        assert_eq!(lines("/readyz/etcd", "verbose"), ["ok"]);
        for (path, count) in [("/readyz", 37), ("/livez", 35), ("/healthz", 35)] {
            assert_eq!(lines(path, "verbose=false").len(), count, "{path}");
        }
    }

    #[test]
    fn excluded_checks_are_listed() {
        let found = lines("/readyz", "verbose&exclude=etcd&exclude=foo&exclude=bar");
        assert_eq!(found[2], "[+]etcd excluded: ok");
        assert_eq!(
            found[found.len() - 2..],
            [
                r#"warn: some health checks cannot be excluded: no matches for "bar","foo""#,
                "readyz check passed"
            ]
        );
    }
}
