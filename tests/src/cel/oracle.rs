//! Runs the Go program that evaluates expressions with Kubernetes' own packages.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;

use super::answer::{Answer, Question};

/// The Go program. It is restarted when it exits.
#[derive(Debug)]
pub struct Oracle {
    program: PathBuf,
    kubernetes: String,
    running: Option<Running>,
    /// The exit messages of the program, for exits that no single question causes.
    unexplained: Vec<String>,
}

/// The running program. It is stopped on drop.
#[derive(Debug)]
struct Running {
    child: Child,
    questions: BufWriter<ChildStdin>,
    answers: BufReader<ChildStdout>,
    errors: Option<JoinHandle<String>>,
}

/// The reason why the oracle cannot answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OracleError {
    /// The program cannot be built.
    #[error("the oracle cannot be built (`go build {package}` in {folder}): {why}")]
    Build {
        /// The package of the program.
        package: String,
        /// The directory of its source.
        folder: String,
        /// The output of Go.
        why: String,
    },
    /// Reading from or writing to the program failed.
    #[error("the oracle cannot be asked: {0}")]
    Io(#[from] io::Error),
    /// The program cannot be started.
    #[error("the oracle ended before the first answer: {0}")]
    Ended(String),
    /// The program wrote an invalid answer.
    #[error("the oracle answers {text:?}: {why}")]
    Answer {
        /// The invalid text.
        text: String,
        /// The parse error.
        why: serde_json::Error,
    },
}

/// The memory limit of the program, in KiB.
///
/// If an expression needs more memory, this program crashes with a message, and other programs are not affected.
const MEMORY: u64 = 8 << 20;
/// The maximum number of questions that the program processes concurrently. If it exits, one of them may be the cause.
const AT_ONCE: usize = 300;
/// The maximum number of bytes of the program's standard error to keep.
const MESSAGE: u64 = 1 << 16;

/// Returns the directory that contains the Go module, the expressions, and the contexts.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cel")
}

/// Builds a program of the Go module, such as `./oracle`. The first build takes some minutes. Requires Go.
///
/// # Errors
/// Returns an error if Go is missing, or the build fails.
pub(super) fn build(package: &str) -> Result<PathBuf, OracleError> {
    let folder = folder();
    let name = package.trim_start_matches("./");
    let program = folder.join(format!("../../target/cel-{name}"));
    let failed = |why: String| OracleError::Build {
        package: package.to_owned(),
        folder: folder.display().to_string(),
        why,
    };
    let built = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg(package)
        .current_dir(&folder)
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if built.status.success() {
        Ok(program)
    } else {
        Err(failed(String::from_utf8_lossy(&built.stderr).into_owned()))
    }
}

impl Oracle {
    /// Builds and starts the program for a Kubernetes version such as `1.37`. Requires Go.
    ///
    /// # Errors
    /// Returns an error if the program cannot be built or started.
    pub fn start(kubernetes: &str) -> Result<Self, OracleError> {
        let program = build("./oracle")?;
        let mut oracle =
            Self { program, kubernetes: kubernetes.to_owned(), running: None, unexplained: Vec::new() };
        let simple = Question { expr: "true".to_owned(), schema: None, context: None };
        match oracle.exchange(&[simple], &mut Vec::new())? {
            Ok(()) => Ok(oracle),
            Err(message) => Err(OracleError::Ended(message)),
        }
    }

    /// Returns the exit messages of the program, for exits that no single question caused.
    pub fn unexplained(&self) -> &[String] {
        &self.unexplained
    }

    /// Returns the answers in the order of the questions.
    ///
    /// The answer to a question that makes the program exit is a failure.
    ///
    /// # Errors
    /// Returns an error if the program cannot be started, or writes an invalid answer.
    pub fn ask(&mut self, questions: &[Question]) -> Result<Vec<Answer>, OracleError> {
        let mut answers = Vec::with_capacity(questions.len());
        while let Some(open) = questions.get(answers.len()..).filter(|open| !open.is_empty()) {
            let Err(message) = self.exchange(open, &mut answers)? else { continue };
            // It works on several questions at a time, so find the one that ended it.
            let open = questions.get(answers.len()..).unwrap_or_default();
            let mut found = false;
            for question in open.iter().take(AT_ONCE) {
                if let Err(message) = self.exchange(std::slice::from_ref(question), &mut answers)? {
                    answers.push(crashed(question, &message));
                    found = true;
                    break;
                }
            }
            if !found {
                self.unexplained.push(message);
            }
        }
        // Abandoned evaluations continue in the program, and use memory.
        if answers.iter().any(|answer| answer.failure.as_deref() == Some("takes too long")) {
            self.running = None;
        }
        Ok(answers)
    }

    fn running(&mut self) -> Result<&mut Running, OracleError> {
        let running = match self.running.take() {
            Some(running) => running,
            None => Running::start(&self.program, &self.kubernetes)?,
        };
        Ok(self.running.insert(running))
    }

    /// Appends the answers to `answers`. Returns the exit message of the program if it exited.
    fn exchange(
        &mut self,
        questions: &[Question],
        answers: &mut Vec<Answer>,
    ) -> Result<Result<(), String>, OracleError> {
        if self.running()?.exchange(questions, answers)? {
            return Ok(Ok(()));
        }
        let Some(running) = self.running.take() else { return Ok(Ok(())) };
        Ok(Err(running.message()?))
    }
}

fn crashed(question: &Question, message: &str) -> Answer {
    Answer {
        expr: question.expr.clone(),
        schema: question.schema.clone(),
        context: question.context.clone(),
        failure: Some(format!("{}{message}", Answer::CRASH)),
        ..Answer::default()
    }
}

impl Running {
    fn start(program: &Path, kubernetes: &str) -> Result<Self, OracleError> {
        let mut child = Command::new("sh")
            .args(["-c", &format!("ulimit -v {MEMORY}; exec \"$@\""), "sh"])
            .arg(program)
            .args(["-kubernetes", kubernetes])
            .args(["contexts.json", "schemas.json"].map(|file| folder().join(file)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (Some(questions), Some(answers), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::Error::other("it has no standard input, output or error").into());
        };
        let errors = std::thread::spawn(move || {
            let mut errors = errors;
            let mut text = Vec::new();
            drop(errors.by_ref().take(MESSAGE).read_to_end(&mut text));
            // The rest must be read, or the program blocks forever.
            drop(io::copy(&mut errors, &mut io::sink()));
            String::from_utf8_lossy(&text).into_owned()
        });
        let (questions, answers) = (BufWriter::new(questions), BufReader::new(answers));
        Ok(Self { child, questions, answers, errors: Some(errors) })
    }

    /// Sends the questions, and appends the answers. Returns whether the program still runs after the last answer.
    fn exchange(&mut self, questions: &[Question], answers: &mut Vec<Answer>) -> Result<bool, OracleError> {
        let (sink, source) = (&mut self.questions, &mut self.answers);
        // It answers while it reads, so writing everything first would deadlock.
        std::thread::scope(|scope| {
            let written = scope.spawn(move || {
                for question in questions {
                    serde_json::to_writer(&mut *sink, question)?;
                    sink.write_all(b"\n")?;
                }
                sink.flush()
            });
            let mut text = String::new();
            for _ in questions {
                text.clear();
                if source.read_line(&mut text)? == 0 || !text.ends_with('\n') {
                    return Ok(false);
                }
                let answer = serde_json::from_str(&text)
                    .map_err(|why| OracleError::Answer { text: text.trim_end().to_owned(), why })?;
                answers.push(answer);
            }
            written.join().map_err(|_panic| io::Error::other("the questions were not written"))??;
            Ok(true)
        })
    }

    /// Returns the exit message of the program: its exit status, and the first line of its error output.
    fn message(mut self) -> Result<String, OracleError> {
        let mut message = self.child.wait()?.to_string();
        let errors = self.errors.take().and_then(|errors| errors.join().ok()).unwrap_or_default();
        if let Some(line) = errors.lines().find(|line| !line.trim().is_empty()) {
            let _ = write!(message, ": {line}");
        }
        Ok(message)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
