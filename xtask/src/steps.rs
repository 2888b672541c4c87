//! Steps that run in order, each with its name, its command and its time; the first that fails ends
//! the chore, and a table of them all stands at the end.

use std::process::Command;
use std::time::{Duration, Instant};

/// The steps of one chore.
pub(crate) struct Steps {
    planned: usize,
    done: Vec<(String, Duration)>,
    started: Instant,
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
        match outcome {
            Ok(()) => {
                println!("  ok, {:.1} s\n", took.as_secs_f64());
                self.done.push((name.to_owned(), took));
                Ok(())
            }
            Err(message) => {
                println!("  FAILED after {:.1} s\n", took.as_secs_f64());
                self.print_table();
                Err(format!("step {name:?} failed: {message}"))
            }
        }
    }

    /// The table of all steps that were done.
    pub(crate) fn print_table(&self) {
        let width = self.done.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max(5);
        println!("{:<width$}  {:>8}", "step", "seconds");
        for (name, took) in &self.done {
            println!("{name:<width$}  {:>8.1}", took.as_secs_f64());
        }
        println!("{:<width$}  {:>8.1}", "total", self.started.elapsed().as_secs_f64());
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
