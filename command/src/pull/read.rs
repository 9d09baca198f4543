//! Reads the resources of a cluster into the directory, and records what could not be read.

use std::collections::BTreeMap;

use harness::json::{at, set, text};
use serde_json::Value;

use super::folder::Folder;
use super::object_file;
use super::reader::{ReadError, Reader};
use super::references::{ParamSelection, References};
use super::report::{Rule, Unread};
use super::resources::{
    ENDPOINT_SLICES, NAMESPACES, PARAMS_UNCERTAIN, RESOURCES, Resource, SERVICES, resource_name, root,
};
use crate::Failure;
use crate::progress::ProgressReporter;

/// The state of a pull.
pub(super) struct Pulled<'a> {
    reader: Reader,
    folder: &'a mut Folder,
    /// The namespaces of `--namespace`; empty for all.
    namespaces: &'a [String],
    progress: &'a ProgressReporter,
    references: References,
    objects: BTreeMap<String, usize>,
    unread: Vec<Unread>,
}

/// A request for objects: a list, or one object if `name` is not empty.
struct Query<'a> {
    group: &'a str,
    version: &'a str,
    plural: &'a str,
    kind: &'a str,
    /// The namespace; empty for all namespaces and for cluster-scoped resources.
    namespace: &'a str,
    name: &'a str,
    selector: &'a [(&'a str, &'a str)],
    uncertain: &'a str,
}

impl<'a> Query<'a> {
    fn new(resource: &'a Resource, version: &'a str, namespace: &'a str, name: &'a str) -> Self {
        let Resource { group, plural, kind, uncertain, .. } = *resource;
        Self { group, version, plural, kind, namespace, name, selector: &[], uncertain }
    }

    fn path(&self) -> String {
        let mut path = root(&segment(self.group), &segment(self.version));
        if !self.namespace.is_empty() {
            path = format!("{path}/namespaces/{}", segment(self.namespace));
        }
        path = format!("{path}/{}", segment(self.plural));
        if self.name.is_empty() { path } else { format!("{path}/{}", segment(self.name)) }
    }
}

/// Encodes a name as one segment of a URL path.
fn segment(name: &str) -> String {
    let keeps = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte);
    name.bytes()
        .map(|byte| if keeps(byte) { char::from(byte).into() } else { format!("%{byte:02X}") })
        .collect()
}

impl<'a> Pulled<'a> {
    pub(super) fn new(
        client: kube::Client,
        folder: &'a mut Folder,
        namespaces: &'a [String],
        progress: &'a ProgressReporter,
    ) -> Self {
        Self {
            reader: Reader::new(client),
            folder,
            namespaces,
            progress,
            references: References::default(),
            objects: BTreeMap::new(),
            unread: Vec::new(),
        }
    }

    /// Returns the number of objects of each resource, and what could not be read.
    pub(super) fn into_parts(self) -> (BTreeMap<String, usize>, Vec<Unread>) {
        (self.objects, self.unread)
    }

    /// Reads everything.
    ///
    /// # Errors
    /// Returns an error if the cluster does not respond, a file cannot be written, or a namespace does not exist.
    pub(super) async fn read(&mut self) -> Result<(), Failure> {
        self.read_namespaces().await?;
        for (index, resource) in RESOURCES.iter().enumerate() {
            self.report(index + 1, &resource.name());
            if resource.namespaced && !self.namespaces.is_empty() {
                for namespace in self.namespaces {
                    self.read_resource(resource, namespace).await?;
                }
            } else {
                self.read_resource(resource, "").await?;
            }
        }
        self.report(RESOURCES.len() + 1, "params of policies");
        for selection in self.references.params() {
            self.read_params(&selection).await?;
        }
        self.report(RESOURCES.len() + 2, "Services of webhooks");
        for (namespace, name) in self.references.services.clone() {
            self.query(&Query::new(&SERVICES, "v1", &namespace, &name)).await?;
            let selector = format!("kubernetes.io/service-name={name}");
            let slices = Query::new(&ENDPOINT_SLICES, "v1", &namespace, "");
            self.query(&Query { selector: &[("labelSelector", &selector)], ..slices }).await?;
        }
        Ok(())
    }

    fn report(&self, done: usize, what: &str) {
        // In addition to the resources: namespaces, params, and Services.
        let total = RESOURCES.len() + 3;
        self.progress.report("reading the cluster", done as u64, Some(total as u64), what);
    }

    /// Reads all namespaces or, without the right to list them, those of `--namespace`.
    async fn read_namespaces(&mut self) -> Result<(), Failure> {
        self.report(0, "namespaces");
        self.read_resource(&NAMESPACES, "").await?;
        let is_listed = !self.unread.iter().any(|unread| unread.resource == NAMESPACES.plural);
        for namespace in self.namespaces {
            let query = Query::new(&NAMESPACES, "v1", "", namespace);
            let is_found = if is_listed {
                self.folder.is_staged(&object_file::path(&named("Namespace", namespace), NAMESPACES.plural))
            } else {
                self.query(&query).await?
            };
            if !is_found {
                return Err(Failure::usage(format!(
                    "--namespace {namespace}: the cluster does not have this namespace"
                )));
            }
        }
        Ok(())
    }

    /// Lists a resource in the newest version that the server has.
    async fn read_resource(&mut self, resource: &Resource, namespace: &str) -> Result<(), Failure> {
        for version in resource.versions {
            if self.query(&Query::new(resource, version, namespace, "")).await? {
                break;
            }
        }
        Ok(())
    }

    /// Reads the params that a binding selects.
    async fn read_params(&mut self, selection: &ParamSelection) -> Result<(), Failure> {
        let ParamSelection { kind, namespace, name, label_selector } = selection;
        let (group, version) = (kind.group.as_str(), kind.version.as_str());
        if group.is_empty() && kind.kind == "Secret" {
            self.unread.push(Unread {
                resource: "secrets".to_owned(),
                namespace: namespace.clone(),
                name: name.clone(),
                code: 0,
                reason: "Secret".to_owned(),
                message: "admit pull does not read Secrets".to_owned(),
                missing_rule: None,
                uncertain: PARAMS_UNCERTAIN.to_owned(),
            });
            return Ok(());
        }
        let discovery = self.reader.get(&root(&segment(group), &segment(version))).await;
        let served = match discovery {
            Ok(list) => list,
            // The policies fail in the cluster, too.
            Err(ReadError::NotFound) => return Ok(()),
            Err(error) => {
                let query = Query {
                    group,
                    version,
                    plural: &kind.kind,
                    kind: &kind.kind,
                    namespace,
                    name,
                    selector: &[],
                    uncertain: PARAMS_UNCERTAIN,
                };
                return self.record(&query, error);
            }
        };
        let resources = at(&served, &["resources"]).as_array().cloned().unwrap_or_default();
        let is_kind = |it: &&Value| text(it, &["kind"]) == kind.kind && !text(it, &["name"]).contains('/');
        let Some(resource) = resources.iter().find(is_kind) else { return Ok(()) };
        let namespaced = at(resource, &["namespaced"]) == true;
        let by_name = format!("metadata.name={name}");
        let by_name = [("fieldSelector", by_name.as_str())];
        let by_label = [("labelSelector", label_selector.as_str())];
        let in_request_namespace = namespaced && namespace.is_empty();
        let query = Query {
            group,
            version,
            plural: text(resource, &["name"]),
            kind: &kind.kind,
            namespace: if namespaced { namespace } else { "" },
            name,
            selector: &[],
            uncertain: PARAMS_UNCERTAIN,
        };
        let query = if name.is_empty() { Query { selector: &by_label, ..query } } else { query };
        if !in_request_namespace {
            self.query(&query).await?;
        } else if self.namespaces.is_empty() {
            let selector = if name.is_empty() { &by_label } else { &by_name };
            self.query(&Query { name: "", selector, ..query }).await?;
        } else {
            for namespace in self.namespaces {
                self.query(&Query { namespace, ..query }).await?;
            }
        }
        Ok(())
    }

    /// Reads one object or a list into files. Returns whether the server has the object or the resource.
    async fn query(&mut self, query: &Query<'_>) -> Result<bool, Failure> {
        let resource = resource_name(query.group, query.plural);
        let api_version = if query.group.is_empty() {
            query.version.to_owned()
        } else {
            format!("{}/{}", query.group, query.version)
        };
        let (folder, references, objects) = (&mut *self.folder, &mut self.references, &mut self.objects);
        let mut take = |mut object: Value| {
            set(&mut object, &["apiVersion"], api_version.as_str());
            set(&mut object, &["kind"], query.kind);
            references.add(&object);
            let object = object_file::reduced(object);
            let path = object_file::path(&object, &resource);
            if folder.stage(path, &object_file::yaml(&object)?)? {
                *objects.entry(resource.clone()).or_default() += 1;
            }
            Ok(())
        };
        let read = if query.name.is_empty() {
            self.reader.list(&query.path(), query.selector, take).await
        } else {
            match self.reader.get(&query.path()).await {
                Ok(object) => take(object).map_err(ReadError::from),
                Err(error) => Err(error),
            }
        };
        match read {
            Ok(()) => Ok(true),
            Err(ReadError::NotFound) => Ok(false),
            Err(error) => self.record(query, error).map(|()| true),
        }
    }

    /// Records that a query was rejected.
    fn record(&mut self, query: &Query<'_>, error: ReadError) -> Result<(), Failure> {
        let (code, reason, message) = match error {
            ReadError::Rejected { code, reason, message } => (code, reason, message),
            ReadError::NotFound => return Ok(()),
            ReadError::Failure(failure) => return Err(failure),
        };
        let verb = if query.name.is_empty() { "list" } else { "get" };
        let missing_rule = (code == 403).then(|| Rule {
            api_groups: vec![query.group.to_owned()],
            resources: vec![query.plural.to_owned()],
            verbs: vec![verb.to_owned()],
        });
        self.unread.push(Unread {
            resource: resource_name(query.group, query.plural),
            namespace: query.namespace.to_owned(),
            name: query.name.to_owned(),
            code,
            reason,
            message,
            missing_rule,
            uncertain: query.uncertain.to_owned(),
        });
        Ok(())
    }
}

/// Returns a cluster-scoped object with a name only.
fn named(kind: &str, name: &str) -> Value {
    serde_json::json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}})
}
