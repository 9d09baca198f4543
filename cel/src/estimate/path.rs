//! The path of a value within a variable.

use std::cell::RefCell;
use std::rc::Rc;

/// A path such as `self`, `names`, `@items`.
///
/// Like Go slices, paths can share memory: if two parts are appended to the same path, the second can overwrite the
/// first. Therefore, if a macro has variables for the key and the value, the key of a map at `self.spec.labels` is
/// estimated as if it were the value.
///
/// Source: cel-go checker/cost.go, `pushIterKey` and `pushIterValue`; Go runtime/slice.go, `growslice`.
#[derive(Clone, Debug, Default)]
pub(super) struct Path {
    memory: Rc<RefCell<Vec<String>>>,
    capacity: usize,
    length: usize,
}

impl Path {
    pub(super) fn of_variable(name: &str) -> Self {
        Self { memory: Rc::new(RefCell::new(vec![name.to_owned()])), capacity: 1, length: 1 }
    }

    /// Returns the path with a part appended, such as a field or `@items`.
    pub(super) fn join(&self, part: &str) -> Self {
        if self.length == self.capacity {
            let mut parts = self.parts();
            parts.push(part.to_owned());
            let capacity = (2 * self.capacity).max(1);
            return Self { memory: Rc::new(RefCell::new(parts)), capacity, length: self.length + 1 };
        }
        let mut memory = self.memory.borrow_mut();
        match memory.get_mut(self.length) {
            Some(other) => part.clone_into(other),
            None => memory.push(part.to_owned()),
        }
        Self { memory: Rc::clone(&self.memory), capacity: self.capacity, length: self.length + 1 }
    }

    /// Returns the current parts of the path.
    pub(super) fn parts(&self) -> Vec<String> {
        self.memory.borrow().iter().take(self.length).cloned().collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns whether the path begins with the accumulator variable of a macro.
    pub(super) fn is_of_accumulator(&self) -> bool {
        self.memory.borrow().first().is_some_and(|first| matches!(first.as_str(), "@result" | "__result__"))
    }
}

#[cfg(test)]
mod tests {
    use super::Path;

    #[test]
    fn path_of_three_parts_has_capacity_for_one_more() {
        let of = |parts: &[&str]| parts.iter().fold(Path::of_variable("self"), |path, part| path.join(part));
        let longer = |path: &Path| [path.join("@keys"), path.join("@values")].map(|path| path.parts().pop());
        let told = |keys: &str, values: &str| [Some(keys.to_owned()), Some(values.to_owned())];
        let map = of(&["spec", "labels"]);
        let (keys, values) = (map.join("@keys"), map.join("@values"));
        assert_eq!([keys.parts().pop(), values.parts().pop()], told("@values", "@values"));
        assert_eq!(longer(&of(&["spec"])), told("@keys", "@values"));
        assert_eq!(of(&["spec", "labels"]).parts(), ["self", "spec", "labels"]);
    }
}
