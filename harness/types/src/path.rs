//! Builds the path of a value in an object, for error messages.

use std::fmt;

/// The path from an object to a value in the object, as a linked list.
///
/// The path is formatted only when an error is reported, so that building paths is cheap.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Path<'a> {
    /// The object itself. Its path is empty.
    Root,
    /// A member of an object: `spec.name`; at the root, `spec`.
    Member(&'a Path<'a>, &'a str),
    /// A member of an object, with a leading dot even at the root: `.spec`.
    Dotted(&'a Path<'a>, &'a str),
    /// An entry of a map: `spec[name]`.
    Entry(&'a Path<'a>, &'a str),
    /// An item of a list: `spec[0]`.
    Item(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    pub(crate) const fn member(&'a self, name: &'a str) -> Self {
        Self::Member(self, name)
    }

    /// Returns whether the path is formatted as an empty string.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Root => true,
            Self::Member(parent, name) => name.is_empty() && parent.is_empty(),
            Self::Dotted(..) | Self::Entry(..) | Self::Item(..) => false,
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Member(parent, name) if parent.is_empty() => f.write_str(name),
            Self::Member(parent, name) | Self::Dotted(parent, name) => write!(f, "{parent}.{name}"),
            Self::Entry(parent, name) => write!(f, "{parent}[{name}]"),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// A part of a formatted path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Segment<'a> {
    /// The name of a member.
    Member(&'a str),
    /// The position of an item of a list.
    Item,
}

/// Returns the parts of a path such as `spec.containers[0].image`. The empty path has no parts.
pub(crate) fn segments(path: &str) -> impl Iterator<Item = Segment<'_>> {
    path.split(['.', '[']).filter(|part| !part.is_empty()).map(|part| match part.strip_suffix(']') {
        Some(_) => Segment::Item,
        None => Segment::Member(part),
    })
}

#[cfg(test)]
mod tests {
    use super::Path;

    #[test]
    fn paths_are_formatted_as_in_errors() {
        let root = Path::Root;
        let (spec, dotted) = (root.member("spec"), Path::Dotted(&root, "free"));
        let items = spec.member("items");
        let item = Path::Item(&items, 3);
        let labels = item.member("labels");
        let written = [
            (root, ""),
            (spec, "spec"),
            (dotted, ".free"),
            (labels, "spec.items[3].labels"),
            (Path::Entry(&labels, "app"), "spec.items[3].labels[app]"),
        ];
        for (path, text) in written {
            assert_eq!(path.to_string(), text);
            assert_eq!(path.is_empty(), text.is_empty());
        }
    }
}
