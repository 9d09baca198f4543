//! Builds the nodes of a document from the events of the parser.

use std::collections::HashMap;

use granit_parser::{Event, Options, Parser, ScalarStyle, Span, StrInput, Tag};

use super::message;

/// The maximum number of nodes, and of values that a document has with its aliases replaced.
pub(super) const MAX_VALUES: usize = 250_000;

/// The maximum number of levels.
pub(super) const MAX_LEVELS: usize = 64;

/// The error for a document that exceeds a limit.
pub(super) const TOO_COMPLEX: &str = "yaml: the document is too complex";

/// The ID of a node.
pub(super) type NodeId = usize;

/// The nodes of a document. A node refers to others by their IDs, since an alias may refer to a node that contains it.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
    pub(super) root: Option<NodeId>,
}

/// A node with its line.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    Scalar(Scalar),
    Sequence(Vec<NodeId>),
    Mapping(Vec<(NodeId, NodeId)>),
    Alias { name: String, target: NodeId },
}

/// A scalar with its tag; the tag is empty if the document does not have one.
#[derive(Debug)]
pub(super) struct Scalar {
    pub(super) value: String,
    pub(super) tag: String,
    /// Whether the value decides about the type: it is plain, or has the tag `!`.
    pub(super) is_implicit: bool,
}

impl Nodes {
    /// Returns a node of the document.
    pub(super) fn node(&self, id: NodeId) -> Result<&Node, String> {
        self.nodes.get(id).ok_or_else(|| TOO_COMPLEX.to_owned())
    }

    fn add(&mut self, span: Span, content: Content) -> Result<NodeId, String> {
        if self.nodes.len() >= MAX_VALUES {
            return Err(TOO_COMPLEX.to_owned());
        }
        self.nodes.push(Node { line: span.start.line(), content });
        Ok(self.nodes.len().saturating_sub(1))
    }

    fn set(&mut self, id: NodeId, content: Content) {
        if let Some(node) = self.nodes.get_mut(id) {
            node.content = content;
        }
    }
}

/// Returns the nodes of the first document in a text.
pub(super) fn first_document(text: &str) -> Result<Nodes, String> {
    message::check_characters(text)?;
    let options = granit_parser::options! { emit_unresolved_aliases: true };
    Composer::new(text, options).document()
}

struct Composer<'a> {
    text: &'a str,
    parser: Parser<'a, StrInput<'a>>,
    nodes: Nodes,
    anchors: HashMap<usize, NodeId>,
}

impl<'a> Composer<'a> {
    fn new(text: &'a str, options: Options) -> Self {
        let parser = Parser::new_from_str_with_options(text, options);
        Self { text, parser, nodes: Nodes::default(), anchors: HashMap::new() }
    }

    fn document(mut self) -> Result<Nodes, String> {
        loop {
            match self.next()? {
                (Event::StreamStart, _) => {}
                (Event::DocumentStart(_, version), _) => {
                    if version.is_some_and(|version| (version.major, version.minor) != (1, 1)) {
                        return Err("yaml: found incompatible YAML document".to_owned());
                    }
                    let first = self.next()?;
                    self.nodes.root = Some(self.node(first, 0)?);
                    // The end of the document finds what does not belong to it.
                    self.next()?;
                    return Ok(self.nodes);
                }
                _ => return Ok(self.nodes),
            }
        }
    }

    /// Returns the next event that is not a comment.
    fn next(&mut self) -> Result<(Event<'a>, Span), String> {
        loop {
            match self.parser.next_event() {
                None => return Ok((Event::StreamEnd, Span::default())),
                Some(Ok((Event::Comment(..), _))) => {}
                Some(Ok(found)) => return Ok(found),
                Some(Err(error)) => return Err(message::syntax(self.text, &error)),
            }
        }
    }

    /// Adds a node to which aliases may refer.
    fn anchored(&mut self, anchor: usize, span: Span, content: Content) -> Result<NodeId, String> {
        let id = self.nodes.add(span, content)?;
        self.anchors.insert(anchor, id);
        Ok(id)
    }

    /// Returns the node that begins with an event.
    #[allow(clippy::wildcard_enum_match_arm, reason = "no other event begins a node")]
    fn node(&mut self, (event, span): (Event<'a>, Span), level: usize) -> Result<NodeId, String> {
        if level > MAX_LEVELS {
            return Err(TOO_COMPLEX.to_owned());
        }
        match event {
            Event::Scalar(value, style, anchor, tag) => {
                let tag = tag.as_deref().map(full).unwrap_or_default();
                let is_implicit = tag == "!" || tag.is_empty() && style == ScalarStyle::Plain;
                let scalar = Scalar { value: value.into_owned(), tag, is_implicit };
                self.anchored(anchor, span, Content::Scalar(scalar))
            }
            Event::SequenceStart(_, anchor, _) => {
                let id = self.anchored(anchor, span, Content::Sequence(Vec::new()))?;
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => break,
                        first => items.push(self.node(first, level + 1)?),
                    }
                }
                self.nodes.set(id, Content::Sequence(items));
                Ok(id)
            }
            Event::MappingStart(_, anchor, _) => {
                let id = self.anchored(anchor, span, Content::Mapping(Vec::new()))?;
                let mut members = Vec::new();
                loop {
                    match self.next()? {
                        (Event::MappingEnd, _) => break,
                        first => {
                            let key = self.node(first, level + 1)?;
                            let first = self.next()?;
                            members.push((key, self.node(first, level + 1)?));
                        }
                    }
                }
                self.nodes.set(id, Content::Mapping(members));
                Ok(id)
            }
            Event::Alias(anchor) => {
                let name = span.slice(self.text).unwrap_or_default().trim_start_matches('*').to_owned();
                let target = self.anchors.get(&anchor).copied();
                let target = target.ok_or_else(|| unknown_anchor(&name))?;
                self.nodes.add(span, Content::Alias { name, target })
            }
            Event::UnresolvedAlias(name) => Err(unknown_anchor(&name)),
            _ => Err("yaml: did not find expected node content".to_owned()),
        }
    }
}

/// Source: sigs.k8s.io/yaml goyaml.v2/decode.go, `parser.alias`.
fn unknown_anchor(name: &str) -> String {
    format!("yaml: unknown anchor '{name}' referenced")
}

/// Returns a tag with the prefix of its handle.
fn full(tag: &Tag) -> String {
    let (handle, suffix) = tag.parts();
    format!("{handle}{suffix}")
}
