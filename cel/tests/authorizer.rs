//! Tests the access checks that an authorizer receives.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::{Arc, Mutex};

use kubernetes_cel::authorization::{
    Attributes, AuthorizationDecision, Authorizer, Decision, Resource, Selection, Target, User,
};
use kubernetes_cel::kubernetes::{
    Expressions, Variables as Admission, Version, environment, with_admission_variables,
};
use kubernetes_cel::selectors::LabelOperator;
use kubernetes_cel::value::Value;
use kubernetes_cel::{Limits, Variables};
use kubernetes_cel::{authorizer_value, request_resource_value};

/// An access check: user, verb, and resource or path.
type AccessCheck = (User, String, Result<Resource, String>);

/// Allows every request and records the last access check.
#[derive(Debug, Default)]
struct Recorder(Mutex<Option<AccessCheck>>);

impl Authorizer for Recorder {
    fn authorize(&self, asked: &Attributes<'_>) -> Decision {
        let target = match asked.target {
            Target::Resource(resource) => Ok(resource.clone()),
            Target::Path(path) => Err(path.to_owned()),
            _ => return Decision::default(),
        };
        *self.0.lock().unwrap() = Some((asked.user.clone(), asked.verb.to_owned(), target));
        Decision { verdict: AuthorizationDecision::Allow, ..Decision::default() }
    }
}

struct Bindings(Arc<Recorder>);

fn alice() -> Arc<User> {
    Arc::new(User { name: "alice".to_owned(), ..User::default() })
}

fn status_of_a_pod() -> Resource {
    Resource {
        resource: "pods".to_owned(),
        subresource: "status".to_owned(),
        namespace: "default".to_owned(),
        name: "web".to_owned(),
        ..Resource::default()
    }
}

impl<'a> Variables<'a> for Bindings {
    fn get(&self, name: &str) -> Option<Value<'a>> {
        let authorizer: Arc<dyn Authorizer> = Arc::<Recorder>::clone(&self.0);
        match name {
            "authorizer" => Some(authorizer_value(alice(), authorizer)),
            "authorizer.requestResource" => {
                Some(request_resource_value(alice(), authorizer, status_of_a_pod()))
            }
            _ => None,
        }
    }
}

/// Returns the access check that the evaluation of an expression performs.
#[track_caller]
fn asked(check: &str) -> AccessCheck {
    let base = environment(Version::new(1, 37), Expressions::Stored);
    let environment = with_admission_variables(base, Admission { params: false, authorizer: true });
    let recorder = Arc::new(Recorder::default());
    let program = environment.compile(&format!("{check}.allowed()")).unwrap();
    let evaluation = program.evaluate(&Bindings(Arc::clone(&recorder)), &Limits::default());
    assert!(matches!(evaluation.value, Ok(Value::Bool(true))), "{:?}", evaluation.value);
    recorder.0.lock().unwrap().take().unwrap()
}

#[test]
fn path_check_contains_the_path() {
    let (user, verb, target) = asked("authorizer.path('healthz').check('get')");
    assert_eq!((user, verb.as_str(), target), ((*alice()).clone(), "get", Err("healthz".to_owned())));
}

#[test]
fn resource_check_contains_the_last_values() {
    let (_, verb, target) = asked(
        "authorizer.group('apps').resource('deployments').subresource('scale').namespace('a').name('b')\
         .namespace('').check('list')",
    );
    let expected = Resource {
        group: "apps".to_owned(),
        resource: "deployments".to_owned(),
        subresource: "scale".to_owned(),
        name: "b".to_owned(),
        ..Resource::default()
    };
    assert_eq!((verb.as_str(), target), ("list", Ok(expected)));
}

#[test]
fn request_resource_can_be_refined() {
    let (_, _, target) = asked("authorizer.requestResource.subresource('').check('delete')");
    assert_eq!(target, Ok(Resource { subresource: String::new(), ..status_of_a_pod() }));
}

#[test]
fn service_account_has_its_two_groups() {
    let (user, _, _) = asked("authorizer.serviceAccount('ci', 'builder').path('/').check('get')");
    assert_eq!(user, User::service_account("ci", "builder"));
    assert_eq!(user.name, "system:serviceaccount:ci:builder");
    assert_eq!(user.groups, ["system:serviceaccounts", "system:serviceaccounts:ci"]);
}

#[test]
fn selectors_are_requirements_or_parse_errors() {
    let check = |selectors: &str| {
        let (_, _, target) =
            asked(&format!("authorizer.group('').resource('pods'){selectors}.check('list')"));
        target.unwrap()
    };
    let resource = check(".fieldSelector('spec.nodeName!=a,b=c').labelSelector('app in (x,y)')");
    let Selection::Requirements(fields) = resource.fields else { panic!("{:?}", resource.fields) };
    let fields: Vec<_> =
        fields.iter().map(|field| (field.field.as_str(), field.negated, field.value.as_str())).collect();
    assert_eq!(fields, [("b", false, "c"), ("spec.nodeName", true, "a")]);
    let Selection::Requirements(labels) = resource.labels else { panic!("{:?}", resource.labels) };
    let [label] = labels.as_slice() else { panic!("{labels:?}") };
    assert_eq!((label.key.as_str(), label.operator), ("app", LabelOperator::In));
    assert_eq!(label.values, ["x", "y"]);

    let resource = check(".fieldSelector('x').labelSelector('=')");
    assert_eq!(resource.fields, Selection::Invalid("invalid selector: 'x'; can't understand 'x'".to_owned()));
    let error = "found '=', expected: !, identifier, or 'end of string'";
    assert_eq!(resource.labels, Selection::Invalid(error.to_owned()));
    assert_eq!(check(".fieldSelector('x').fieldSelector('')").fields, Selection::default());
}
