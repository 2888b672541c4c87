//! A program under measurement, and what it can do.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::wine::Wine;

/// One of the two tools.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) path: PathBuf,
    /// For a program of Windows.
    wine: Option<Wine>,
    /// The first line that it says of itself.
    pub(super) version: String,
    help: String,
}

impl Tool {
    /// Asks the program what it is.
    pub(super) fn find(path: &Path) -> Result<Self, String> {
        let is_foreign = !cfg!(windows) && path.extension().is_some_and(|all| all == "exe");
        let wine = if is_foreign { Some(Wine::start_own()?) } else { None };
        let under = if is_foreign { ", under Wine" } else { "" };
        let mut tool =
            Self { path: path.to_owned(), wine, version: String::new(), help: String::new() };
        let version = tool.ask("--version")?;
        tool.version = format!("{}{under}", version.lines().next().unwrap_or_default().trim());
        tool.help = tool.ask("--help")?;
        Ok(tool)
    }

    /// A command that runs it, of one that runs any program.
    pub(super) fn command(&self, start: impl FnOnce(&Path) -> Command) -> Command {
        let Some(wine) = &self.wine else { return start(&self.path) };
        let mut command = start(Path::new(wine.loader()));
        command.arg(&self.path);
        wine.prepare(&mut command);
        command
    }

    fn ask(&self, option: &str) -> Result<String, String> {
        let output = self.command(|program| Command::new(program)).arg(option).output();
        let output = output.map_err(|e| format!("{}: {e}", self.path.display()))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Whether its help names the option.
    pub(super) fn knows(&self, option: &str) -> bool {
        self.help.split(|c: char| c.is_whitespace() || c == ',').any(|word| word == option)
    }

    /// The 12 of iperf 3.12.
    pub(super) fn minor(&self) -> Option<u32> {
        minor(&self.version)
    }
}

fn minor(version: &str) -> Option<u32> {
    let rest = version.strip_prefix("iperf 3.")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).map_or(rest, |end| &rest[..end]);
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_with_whatever_follows() {
        assert_eq!(minor("iperf 3.12 (cJSON 1.7.15)"), Some(12));
        assert_eq!(minor("iperf 3.21+ (cJSON 1.7.15)"), Some(21));
        assert_eq!(minor("linerate 0.1.0"), None);
    }

    #[test]
    fn an_option_is_known_by_its_whole_name() {
        let help = "  -Z, --zerocopy  use a 'zero copy' method\n  --gsro  both".to_owned();
        let tool = Tool { path: PathBuf::new(), wine: None, version: String::new(), help };
        assert!(tool.knows("--gsro") && tool.knows("-Z") && tool.knows("--zerocopy"));
        assert!(!tool.knows("--gs") && !tool.knows("--skip-rx-copy"));
    }
}
