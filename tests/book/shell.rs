//! Parses a small part of the shell's syntax: enough to find the commands in a line of the documentation.

/// A command with its arguments.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Simple {
    pub(crate) words: Vec<String>,
    /// The file to which standard output is redirected.
    pub(crate) redirect: Option<String>,
}

/// The commands in a line, and whether the line is a single command.
#[derive(Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) commands: Vec<Simple>,
    /// Whether the line has only one command, in the foreground.
    pub(crate) is_single: bool,
}

/// Parses a line with quotes, pipes, lists, substitutions, redirections, and comments.
pub(crate) fn parse(line: &str) -> Line {
    let mut parser = Parser { is_single: true, ..Parser::default() };
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => parser.quoted(letters.by_ref().take_while(|letter| *letter != '\'')),
            '"' => parser.quoted(letters.by_ref().take_while(|letter| *letter != '"')),
            '\\' if letters.peek() == Some(&'\n') => {}
            '$' if letters.peek() == Some(&'(') => {
                letters.next();
                parser.operator();
            }
            '#' if parser.word.is_none() => break,
            // `2>&1` stays with its command.
            '&' if parser.word.as_deref() == Some("2>") => parser.push('&'),
            '>' if parser.word.as_deref() == Some("2") => parser.push('>'),
            '|' | '&' | ';' | '(' | ')' => parser.operator(),
            '>' => {
                parser.end_word();
                parser.is_redirect = true;
            }
            ' ' | '\n' => parser.end_word(),
            other => parser.push(other),
        }
    }
    parser.end_word();
    parser.end_command();
    Line { commands: parser.commands, is_single: parser.is_single }
}

#[derive(Default)]
struct Parser {
    commands: Vec<Simple>,
    command: Simple,
    word: Option<String>,
    is_redirect: bool,
    is_single: bool,
}

impl Parser {
    fn push(&mut self, letter: char) {
        self.word.get_or_insert_default().push(letter);
    }

    fn quoted(&mut self, text: impl Iterator<Item = char>) {
        self.word.get_or_insert_default().extend(text);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if word == "2>&1" {
            return;
        }
        if std::mem::take(&mut self.is_redirect) {
            self.command.redirect = Some(word);
        } else {
            self.command.words.push(word);
        }
    }

    fn end_command(&mut self) {
        let command = std::mem::take(&mut self.command);
        if !command.words.is_empty() {
            self.commands.push(command);
        }
    }

    fn operator(&mut self) {
        self.is_single = false;
        self.end_word();
        self.end_command();
    }
}

#[test]
fn commands_are_found_between_operators() {
    let words =
        |line: &str| -> Vec<Vec<String>> { parse(line).commands.into_iter().map(|it| it.words).collect() };
    assert_eq!(words("export A=$(admit assets)"), [vec!["export", "A="], vec!["admit", "assets"]]);
    assert_eq!(words("admit cel \"a > 'b'\" -f x"), [["admit", "cel", "a > 'b'", "-f", "x"]]);
    assert_eq!(
        words("kubectl apply -f a 2>&1 | admit explain-error -f - # why"),
        [vec!["kubectl", "apply", "-f", "a"], vec!["admit", "explain-error", "-f", "-"]]
    );
    assert!(!parse("admit fakes &").is_single);
    let redirected = parse("admit lint -c a -o sarif > lint.sarif");
    assert!(redirected.is_single);
    assert_eq!(redirected.commands[0].redirect.as_deref(), Some("lint.sarif"));
}
