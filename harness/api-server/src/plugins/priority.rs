//! `Priority`: resolves the `PriorityClass` of Pods.

use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_admission::plugin::{Plugin, Remarks};
use kubernetes_types::status::Status;
use serde_json::{Map, Value, json};

use super::forbidden;
use crate::storage::ObjectReader;

/// Sets the priority and the preemption policy of a new Pod from its class or the default class.
///
/// Keeps omitted values in updates and rejects a second default class.
///
/// Source: kubernetes plugin/pkg/admission/priority/admission.go.
pub(crate) struct Priority {
    objects: Arc<dyn ObjectReader>,
}

const GROUP: &str = "scheduling.k8s.io";
const CLASSES: &str = "priorityclasses";

/// The system classes that every server creates, with their values.
///
/// Source: kubernetes pkg/apis/scheduling/v1/helpers.go, `systemPriorityClasses`.
const SYSTEM_PRIORITY_CLASSES: [(&str, i64); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

/// The values that a Pod gets from a `PriorityClass`.
struct Class {
    name: String,
    priority: i64,
    /// The preemption policy; empty if not set.
    preemption_policy: String,
}

impl Priority {
    /// Creates the plugin with a reader for the objects of the server.
    pub(crate) fn new(objects: Arc<dyn ObjectReader>) -> Self {
        Self { objects }
    }

    /// Returns the stored or built-in `PriorityClass` with this name.
    fn named(&self, name: &str) -> Option<Class> {
        let of_the_system = || {
            let (_, priority) = *SYSTEM_PRIORITY_CLASSES.iter().find(|(known, _)| *known == name)?;
            let preemption_policy = "PreemptLowerPriority".to_owned();
            Some(Class { name: name.to_owned(), priority, preemption_policy })
        };
        self.objects.get(GROUP, CLASSES, "", name).map(|class| read(&class)).or_else(of_the_system)
    }

    /// Returns the default class with the lowest priority.
    fn default_class(&self) -> Option<Class> {
        let classes = self.objects.list(GROUP, CLASSES, "");
        let defaults = classes.iter().filter(|class| class.get("globalDefault") == Some(&Value::Bool(true)));
        defaults.map(|class| read(class)).min_by_key(|class| class.priority)
    }

    /// Returns the class of a new Pod. If `name` is empty, returns the default class.
    ///
    /// Without a default class, returns a class with priority 0.
    fn resolve(&self, name: &str) -> Option<Class> {
        if !name.is_empty() {
            return self.named(name);
        }
        let without = || Class {
            name: String::new(),
            priority: 0,
            preemption_policy: "PreemptLowerPriority".to_owned(),
        };
        Some(self.default_class().unwrap_or_else(without))
    }
}

impl Plugin for Priority {
    fn name(&self) -> &'static str {
        "Priority"
    }

    fn admit(&self, attributes: &mut Attributes) -> Result<(), Box<Status>> {
        if !super::is_pod(attributes) {
            return Ok(());
        }
        let mut object = attributes.object.take();
        let outcome = match (attributes.operation, object.as_mut().and_then(super::spec)) {
            (Operation::Create, Some(spec)) => self.give(spec),
            (Operation::Update, Some(spec)) => {
                keep(spec, attributes.old_object.as_ref());
                Ok(())
            }
            _ => Ok(()),
        };
        attributes.object = object;
        outcome.map_err(|why| forbidden(attributes, &why))
    }

    fn validate(&self, attributes: &Attributes, _remarks: &mut Remarks) -> Result<(), Box<Status>> {
        let Some(class) = &attributes.object else { return Ok(()) };
        let is_class = attributes.subresource.is_empty()
            && attributes.resource.group == GROUP
            && attributes.resource.resource == CLASSES;
        if !is_class || class.get("globalDefault") != Some(&Value::Bool(true)) {
            return Ok(());
        }
        match self.default_class() {
            Some(other) if attributes.operation == Operation::Create || other.name != read(class).name => {
                let other = other.name;
                let why =
                    format!("PriorityClass {other} is already marked as default. Only one default can exist");
                Err(forbidden(attributes, &why))
            }
            _ => Ok(()),
        }
    }
}

impl Priority {
    fn give(&self, spec: &mut Map<String, Value>) -> Result<(), String> {
        let text = |spec: &Map<String, Value>, field: &str| {
            spec.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let name = text(spec, "priorityClassName");
        let class =
            self.resolve(&name).ok_or_else(|| format!("no PriorityClass with name {name} was found"))?;
        let computed = class.priority;
        if let Some(given) = spec.get("priority").and_then(Value::as_i64).filter(|given| *given != computed) {
            return Err(format!(
                "the integer value of priority ({given}) must not be provided in pod spec; priority admission \
                 controller computed {computed} from the given PriorityClass name"
            ));
        }
        let (given, computed) = (text(spec, "preemptionPolicy"), class.preemption_policy);
        if !given.is_empty() && !computed.is_empty() && given != computed {
            return Err(format!(
                "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
                 controller computed {computed} from the given PriorityClass name"
            ));
        }
        if !class.name.is_empty() {
            spec.insert("priorityClassName".to_owned(), json!(class.name));
        }
        spec.insert("priority".to_owned(), json!(class.priority));
        if !computed.is_empty() {
            spec.insert("preemptionPolicy".to_owned(), json!(computed));
        }
        Ok(())
    }
}

fn keep(spec: &mut Map<String, Value>, old: Option<&Value>) {
    for field in ["priority", "preemptionPolicy"] {
        if let (None, Some(value)) = (spec.get(field), old.and_then(|old| old["spec"].get(field))) {
            spec.insert(field.to_owned(), value.clone());
        }
    }
}

fn read(class: &Value) -> Class {
    let text = |pointer: &str| class.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    Class {
        name: text("/metadata/name"),
        priority: class.get("value").and_then(Value::as_i64).unwrap_or_default(),
        preemption_policy: text("/preemptionPolicy"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Stored, request};
    use super::*;

    fn plugin(classes: Vec<Value>) -> Priority {
        Priority::new(Arc::new(Stored(classes.into_iter().map(|class| (CLASSES, class)).collect())))
    }

    #[track_caller]
    fn check(classes: Vec<Value>, spec: &Value, expected: &Result<Value, &str>) {
        let object = json!({"metadata": {"name": "p"}, "spec": spec});
        let mut attributes = request(Operation::Create, "pods", "Pod", object);
        let outcome = plugin(classes).admit(&mut attributes).map_err(|status| status.message);
        let found = outcome.map(|()| attributes.object.unwrap()["spec"].clone());
        let expected = expected.clone().map_err(|why| format!("pods \"p\" is forbidden: {why}"));
        assert_eq!(found, expected);
    }

    #[test]
    fn pod_gets_the_priority_of_its_class() {
        let class = |name: &str, value: i64, default: bool| json!({"metadata": {"name": name}, "value": value, "globalDefault": default, "preemptionPolicy": "Never"});
        let lower = json!({"priority": 0, "preemptionPolicy": "PreemptLowerPriority"});
        check(vec![], &json!({}), &Ok(lower));
        let named = json!({"priorityClassName": "a", "priority": 7, "preemptionPolicy": "Never"});
        check(vec![class("a", 7, false)], &json!({"priorityClassName": "a"}), &Ok(named.clone()));
        check(vec![class("b", 9, true), class("a", 7, true)], &json!({}), &Ok(named));
        check(vec![], &json!({"priorityClassName": "a"}), &Err("no PriorityClass with name a was found"));
        let why = "the integer value of priority (3) must not be provided in pod spec; priority admission controller \
                   computed 0 from the given PriorityClass name";
        check(vec![], &json!({"priority": 3}), &Err(why));
        let system = json!({
            "priorityClassName": "system-node-critical", "priority": 2_000_001_000,
            "preemptionPolicy": "PreemptLowerPriority",
        });
        check(vec![], &json!({"priorityClassName": "system-node-critical"}), &Ok(system));
    }

    #[test]
    fn second_default_class_is_rejected() {
        let class = json!({"metadata": {"name": "b"}, "globalDefault": true});
        let mut attributes = request(Operation::Create, CLASSES, "PriorityClass", class);
        attributes.resource.group = GROUP.to_owned();
        assert!(plugin(vec![]).validate(&attributes, &mut Remarks::default()).is_ok());
        let other = json!({"metadata": {"name": "a"}, "globalDefault": true});
        let refusal = plugin(vec![other]).validate(&attributes, &mut Remarks::default()).unwrap_err();
        assert!(
            refusal
                .message
                .ends_with("PriorityClass a is already marked as default. Only one default can exist")
        );
    }
}
