//! A program under measurement, and what it can do.

use std::path::{Path, PathBuf};
use std::process::Command;

/// One of the two tools.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) path: PathBuf,
    /// The first line that it says of itself.
    pub(super) version: String,
    help: String,
}

impl Tool {
    /// Asks the program what it is.
    pub(super) fn find(path: &Path) -> Result<Self, String> {
        let ask = |option| {
            let output = Command::new(path).arg(option).output();
            let output = output.map_err(|e| format!("{}: {e}", path.display()))?;
            Ok::<_, String>(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let version = ask("--version")?.lines().next().unwrap_or_default().trim().to_owned();
        Ok(Self { path: path.to_owned(), version, help: ask("--help")? })
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
        let tool = Tool { path: PathBuf::new(), version: String::new(), help };
        assert!(tool.knows("--gsro") && tool.knows("-Z") && tool.knows("--zerocopy"));
        assert!(!tool.knows("--gs") && !tool.knows("--skip-rx-copy"));
    }
}
