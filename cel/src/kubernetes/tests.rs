//! Tests which version of Kubernetes has which library and option.

use super::*;
use crate::types::Type;

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
