//! Generates random expressions: most are well-typed, some have a part of a wrong type, and some have a typo.

use super::answer::Question;
use super::expression::{Expression, Piece};
use super::grammar::{Element, Grammar, Pattern};
use super::{rules, schemas};
use crate::random::Random;
use serde_json::Value;

/// A generator of expressions that depend only on a seed and a number.
#[derive(Debug)]
pub struct Generator {
    grammar: Grammar,
    /// The schemas by name, each with its grammar and the names of its documents.
    schemas: Vec<(String, Grammar, Vec<String>)>,
}

/// A random expression and the input for its evaluation.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The generated expression.
    pub expression: Expression,
    /// The schema, as in [`Question::schema`].
    pub schema: Option<String>,
    /// The context, as in [`Question::context`].
    pub context: Option<String>,
}

impl Generated {
    /// Returns the expression and its input as a question.
    pub fn question(&self) -> Question {
        Question {
            expr: self.expression.to_string(),
            schema: self.schema.clone(),
            context: self.context.clone(),
        }
    }
}

/// The contexts in addition to the default one.
const CONTEXTS: [&str; 6] = ["create", "delete", "typed", "connect", "node", "policy"];
/// The kinds of results, with their weights. Most expressions are boolean, as match conditions are.
const RESULTS: [(usize, &str); 12] = [
    (60, "bool"),
    (8, "dyn"),
    (6, "string"),
    (6, "int"),
    (3, "double"),
    (2, "uint"),
    (3, "list(int)"),
    (3, "list(string)"),
    (2, "map(string,int)"),
    (3, "optional(string)"),
    (2, "duration"),
    (2, "quantity"),
];
const MAX_DEPTH: usize = 5;
/// The percentage of expressions that are rules of a schema.
const RULES: usize = 40;

/// The state during the generation of an expression.
struct Maker<'g> {
    grammar: &'g Grammar,
    random: Random,
    /// The kinds of the macro variables, the outermost first.
    variables: Vec<String>,
    /// The percentage of parts that have a different kind than required.
    wrong: usize,
}

impl Default for Generator {
    fn default() -> Self {
        let schema = |(name, description): (&String, &Value)| {
            let documents = description["documents"].as_object().into_iter().flatten();
            let documents = documents.map(|(name, _)| name.clone()).collect();
            (name.clone(), Grammar::of_schema(&schemas::rows(&description["schema"])), documents)
        };
        Self { grammar: Grammar::new(), schemas: rules::SCHEMAS.iter().map(schema).collect() }
    }
}

impl Generator {
    /// Creates an expression from `seed` and the expression's `number`.
    pub fn generate(&self, seed: u64, number: u64) -> Generated {
        let mut random = Random::new(seed, number);
        let (grammar, schema, context) = if random.chance(RULES) {
            let (name, grammar, documents) = &self.schemas[random.below(self.schemas.len())];
            (grammar, Some(name.clone()), Some(random.one_of(documents)))
        } else {
            let context = random.chance(15).then(|| random.one_of(&CONTEXTS).to_owned());
            (&self.grammar, None, context)
        };
        let result = random.weighted(&RESULTS);
        let depth = random.between(1, MAX_DEPTH);
        let wrong = if random.chance(25) { 8 } else { 0 };
        let mistaken = random.chance(6);
        let mut maker = Maker { grammar, random, variables: Vec::new(), wrong };
        let mut expression = maker.expression(result, depth);
        if mistaken {
            let text = mistake(&expression.to_string(), &mut maker.random);
            expression = Expression::leaf(text, 0);
        }
        Generated { expression, schema, context }
    }
}

impl Maker<'_> {
    fn expression(&mut self, kind: &str, depth: usize) -> Expression {
        let known: Vec<usize> = (0..self.variables.len()).filter(|it| self.variables[*it] == kind).collect();
        if !known.is_empty() && self.random.chance(if depth == 0 { 70 } else { 35 }) {
            let name = format!("v{}", self.random.one_of(&known));
            return Expression::leaf(name, self.variables.len());
        }
        let patterns = self.grammar.patterns(kind);
        let fitting: Vec<&Pattern> =
            patterns.iter().filter(|pattern| pattern.is_leaf() == (depth == 0)).collect();
        let fitting = if fitting.is_empty() { patterns.iter().collect() } else { fitting };
        // Every requested kind has a leaf; the grammar's tests check this.
        let pattern = self.random.one_of(&fitting);
        self.filled(pattern, depth)
    }

    fn filled(&mut self, pattern: &Pattern, depth: usize) -> Expression {
        let outer = self.variables.len();
        let mut pieces = Vec::new();
        for element in &pattern.elements {
            match element {
                Element::Text(text) => pieces.push(Piece::Text(text.clone())),
                Element::Variable(place) => pieces.push(Piece::Text(format!("v{}", outer + place))),
                Element::Hole { kind, variables } => {
                    self.variables.extend(variables.iter().cloned());
                    let kind = self.kind_for(kind);
                    let less = self.random.between(1, 2);
                    let part = self.expression(&kind, depth.saturating_sub(less));
                    self.variables.truncate(outer);
                    // A part keeps its operator precedence from the tree, with a few exceptions.
                    if part.pieces.len() > 1 && self.random.chance(92) {
                        pieces.push(Piece::Text("(".to_owned()));
                        pieces.push(Piece::Part(part));
                        pieces.push(Piece::Text(")".to_owned()));
                    } else {
                        pieces.push(Piece::Part(part));
                    }
                }
            }
        }
        Expression { pieces, scope: outer }
    }

    /// Returns `kind` or `dyn` or, for a deliberately wrong part, another kind.
    fn kind_for(&mut self, kind: &str) -> String {
        if self.random.chance(self.wrong) {
            let kinds: Vec<&str> = self.grammar.kinds().collect();
            return self.random.one_of(&kinds).to_owned();
        }
        if self.random.chance(4) { "dyn".to_owned() } else { kind.to_owned() }
    }
}

/// The strings that are inserted as typos.
const SLIPS: [&str; 24] = [
    "(", ")", "[", "]", "{", "}", ",", ".", "'", "\"", "?", ":", "=", "&", "|", " x ", " in ", " as ", "1u",
    "\\", "`", "#", "\n", "é",
];

/// Returns `text` with a typo: a character is removed, duplicated, or inserted.
fn mistake(text: &str, random: &mut Random) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    let place = random.below(characters.len());
    match random.below(4) {
        0 => drop(characters.remove(place)),
        1 => characters.truncate(place),
        2 => characters.insert(place, characters[place]),
        _ => {
            let slip: Vec<char> = random.one_of(&SLIPS).chars().collect();
            characters.splice(place..place, slip);
        }
    }
    characters.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_depends_on_seed_and_number_only() {
        let texts = |seed| -> Vec<String> {
            let generator = Generator::default();
            (0..50).map(|number| generator.generate(seed, number).expression.to_string()).collect()
        };
        assert_eq!(texts(7), texts(7));
        assert_ne!(texts(7), texts(8));
    }

    #[test]
    fn expressions_are_of_many_sizes() {
        let generator = Generator::default();
        let sizes: Vec<usize> = (0..500).map(|it| generator.generate(1, it).expression.size()).collect();
        assert!(sizes.contains(&1));
        assert!(sizes.iter().any(|size| *size > 20));
        assert!(sizes.iter().sum::<usize>() / sizes.len() < 60, "expressions are too long to look at");
    }
}
