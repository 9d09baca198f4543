//! Tests which libraries and options each version of Kubernetes includes.

use super::*;
use crate::environment::{CompileError, ObjectType};
use crate::function::Error;
use crate::types::Type;
use crate::value::Value;

#[track_caller]
fn check(version: &str, expression: &str, compiles: bool) {
    let environment = environment_at(version.parse().unwrap())
        .with_variable("authorizer", crate::library::authorizer::authorizer())
        .with_variable("object", Type::Dyn);
    assert_eq!(environment.check(expression).is_ok(), compiles, "{expression} at {version}");
}

#[test]
fn libraries_are_available_from_their_version() {
    for (first, expression) in [
        ("1.25", "isURL('a') && 'a'.find('b') == '' && [1].sum() == 1"),
        ("1.27", "authorizer.path('/a').check('get').allowed()"),
        ("1.28", "1 < 2.0 && object.?a.hasValue() && isQuantity('1')"),
        ("1.29", "'%s'.format(['a']) == 'a' && sets.contains([1], [1])"),
        ("1.30", "isIP('a') && isCIDR('a') && type(ip('::1')) == net.IP"),
        ("1.31", "format.dns1123Label().validate('a') == optional.none()"),
        ("1.31", "authorizer.group('').resource('a').fieldSelector('a=b').check('get').allowed()"),
        ("1.32", "{'a': 1}.all(k, v, v == 1)"),
        ("1.33", "isSemver('1.2.3', true)"),
        ("1.34", "[1, 2].sortBy(x, -x) == [2, 1]"),
        ("1.37", "[1, 2].includes(1)"),
    ] {
        let first: Version = first.parse().unwrap();
        check(&first.to_string(), expression, true);
        check("1.37", expression, true);
        if first > Version::new(1, 25) {
            check(&first.previous().to_string(), expression, false);
        }
    }
}

#[test]
fn replaced_libraries_remain_available() {
    for version in ["1.28", "1.29", "1.36", "1.37"] {
        check(version, "'a'.lowerAscii() == 'a' && [1].indexOf(1) == 0", true);
    }
}

#[test]
fn new_expressions_use_the_environment_of_the_previous_release() {
    let release = Version::new(1, 37);
    let expression = "[1, 2].includes(1)";
    assert!(environment(release, Expressions::New).check(expression).is_err());
    assert!(environment(release, Expressions::Stored).check(expression).is_ok());
}

#[test]
fn constants_are_validated_since_1_29() {
    for expression in
        ["duration('x') == duration('1s')", "timestamp('x') == timestamp('y')", "'a'.matches('(')"]
    {
        check("1.28", expression, true);
        check("1.29", expression, false);
    }
    check("1.25", "[1, 'a'] == []", false);
}

#[test]
fn admission_variables_have_types() {
    let base = || environment_at(Version::new(1, 37));
    let all = with_admission_variables(base(), Variables { params: true, authorizer: true });
    let some = with_admission_variables(base(), Variables::default());
    for expression in [
        "request.userInfo.groups.exists(g, g == 'a') && request.kind.kind == 'Pod' && request.dryRun",
        "namespaceObject.metadata.labels['a'] == 'b' && namespaceObject.status.conditions[0].reason == ''",
        "object.a.b == oldObject.a.b && request.options.kind == 'x'",
    ] {
        assert!(all.check(expression).is_ok(), "{expression}");
        assert!(some.check(expression).is_ok(), "{expression}");
    }
    for expression in ["params.a == 1", "authorizer.requestResource.check('get').allowed()"] {
        assert!(all.check(expression).is_ok(), "{expression}");
        assert!(some.check(expression).is_err(), "{expression}");
    }
    for expression in ["request.uid == 'a'", "namespaceObject.metadata.managedFields == []"] {
        assert!(all.check(expression).is_err(), "{expression}");
    }
}

#[test]
fn version_has_two_numbers() {
    assert_eq!("v1.37.1".parse(), Ok(Version::new(1, 37)));
    assert_eq!("1.9".parse(), Ok(Version::new(1, 9)));
    assert!(Version::new(1, 9) < Version::new(1, 10));
    assert_eq!("1".parse::<Version>(), Err(VersionError("1".to_owned())));
}

#[test]
fn a_device_has_attributes_of_any_type() {
    let environment = with_device(environment(Version::new(1, 37), Expressions::New));
    let of = |expression: &str| environment.type_of(expression).map_err(|error| error.to_string());
    assert_eq!(of("device.attributes['a'].b"), Ok(Type::Any));
    assert_eq!(
        of("cel.bind(a, device.attributes['a'], a.b && device.allowMultipleAllocations)"),
        Ok(Type::Bool)
    );
    assert_eq!(of("device.capacity['a'].b.isGreaterThan(quantity('1'))"), Ok(Type::Bool));
    assert!(of("device.name").is_err_and(|error| error.contains("undefined field 'name'")));
    assert!(of("cel.bind(a.b, 1, a)").is_err_and(|error| error.contains("must be simple identifiers")));
    assert!(of("other.bind(a, 1, a)").is_err_and(|error| error.contains("undeclared reference")));
}

#[track_caller]
fn check_patch(expression: &str, expected: Result<&str, &str>) {
    let environment = with_patch_types(environment(RELEASE, Expressions::Stored));
    let program = environment.compile(expression).map_err(|error| error.to_string());
    let value = program.map(|program| {
        let evaluation = program.evaluate(&NoVariables, &crate::Limits::default());
        evaluation.value.map_or_else(|error| error.to_string(), |value| value.to_string())
    });
    match (value, expected) {
        (Err(error), Err(part)) => assert!(error.contains(part), "{expression}: {error}"),
        (value, expected) => {
            assert_eq!(value, expected.map(str::to_owned).map_err(str::to_owned), "{expression}");
        }
    }
}

struct NoVariables;

impl<'a> crate::Variables<'a> for NoVariables {
    fn get(&self, _: &str) -> Option<crate::value::Value<'a>> {
        None
    }
}

#[test]
fn patch_types_have_the_fields_of_a_change_or_an_operation() {
    check_patch("Object{spec: Object.spec{replicas: 3}}", Ok("Object{spec: Object.spec{replicas: 3}}"));
    check_patch("Object{list: [1, 2]}.list.sum()", Ok("3"));
    check_patch("has(Object{a: 1}.a) && !has(Object{a: 1}.b)", Ok("true"));
    check_patch("Object{?a: optional.none()} == Object{}", Ok("true"));
    check_patch("Object{a: 1} == Object{a: 1 + 1}", Ok("false"));
    check_patch("Object{}.?a.hasValue()", Ok("false"));
    check_patch("JSONPatch{op: 'add', path: '/a', value: 1}.path", Ok("/a"));
    check_patch("JSONPatch{op: dyn(1)}", Ok("unexpected type int64 for JSONPatchType 'op' field"));
    check_patch(
        "JSONPatch{op: 1}",
        Err("expected type of field 'op' is 'string' but provided type is 'int'"),
    );
    check_patch("JSONPatch{foo: 1}", Err("expected type of field 'foo' is '' but provided type is 'int'"));
    check_patch("Invalid{}", Err("undeclared reference to 'Invalid'"));
    check_patch("Objects{}", Err("undeclared reference to 'Objects'"));
    check_patch("jsonpatch.escapeKey('k8s.io/my~label')", Ok("k8s.io~1my~0label"));
}

#[test]
fn an_error_names_the_object_type_that_lacks_a_field() {
    let spec = ObjectType::new("Spec", [("items", Type::list(Type::object("Item")))]);
    let declared = environment(RELEASE, Expressions::Stored)
        .with_object(spec)
        .with_object(ObjectType::new("Item", [("name", Type::Dyn)]))
        .with_variable("spec", Type::object("Spec"));
    let undefined = |expression: &str| {
        let Err(CompileError::Invalid(report)) = declared.compile(expression) else { return Vec::new() };
        let fields = report.issues.into_iter().filter_map(|issue| issue.undefined_field);
        fields.map(|it| (it.object.to_string(), it.field.to_string(), it.is_tested)).collect()
    };
    let item = |is_tested: bool| ("Item".to_owned(), "nme".to_owned(), is_tested);
    assert_eq!(undefined("spec.items.all(i, i.nme == 'a')"), [item(false)]);
    assert_eq!(undefined("spec.items.all(i, !has(i.nme) || i.nme == 'a')"), [item(true), item(false)]);
    assert_eq!(undefined("spec.items[0].?nme.orValue('') == 'a'"), [item(true)]);
    assert_eq!(undefined("spec.other"), [("Spec".to_owned(), "other".to_owned(), false)]);
    assert_eq!(undefined("spec.items.all(i, i.name.other == 'a')"), []);
    assert_eq!(undefined("spec == 1"), []);
}

#[test]
fn a_composed_variable_has_the_type_of_its_expression() {
    let composed = with_composed_variables(
        environment(RELEASE, Expressions::Stored),
        [("list", &Type::list(Type::Int))],
    );
    let composed = with_composed_variable(composed, "other", &Type::object("kubernetes.Quantity"));
    let error = |expression: &str| composed.compile(expression).map(drop).unwrap_err().to_string();
    assert!(error("variables.list == 'a'").contains("found no matching overload"));
    assert!(error("variables.missing").contains("undefined field 'missing'"));
    assert!(composed.compile("variables.other == 'a' && variables.list[0] == 1").is_ok());
}

#[test]
fn device_size_bounds_the_cost_of_expressions() {
    let environment = with_device(environment(Version::new(1, 37), Expressions::New));
    let most =
        |expression: &str| environment.estimate(expression, &DeviceSizes::default()).map(|cost| cost.max);
    let all = |inner: &str| format!("device.attributes.all(a, {inner})");
    let one = most(&all("a == 'b'")).unwrap();
    assert!(one < 1000, "{one}");
    let nested = most(&all(&all(&all(&all("a.matches('b+')"))))).unwrap();
    assert!(nested > 1_000_000, "{nested}");
    assert!(most("device.driver.matches('a+b')").unwrap() < 1000);
}

/// A composed variable: the member `fine` has a value, `wrong` has an error, and other members do not exist.
struct OneOfEach;

impl<'a> crate::Variables<'a> for OneOfEach {
    fn get(&self, _: &str) -> Option<Value<'a>> {
        None
    }

    fn members(&self, name: &str) -> Option<&dyn crate::Members<'a>> {
        (name == "variables").then_some(self)
    }
}

impl<'a> crate::Members<'a> for OneOfEach {
    fn get(&self, name: &str) -> Option<Result<Value<'a>, Error>> {
        match name {
            "fine" => Some(Ok(Value::list(vec![7.into()]))),
            "wrong" => Some(Err(Error::new("it failed"))),
            _ => None,
        }
    }
}

#[test]
fn a_member_of_variables_has_the_type_and_the_value_of_its_expression() {
    let ints = Type::list(Type::Int);
    let quantity = Type::object("kubernetes.Quantity");
    let base = with_composed_variables(environment(RELEASE, Expressions::Stored), std::iter::empty());
    let fields = [("fine", &ints), ("wrong", &quantity), ("missing", &Type::Bool)];
    let environment =
        fields.into_iter().fold(base, |base, (name, of)| with_composed_variable(base, name, of));
    for (expression, expected, cost) in [
        ("variables.fine[0]", "7", 3),
        ("has(variables.fine)", "true", 1),
        ("variables.?fine.hasValue()", "true", 3),
        ("variables.?missing.hasValue()", "false", 2),
        ("variables.wrong == 1", "it failed", 3),
        ("variables.missing", "no such key: missing", 2),
        ("size([variables]) == 1", "not supported: the value of 'variables' itself", 0),
    ] {
        let program = environment.compile(expression).unwrap();
        let evaluation = program.evaluate(&OneOfEach, &crate::Limits::default());
        let value = evaluation.value.map_or_else(|error| error.to_string(), |value| value.to_string());
        assert_eq!((value.as_str(), evaluation.cost), (expected, cost), "{expression}");
    }
    let error = |expression: &str| environment.compile(expression).map(drop).unwrap_err().to_string();
    assert!(error("variables.other").contains("undefined field 'other'"));
    assert!(error("variables.fine == 'a'").contains("found no matching overload"));
    assert!(environment.compile("variables.wrong == 'a'").is_ok());
}
