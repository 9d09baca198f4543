//! A virtual machine for expressions that are too large for the `regex` crate.
//!
//! The `regex` crate compiles `\pL{1000}` to many megabytes; the machine has one instruction per character, as in Go.
//!
//! Source: Go regexp/syntax/compile.go and regexp/exec.go, which implement the algorithm of Ken Thompson and Rob Pike.

use std::collections::HashMap;
use std::mem;
use std::ops::Range;

use regex::Regex;

use super::node::{Assertion, Node};

/// An expression that is compiled to instructions.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    program: Vec<Instruction>,
    classes: Vec<Regex>,
}

#[derive(Clone, Copy, Debug)]
enum Instruction {
    /// Consumes this character, and continues at the next instruction.
    Character(char),
    /// Consumes a character of the class with this index, and continues at the next instruction.
    Class(u32),
    /// Continues at the next instruction if the assertion about the position is true.
    Assertion(Assertion),
    /// Continues at both instructions; the first instruction is preferred.
    Fork(u32, u32),
    Match,
}

/// A possible match: the instruction that it has reached and the byte at which it starts.
#[derive(Clone, Copy, Debug)]
struct Thread {
    instruction: u32,
    start: usize,
}

/// Threads in order of preference; each instruction occurs at most once.
#[derive(Debug)]
struct Threads {
    list: Vec<Thread>,
    /// For each instruction, the round in which it was last added.
    added: Vec<u32>,
    round: u32,
}

impl Threads {
    fn new(instructions: usize) -> Self {
        Self { list: Vec::new(), added: vec![0; instructions], round: 0 }
    }

    fn clear(&mut self) {
        self.list.clear();
        self.round = self.round.wrapping_add(1);
        if self.round == 0 {
            self.added.fill(0);
            self.round = 1;
        }
    }

    /// Adds an instruction, and returns whether the instruction is new in this round.
    fn add(&mut self, instruction: u32) -> bool {
        let round = self.round;
        let last = self.added.get_mut(instruction as usize);
        last.is_some_and(|last| mem::replace(last, round) != round)
    }
}

impl Machine {
    /// Compiles an expression, or returns `None` if a class is invalid.
    pub(super) fn new(node: &Node) -> Option<Self> {
        let mut compiler = Compiler::default();
        compiler.node(node)?;
        compiler.push(Instruction::Match);
        Some(Self { program: compiler.program, classes: compiler.classes })
    }

    /// Returns the leftmost match that starts at byte `from` or later; of several, the one that a backtracking search
    /// finds first.
    pub(super) fn find(&self, text: &str, from: usize) -> Option<Range<usize>> {
        let (mut current, mut next) = (Threads::new(self.program.len()), Threads::new(self.program.len()));
        current.clear();
        let mut found: Option<Range<usize>> = None;
        let mut rest = text.get(from..)?.chars();
        let mut at = from;
        let mut pending = Vec::new();
        loop {
            if found.is_none() {
                self.follow(&mut current, Thread { instruction: 0, start: at }, text, at, &mut pending);
            }
            let character = rest.next();
            let behind = at + character.map_or(0, char::len_utf8);
            next.clear();
            for thread in &current.list {
                let goes_on = match self.program.get(thread.instruction as usize) {
                    Some(Instruction::Match) => {
                        found = Some(thread.start..at);
                        // Less preferred threads are discarded.
                        break;
                    }
                    Some(Instruction::Character(wanted)) => character == Some(*wanted),
                    Some(Instruction::Class(class)) => character.is_some_and(|character| {
                        let class = self.classes.get(*class as usize);
                        class.is_some_and(|class| class.is_match(character.encode_utf8(&mut [0; 4])))
                    }),
                    Some(Instruction::Assertion(_) | Instruction::Fork(..)) | None => false,
                };
                if goes_on {
                    let instruction = thread.instruction + 1;
                    self.follow(&mut next, Thread { instruction, ..*thread }, text, behind, &mut pending);
                }
            }
            mem::swap(&mut current, &mut next);
            at = behind;
            if character.is_none() || (found.is_some() && current.list.is_empty()) {
                return found;
            }
        }
    }

    /// Adds the instructions that a thread reaches without consuming a character.
    fn follow(&self, threads: &mut Threads, thread: Thread, text: &str, at: usize, pending: &mut Vec<u32>) {
        pending.push(thread.instruction);
        while let Some(instruction) = pending.pop() {
            if !threads.add(instruction) {
                continue;
            }
            match self.program.get(instruction as usize) {
                Some(Instruction::Fork(first, second)) => pending.extend([*second, *first]),
                Some(Instruction::Assertion(place)) if place.is_at(text, at) => pending.push(instruction + 1),
                Some(Instruction::Character(_) | Instruction::Class(_) | Instruction::Match) => {
                    threads.list.push(Thread { instruction, ..thread });
                }
                Some(Instruction::Assertion(_)) | None => {}
            }
        }
    }
}

#[derive(Debug, Default)]
struct Compiler {
    program: Vec<Instruction>,
    classes: Vec<Regex>,
    /// The index of each class, by its text in the expression.
    known: HashMap<String, u32>,
}

impl Compiler {
    fn here(&self) -> u32 {
        u32::try_from(self.program.len()).unwrap_or(u32::MAX)
    }

    fn push(&mut self, instruction: Instruction) -> u32 {
        let here = self.here();
        self.program.push(instruction);
        here
    }

    fn set(&mut self, at: u32, instruction: Instruction) {
        if let Some(place) = self.program.get_mut(at as usize) {
            *place = instruction;
        }
    }

    fn node(&mut self, node: &Node) -> Option<()> {
        match node {
            Node::Empty => {}
            Node::Literal { character, fold: false } => {
                self.push(Instruction::Character(*character));
            }
            Node::Literal { fold: true, .. } => self.class(&node.to_string())?,
            Node::Class(class) => self.class(class)?,
            Node::Assertion(place) => {
                self.push(Instruction::Assertion(*place));
            }
            Node::Repeat { part, least, most, greedy, .. } => self.repeat(part, *least, *most, *greedy)?,
            Node::Concat(parts, _) => parts.iter().try_for_each(|part| self.node(part))?,
            Node::Alternate(parts, _) => self.alternate(parts)?,
            Node::Capture(part, _) => self.node(part)?,
        }
        Some(())
    }

    fn class(&mut self, class: &str) -> Option<()> {
        let number = if let Some(number) = self.known.get(class) {
            *number
        } else {
            let number = u32::try_from(self.classes.len()).ok()?;
            self.classes.push(Regex::new(class).ok()?);
            self.known.insert(class.to_owned(), number);
            number
        };
        self.push(Instruction::Class(number));
        Some(())
    }

    fn alternate(&mut self, parts: &[Node]) -> Option<()> {
        let (last, others) = parts.split_last()?;
        let mut ends = Vec::with_capacity(others.len());
        for part in others {
            let fork = self.push(Instruction::Match);
            self.node(part)?;
            ends.push(self.push(Instruction::Match));
            let here = self.here();
            self.set(fork, Instruction::Fork(fork + 1, here));
        }
        self.node(last)?;
        let here = self.here();
        for end in ends {
            self.set(end, Instruction::Fork(here, here));
        }
        Some(())
    }

    fn repeat(&mut self, part: &Node, least: u32, most: Option<u32>, greedy: bool) -> Option<()> {
        let Some(most) = most else {
            for _ in 1..least {
                self.node(part)?;
            }
            return if least == 0 {
                self.optional(greedy, |compiler| compiler.plus(part, greedy))
            } else {
                self.plus(part, greedy)
            };
        };
        for _ in 0..least {
            self.node(part)?;
        }
        // x{0,2} is (x(x)?)?.
        let mut forks = Vec::new();
        for _ in least..most {
            forks.push(self.push(Instruction::Match));
            self.node(part)?;
        }
        let here = self.here();
        for fork in forks {
            self.set(fork, choice(fork + 1, here, greedy));
        }
        Some(())
    }

    fn optional(&mut self, greedy: bool, part: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        let fork = self.push(Instruction::Match);
        part(self)?;
        let here = self.here();
        self.set(fork, choice(fork + 1, here, greedy));
        Some(())
    }

    fn plus(&mut self, part: &Node, greedy: bool) -> Option<()> {
        let start = self.here();
        self.node(part)?;
        let here = self.here();
        self.push(choice(start, here + 1, greedy));
        Some(())
    }
}

/// Creates an instruction that continues at a part or at the instruction after the part.
fn choice(part: u32, behind: u32, greedy: bool) -> Instruction {
    if greedy { Instruction::Fork(part, behind) } else { Instruction::Fork(behind, part) }
}
