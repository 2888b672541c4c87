//! Wine with a world of its own below the target folder: nothing of the user's is read or changed, and
//! nothing of it runs on when this is dropped.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::windows::LINKER;
use crate::workspace::{root, succeeds, target};

/// A running Wine, ended when dropped.
#[derive(Debug)]
pub(crate) struct Wine {
    loader: &'static str,
    prefix: PathBuf,
}

impl Wine {
    /// The program that runs 64-bit Windows programs, if there is one.
    pub(crate) fn find() -> Option<&'static str> {
        let starts = |loader: &&str| succeeds(Command::new(loader).arg("--version"));
        LOADERS.into_iter().find(starts)
    }

    /// Starts it with its world below the target folder.
    pub(crate) fn start_own() -> Result<Self, String> {
        Self::start(&target().join("wine"))
    }

    /// Starts it with its world in `prefix`, which is made if it is not there.
    fn start(prefix: &Path) -> Result<Self, String> {
        let loader = Self::find().ok_or("no Wine after set-up")?;
        fs::create_dir_all(prefix).map_err(|e| format!("{}: {e}", prefix.display()))?;
        let wine = Self { loader, prefix: prefix.to_owned() };
        // What a run that was killed has left.
        wine.end();
        // The server would end with each program and start again with the next.
        wine.server(&["--persistent"])?;
        wine.boot()?;
        wine.add_random_numbers()?;
        Ok(wine)
    }

    /// The program to run a Windows program with.
    pub(crate) fn loader(&self) -> &'static str {
        self.loader
    }

    /// Lets a command, and what it starts, use this Wine.
    pub(crate) fn prepare(&self, command: &mut Command) {
        command.env("WINEPREFIX", &self.prefix).env("WINEDEBUG", "-all");
        // Nothing here is for browsers or .NET, which a new world would ask to install.
        command.env("WINEDLLOVERRIDES", "mscoree,mshtml=");
    }

    /// Any program starts the world that it is the first of. `wineboot` would be the first and then start
    /// a second manager of services, each of which knows its own. The services live on and would keep a
    /// captured output open, so they get none.
    fn boot(&self) -> Result<(), String> {
        let mut command = Command::new(self.loader);
        command.args(["cmd", "/c", "exit"]);
        self.run_silently(&mut command)
    }

    /// Rust's library takes random numbers from a system library that Wine lacks before release 9.
    fn add_random_numbers(&self) -> Result<(), String> {
        let library = self.prefix.join("drive_c/windows/system32/bcryptprimitives.dll");
        if library.exists() {
            return Ok(());
        }
        let exports = root().join("xtask/wine/bcryptprimitives.def");
        let mut command = Command::new(LINKER);
        command.args(["-shared", "-nostdlib", "-Wl,--entry=0", "-o"]).arg(library).arg(exports);
        self.run_silently(&mut command)
    }

    /// Whatever still runs in this world ends with its server.
    fn end(&self) {
        let _ = self.server(&["--kill"]);
        let _ = self.server(&["--wait"]);
    }

    fn server(&self, args: &[&str]) -> Result<(), String> {
        let mut command = Command::new("wineserver");
        self.run_silently(command.args(args))
    }

    /// What is said goes to a file, which a service that lives on may keep open, unlike a pipe.
    fn run_silently(&self, command: &mut Command) -> Result<(), String> {
        self.prepare(command);
        let name = command.get_program().to_string_lossy().into_owned();
        let explain = |error: io::Error| format!("{name}: {error}");
        let log = self.prefix.join("last.log");
        let file = File::create(&log).map_err(explain)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        let status = command.status().map_err(explain)?;
        if status.success() {
            return Ok(());
        }
        Err(format!("{name}: {status}\n{}", fs::read_to_string(log).unwrap_or_default()))
    }
}

impl Drop for Wine {
    fn drop(&mut self) {
        self.end();
    }
}

/// Debian's name, then others'.
const LOADERS: [&str; 3] = ["/usr/lib/wine/wine64", "wine64", "wine"];
