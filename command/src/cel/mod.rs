//! `admit cel`: evaluates CEL expressions as kube-apiserver does.

mod input;
mod policy;
mod report;

use std::path::PathBuf;
use std::sync::OnceLock;

use harness::chain;
use harness::conditions::{self, Environment};
use harness::json::at;
use harness::server::impersonated_user;
use serde::Serialize;
use serde_json::Value;

use self::input::{Given, Input};
use self::report::Report;
use crate::documents::{self, Document};
use crate::{ExitCode, Failure, machine_readable, screen};

/// Evaluate CEL expressions as kube-apiserver evaluates match conditions and admission policies.
///
/// Prints the type, the cost, and the value or error of each expression. The variables are those of match
/// conditions: object, oldObject, request, namespaceObject, and authorizer. With --policy, expressions can also use
/// params and variables, and the type is not printed. No request is sent.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Cel {
    /// Evaluate these expressions
    #[arg(value_name = "EXPR", required_unless_present_any = ["configurations", "policy"])]
    expressions: Vec<String>,
    /// Evaluate the match conditions in these webhook configurations: files, directories, or - for standard input
    #[arg(short = 'c', long = "configuration", value_name = "FILE", conflicts_with = "expressions")]
    configurations: Vec<PathBuf>,
    /// Evaluate the match conditions, variables, and validations or mutations of the admission policies in this
    /// file. Bindings in the file are ignored
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["expressions", "configurations", "namespace_object", "stored", "each"]
    )]
    policy: Option<PathBuf>,

    /// Read the variable object from this file, or - for standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE", help_heading = "Variables")]
    object: Option<PathBuf>,
    /// Read the variable oldObject from this file. With --filename, the request is an update, otherwise a deletion
    #[arg(long, value_name = "FILE", help_heading = "Variables")]
    old: Option<PathBuf>,
    /// Read the variable request from the AdmissionReview in this file. Its objects are used as object and oldObject
    /// unless --filename and --old specify them [default: a request that creates, updates, or deletes the object]
    #[arg(long, value_name = "FILE", help_heading = "Variables", conflicts_with_all = ["user", "groups"])]
    request: Option<PathBuf>,
    /// Read the variable namespaceObject from this file [default: the Namespace of the request, if --with contains it].
    /// Cannot be used with -c, because namespaceObject is always null in match conditions of webhooks
    #[arg(long, value_name = "FILE", help_heading = "Variables")]
    namespace_object: Option<PathBuf>,
    /// Read the variable params of a policy from this file
    #[arg(long, value_name = "FILE", help_heading = "Variables", requires = "policy")]
    param: Option<PathBuf>,
    /// Read objects that exist in the cluster from these files: custom resource definitions, the Namespace for
    /// namespaceObject, and RBAC objects for authorizer
    #[arg(long = "with", value_name = "FILE", help_heading = "Variables")]
    existing: Vec<PathBuf>,
    /// Make the request as this user [default: kubernetes-admin]
    #[arg(long = "as", value_name = "USER", help_heading = "Variables")]
    user: Option<String>,
    /// Make the request as a member of this group; can be repeated
    #[arg(long = "as-group", value_name = "GROUP", requires = "user", help_heading = "Variables")]
    groups: Vec<String>,
    /// Use this namespace for objects that do not specify one
    #[arg(short, long, value_name = "NAMESPACE", default_value = "default", help_heading = "Variables")]
    namespace: String,

    /// Compile with the rules for stored expressions: all features of this Kubernetes version, not only those of the
    /// previous version
    #[arg(long)]
    stored: bool,
    /// Show the value and cost of each part of an expression
    #[arg(long)]
    each: bool,
    /// Print results in this format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "text")]
    output: Output,
}

const EXAMPLES: &str = "\
Examples:
  admit cel \"object.spec.replicas > 2\" -f deployment.yaml
  admit cel \"object.data == oldObject.data\" -f new.yaml --old old.yaml --each
  admit cel --policy policy.yaml --param limits.yaml -f deployment.yaml
  admit cel -c webhook.yaml -f pod.yaml --as system:node:a --as-group system:nodes
  admit cel \"authorizer.requestResource.check('delete').allowed()\" -f pod.yaml \\
    --with roles.yaml --as jane -o json

Exit status: 0 if every expression has a value, 1 if an expression does not compile or cannot be evaluated,\n2 if the command line or an input file is invalid.";

/// The values of `--output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// Human-readable text
    Text,
    /// One JSON object per line
    Json,
    /// One YAML document for each expression
    Yaml,
}

impl Output {
    /// Prints the reports in this format; `text` formats a report as text.
    fn print<T: Serialize>(self, reports: &[T], text: impl Fn(&T) -> String) -> Result<(), Failure> {
        let one = |report: &T| match self {
            Self::Text => Ok(text(report)),
            Self::Json => {
                let line = serde_json::to_string(report).map_err(Failure::environment)?;
                Ok(output::json(&line).into_owned() + "\n")
            }
            Self::Yaml => Ok(format!("---\n{}", machine_readable::yaml(report)?)),
        };
        let shown: String = reports.iter().map(one).collect::<Result<_, Failure>>()?;
        match self {
            Self::Text => screen::print(&shown),
            Self::Json | Self::Yaml => screen::print_document(&shown),
        }
    }
}

/// An expression and its origin.
struct Expression {
    /// The names of the webhook and of its match condition; `None` for an expression on the command line.
    condition: Option<(String, String)>,
    text: String,
}

impl Cel {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        if !self.configurations.is_empty() && self.namespace_object.is_some() {
            return Err(Failure::usage(
                "--namespace-object cannot be used with -c: in match conditions of webhooks, namespaceObject is always \
                 null. Select Namespaces with the namespaceSelector of the webhook",
            ));
        }
        let expressions = self.all_expressions()?;
        let mut input = self.input()?;
        let uses_it = expressions.iter().any(|expression| expression.text.contains("namespaceObject"));
        if self.configurations.is_empty() {
            if uses_it && !input.has_namespace_object() {
                input.notes.push(
                    "namespaceObject is null, as in match conditions of webhooks. For an expression of a policy, pass the Namespace with --namespace-object FILE or in the files of --with"
                        .to_owned(),
                );
            }
        } else if input.clear_namespace_object() && uses_it {
            input.notes.push(
                "namespaceObject is null, because kube-apiserver does not pass the Namespace to match conditions of \
                 webhooks"
                    .to_owned(),
            );
        }
        for note in &input.notes {
            screen::status!("note: {}", output::one_line(note));
        }
        if let Some(policy) = &self.policy {
            return self.evaluate_policies(&policy::read(policy)?, input);
        }
        let environment = if self.stored { Environment::Stored } else { Environment::New };
        let declarations = conditions::declarations(environment);
        let request = OnceLock::new();
        let variables = input.variables(&request);
        let several = expressions.len() > 1 || !self.configurations.is_empty();
        let report = |expression| Report::new(expression, declarations, &variables, self.each);
        let reports: Vec<Report<'_>> = expressions.iter().map(report).collect();
        self.output.print(&reports, |report| report.text(several))?;
        Ok(if reports.iter().any(Report::failed) { ExitCode::Failed } else { ExitCode::Ok })
    }

    /// Returns the expressions on the command line or, if there are none, the match conditions in the configurations,
    /// in order.
    fn all_expressions(&self) -> Result<Vec<Expression>, Failure> {
        if self.configurations.is_empty() {
            let own = self.expressions.iter().map(|text| Expression { condition: None, text: text.clone() });
            return Ok(own.collect());
        }
        let mut all = Vec::new();
        for Document { object, .. } in documents::read(&self.configurations)? {
            for webhook in at(&object, &["webhooks"]).as_array().into_iter().flatten() {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                for condition in webhook["matchConditions"].as_array().into_iter().flatten() {
                    let names = (text(&webhook["name"]), text(&condition["name"]));
                    // The server trims expressions before it compiles them.
                    let expression = text(&condition["expression"]).trim().to_owned();
                    all.push(Expression { condition: Some(names), text: expression });
                }
            }
        }
        if all.is_empty() {
            return Err(Failure::nothing_run("no webhook in the configurations has matchConditions"));
        }
        Ok(all)
    }

    fn input(&self) -> Result<Input, Failure> {
        let existing = if self.existing.is_empty() { Vec::new() } else { documents::read(&self.existing)? };
        let given = Given {
            object: self.object.as_ref().map(one).transpose()?,
            old_object: self.old.as_ref().map(one).transpose()?,
            namespace_object: self.namespace_object.as_ref().map(one).transpose()?,
            existing: existing.into_iter().map(|document| document.object).collect(),
        };
        if let Some(review) = &self.request {
            return Input::of_review(one(review)?, given);
        }
        let user = match &self.user {
            Some(name) => impersonated_user(name, self.groups.clone()),
            None => chain::administrator(),
        };
        Input::of_objects(given, user, &self.namespace)
    }
}

/// Reads a file that must contain exactly one object.
fn one(path: &PathBuf) -> Result<Document, Failure> {
    let mut documents = documents::read(std::slice::from_ref(path))?.into_iter();
    match (documents.next(), documents.next()) {
        (Some(document), None) => Ok(document),
        (_, Some(second)) => Err(second.place.failure("expected one object in the file, found another")),
        (None, None) => Err(Failure::usage(format!("{}: it does not contain an object", path.display()))),
    }
}
