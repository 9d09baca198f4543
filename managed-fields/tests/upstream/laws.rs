//! Tests properties that hold for every object and every field set.

use std::collections::BTreeMap;

use kubernetes_managed_fields::{
    Duplicates, FieldManager, Path, PathElement, Set, Writer, compare, field_set, merge, remove_items,
    validate,
};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::schemas::{Schemas, Widgets};

fn element() -> impl Strategy<Value = PathElement> {
    let scalar = prop_oneof![
        any::<i32>().prop_map(Value::from),
        "[a-c<\"]{0,2}".prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
    ];
    let key = btree_map("[a-c]", scalar.clone(), 1..3);
    prop_oneof![
        "[a-c.é\"]{0,2}".prop_map(|name| PathElement::field(&name)),
        key.prop_map(PathElement::key),
        scalar.prop_map(PathElement::value),
        (0..9i64).prop_map(PathElement::Index),
    ]
}

fn set() -> impl Strategy<Value = Set> {
    let path = vec(element(), 1..4);
    vec(path, 0..12).prop_map(|paths: Vec<Path>| paths.into_iter().collect())
}

/// Generates a `spec` that conforms to the schema `widgets`.
fn spec() -> impl Strategy<Value = Value> {
    let text = || "[a-c]".prop_map(Value::from);
    let labels = btree_map("[a-c]", text(), 0..3);
    let point = (labels, 0..3).prop_map(|(label, x)| json!({"x": x, "label": label}));
    let container = (text(), btree_set("[a-d]", 0..3)).prop_map(|(image, env)| {
        let env: Vec<_> = env.into_iter().map(|name| json!({"name": name, "value": "v"})).collect();
        json!({"image": image, "env": env})
    });
    let containers = btree_map("[a-d]", container, 0..4).prop_map(|containers| {
        let named = |(name, mut container): (String, Value)| {
            container["name"] = name.into();
            container
        };
        containers.into_iter().map(named).collect::<Value>()
    });
    let names = btree_set("[a-f]", 0..5).prop_map(Value::from_iter).prop_shuffle_items();
    let member = prop_oneof![
        text().prop_map(|value| ("text", value)),
        point.clone().prop_map(|value| ("point", value)),
        point.prop_map(|value| ("pin", value)),
        containers.prop_map(|value| ("containers", value)),
        names.prop_map(|value| ("names", value)),
    ];
    vec(member, 0..5).prop_map(|members| {
        members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()
    })
}

/// Shuffles the items of a list.
trait ShuffleItems: Strategy<Value = Value> + Sized {
    fn prop_shuffle_items(self) -> BoxedStrategy<Value>;
}

impl<S: Strategy<Value = Value> + 'static> ShuffleItems for S {
    fn prop_shuffle_items(self) -> BoxedStrategy<Value> {
        let items = self.prop_map(|list| list.as_array().cloned().unwrap_or_default());
        items.prop_shuffle().prop_map(Value::from).boxed()
    }
}

fn widget(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "uid": "u"}, "spec": spec})
}

fn by(manager: &str) -> Writer<'_> {
    Writer { manager, now: "2026-01-02T03:04:05Z" }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_encoded_set_can_be_decoded(set in set()) {
        prop_assert_eq!(Set::from_json(&set.to_json()), Ok(set.clone()));
        prop_assert_eq!(Set::from_value(&set.to_value()), Ok(set));
    }

    #[test]
    fn a_field_is_in_a_union_if_it_is_in_either_set(one in set(), other in set()) {
        let (union, both) = (one.union(&other), one.intersection(&other));
        let (rest, strict) = (one.difference(&other), one.recursive_difference(&other));
        for path in union.paths() {
            let (in_one, in_other) = (one.has(&path), other.has(&path));
            prop_assert!(in_one || in_other);
            prop_assert_eq!(both.has(&path), in_one && in_other);
            prop_assert_eq!(rest.has(&path), in_one && !in_other);
            let is_below = (1..=path.len()).any(|len| other.has(&path[..len]));
            prop_assert_eq!(strict.has(&path), in_one && !is_below);
        }
        prop_assert_eq!(union.len(), rest.len() + other.len());
    }

    #[test]
    fn a_merge_contains_all_applied_fields(live in spec(), applied in spec()) {
        let schemas = Schemas::read(include_str!("../schemas.json"));
        let of = schemas.named("widgets", "spec");
        let merged = merge(&live, &applied, of).unwrap();
        prop_assert!(validate(&merged, of, Duplicates::Refused).is_ok());
        prop_assert!(compare(&live, &merged, of).unwrap().removed.is_empty());
        prop_assert!(compare(&merge(&merged, &applied, of).unwrap(), &merged, of).unwrap().is_same());
    }

    #[test]
    fn added_fields_can_be_removed(live in spec(), applied in spec()) {
        let schemas = Schemas::read(include_str!("../schemas.json"));
        let of = schemas.named("widgets", "spec");
        let merged = merge(&live, &applied, of).unwrap();
        let added = compare(&live, &merged, of).unwrap().added;
        let rest = remove_items(merged, &added, of);
        prop_assert!(field_set(&rest, of).intersection(&added).is_empty());
    }

    #[test]
    fn a_repeated_apply_changes_nothing(live in spec(), applied in spec()) {
        let schemas = Schemas::read(include_str!("../schemas.json"));
        let (versions, none) = (Widgets(&schemas), BTreeMap::new());
        let manager = FieldManager {
            versions: &versions,
            api_version: "example.com/v1",
            kind: "Widget",
            subresource: "",
            reset_fields: &none,
        };
        let live = manager.update(None, widget(&live), &by("one")).unwrap().object;
        let once = manager.apply(Some(&live), &widget(&applied), &by("two"), true).unwrap().object;
        let twice = manager.apply(Some(&once), &widget(&applied), &by("two"), false).unwrap().object;
        prop_assert_eq!(&once, &twice);
    }
}
