//! The syntax tree of an expression. The checker and the planner traverse it.

/// An index into [`Ast::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NodeId(pub(crate) u32);

/// The syntax tree of an expression.
#[derive(Clone, Debug)]
pub(crate) struct Ast {
    /// The source text of the expression.
    pub(crate) source: String,
    /// All nodes. Each appears once in the tree; macros do not share nodes.
    pub(crate) nodes: Vec<Node>,
    /// The root node of the tree.
    pub(crate) root: NodeId,
    /// The number of nodes on the longest path from the root to a leaf.
    pub(crate) depth: u32,
}

/// A node with its position in the text.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// The offset, in code points, that errors report for the node. Nodes that a macro creates have the offset of the
    /// parenthesis in the macro call.
    pub(crate) offset: Option<u32>,
    /// The literal, name, or operation that the node represents.
    pub(crate) expression: Expression,
}

/// The content of a node: a literal, a name, or an operation on other nodes.
#[derive(Clone, Debug)]
pub(crate) enum Expression {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
    Ident(String),
    /// The selection `operand.field`, or the test `has(operand.field)`.
    Select {
        operand: NodeId,
        field: String,
        test: bool,
    },
    /// A call; operators are functions such as `_+_`.
    Call {
        function: String,
        target: Option<NodeId>,
        arguments: Vec<NodeId>,
    },
    /// A list literal; `optional` contains the indices of the elements that are written as `?element`.
    List {
        elements: Vec<NodeId>,
        optional: Vec<usize>,
    },
    /// A map literal.
    Map(Vec<Entry<NodeId>>),
    /// A message literal: `Name{field: value}`.
    Struct {
        name: String,
        fields: Vec<Entry<String>>,
    },
    /// The expansion of a macro such as `all`.
    Comprehension(Box<Comprehension>),
}

/// An entry of a map literal, or a field of a message literal.
#[derive(Clone, Debug)]
pub(crate) struct Entry<K> {
    /// The offset, in code points, of the colon.
    pub(crate) offset: Option<u32>,
    pub(crate) key: K,
    pub(crate) value: NodeId,
    /// Whether the entry is written as `?key: value`.
    pub(crate) optional: bool,
}

/// A loop that combines the elements of a range in an accumulator.
#[derive(Clone, Debug)]
pub(crate) struct Comprehension {
    pub(crate) range: NodeId,
    pub(crate) variable: String,
    pub(crate) second_variable: Option<String>,
    pub(crate) accumulator: String,
    pub(crate) initial: NodeId,
    pub(crate) condition: NodeId,
    pub(crate) step: NodeId,
    pub(crate) result: NodeId,
}

impl Ast {
    /// Returns the node with this ID, or `None` if the tree does not contain it.
    pub(crate) fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.0 as usize)
    }

    /// Returns the expression of a node, or `Null` if the tree does not contain the node.
    pub(crate) fn expression(&self, id: NodeId) -> &Expression {
        self.node(id).map_or(&Expression::Null, |node| &node.expression)
    }

    /// Returns the offset of a node, in code points, or `None` if the offset is unknown.
    pub(crate) fn offset(&self, id: NodeId) -> Option<u32> {
        self.node(id)?.offset
    }
}

impl Expression {
    /// Calls `visit` for each child: operands, elements, keys, values, and the parts of a comprehension.
    pub(crate) fn children(&self, mut visit: impl FnMut(NodeId)) {
        match self {
            Self::Null
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Uint(_)
            | Self::Double(_)
            | Self::String(_)
            | Self::Bytes(_)
            | Self::Ident(_) => {}
            Self::Select { operand, .. } => visit(*operand),
            Self::Call { target, arguments, .. } => target.iter().chain(arguments).copied().for_each(visit),
            Self::List { elements, .. } => elements.iter().copied().for_each(visit),
            Self::Map(entries) => {
                for entry in entries {
                    visit(entry.key);
                    visit(entry.value);
                }
            }
            Self::Struct { fields, .. } => fields.iter().map(|field| field.value).for_each(visit),
            Self::Comprehension(it) => {
                [it.range, it.initial, it.condition, it.step, it.result].into_iter().for_each(visit);
            }
        }
    }

    /// Replaces the ID of each child: operands, elements, keys, values, and the parts of a comprehension.
    pub(crate) fn replace_children(&mut self, mut replace: impl FnMut(NodeId) -> NodeId) {
        let mut put = |place: &mut NodeId| *place = replace(*place);
        match self {
            Self::Null
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Uint(_)
            | Self::Double(_)
            | Self::String(_)
            | Self::Bytes(_)
            | Self::Ident(_) => {}
            Self::Select { operand, .. } => put(operand),
            Self::Call { target, arguments, .. } => target.iter_mut().chain(arguments).for_each(put),
            Self::List { elements, .. } => elements.iter_mut().for_each(put),
            Self::Map(entries) => {
                for entry in entries {
                    put(&mut entry.key);
                    put(&mut entry.value);
                }
            }
            Self::Struct { fields, .. } => fields.iter_mut().map(|field| &mut field.value).for_each(put),
            Self::Comprehension(it) => {
                [&mut it.range, &mut it.initial, &mut it.condition, &mut it.step, &mut it.result]
                    .into_iter()
                    .for_each(put);
            }
        }
    }
}
