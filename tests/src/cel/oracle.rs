//! The Go program that says what Kubernetes makes of expressions.

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::answer::{Answer, Question};

/// The running program; it ends when this is dropped.
#[derive(Debug)]
pub struct Oracle {
    child: Child,
    questions: BufWriter<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// Why it gives no answers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OracleError {
    /// It cannot be built.
    #[error("the oracle cannot be built (`go build ./oracle` in {folder}): {why}")]
    Build {
        /// Where its source is.
        folder: String,
        /// What Go says.
        why: String,
    },
    /// It cannot be spoken to.
    #[error("the oracle cannot be asked: {0}")]
    Io(#[from] std::io::Error),
    /// Its answer is not one.
    #[error("the oracle answers {text:?}: {why}")]
    Answer {
        /// What it wrote.
        text: String,
        /// What is wrong with that.
        why: serde_json::Error,
    },
}

/// The folder of the Go module, of the expressions and of the contexts.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cel")
}

impl Oracle {
    /// Builds the program, which takes some minutes once, and starts it for a version such as `1.37`. Needs Go.
    ///
    /// # Errors
    /// It cannot be built or started.
    pub fn start(kubernetes: &str) -> Result<Self, OracleError> {
        let folder = folder();
        let program = folder.join("../../target/cel-oracle");
        let failed = |why: String| OracleError::Build { folder: folder.display().to_string(), why };
        let built = Command::new("go")
            .args(["build", "-o"])
            .arg(&program)
            .arg("./oracle")
            .current_dir(&folder)
            .output()
            .map_err(|error| failed(error.to_string()))?;
        if !built.status.success() {
            return Err(failed(String::from_utf8_lossy(&built.stderr).into_owned()));
        }
        let mut child = Command::new(program)
            .args(["-kubernetes", kubernetes])
            .arg(folder.join("contexts.json"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(std::io::Error::other("it has no standard input or output").into());
        };
        Ok(Self { child, questions: BufWriter::new(questions), answers: BufReader::new(answers) })
    }

    /// One answer for each question, in their order.
    ///
    /// # Errors
    /// It is gone, or does not answer in its words.
    pub fn ask(&mut self, questions: &[Question]) -> Result<Vec<Answer>, OracleError> {
        let (sink, source) = (&mut self.questions, &mut self.answers);
        // It answers while it reads: whoever writes everything first waits for ever.
        std::thread::scope(|scope| {
            let written = scope.spawn(move || {
                for question in questions {
                    serde_json::to_writer(&mut *sink, question)?;
                    sink.write_all(b"\n")?;
                }
                sink.flush()
            });
            let mut answers = Vec::new();
            let mut text = String::new();
            while answers.len() < questions.len() {
                text.clear();
                if source.read_line(&mut text)? == 0 {
                    return Err(std::io::Error::other("it ended").into());
                }
                let answer = serde_json::from_str(&text)
                    .map_err(|why| OracleError::Answer { text: text.trim_end().to_owned(), why })?;
                answers.push(answer);
            }
            written.join().map_err(|_panic| std::io::Error::other("the questions were not written"))??;
            Ok(answers)
        })
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
