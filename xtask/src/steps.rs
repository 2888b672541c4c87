//! Steps that run in order, each with its name, its command and its time; the first that fails ends
//! the chore, and a table of them all stands at the end.

use std::process::Command;
use std::time::{Duration, Instant};

/// The steps of one chore.
pub(crate) struct Steps {
    planned: usize,
    done: Vec<Done>,
    started: Instant,
}

/// A step that is over.
struct Done {
    name: String,
    took: Duration,
    result: &'static str,
}

impl Steps {
    /// A chore of `planned` steps.
    pub(crate) fn new(planned: usize) -> Self {
        Self { planned, done: Vec::new(), started: Instant::now() }
    }

    /// Runs a command as the next step.
    pub(crate) fn command(&mut self, name: &str, command: &mut Command) -> Result<(), String> {
        let line = shown(command);
        self.step(name, || {
            println!("  {line}");
            let status = command.status().map_err(|e| format!("cannot start: {e}"))?;
            if status.success() { Ok(()) } else { Err(format!("{line}: {status}")) }
        })
    }

    /// Runs work of this program as the next step.
    pub(crate) fn step(
        &mut self,
        name: &str,
        work: impl FnOnce() -> Result<(), String>,
    ) -> Result<(), String> {
        println!("[{}/{}] {name}", self.done.len() + 1, self.planned);
        let began = Instant::now();
        let outcome = work();
        let took = began.elapsed();
        let result = if outcome.is_ok() { "ok" } else { "FAILED" };
        println!("  {result}, {:.1} s\n", took.as_secs_f64());
        self.done.push(Done { name: name.to_owned(), took, result });
        outcome.map_err(|message| {
            self.print_table();
            format!("step {name:?} failed: {message}")
        })
    }

    /// The table of all steps that were done.
    pub(crate) fn print_table(&self) {
        let width = self.done.iter().map(|step| step.name.len()).max().unwrap_or(0).max(5);
        let line = |name: &str, took: Duration, result: &str| {
            println!("{name:<width$}  {:>8.1}  {result}", took.as_secs_f64());
        };
        println!("{:<width$}  {:>8}  result", "step", "seconds");
        for step in &self.done {
            line(&step.name, step.took, step.result);
        }
        line("total", self.started.elapsed(), "");
    }
}

/// The command as it could be typed, with the variables that were set for it.
fn shown(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(key, value)| {
        Some(format!("{}={:?}", key.to_string_lossy(), value?.to_string_lossy()))
    });
    let program = std::path::Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program.to_string_lossy().into_owned())
        .chain(command.get_args().map(|arg| arg.to_string_lossy().into_owned()));
    variables.chain(words).collect::<Vec<_>>().join(" ")
}
