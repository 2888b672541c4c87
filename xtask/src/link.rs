//! Runs a command across the impairment link of the tests, by hand. The link is no part of this
//! program: it is built and run with what was typed.

use crate::workspace::{cargo, target};

/// Builds what is needed and hands the options on.
pub(crate) fn run(options: &[String]) -> Result<(), String> {
    let build = cargo(&["build", "--quiet", "--package", "linerate", "--bin", "linerate"]).status();
    if !build.is_ok_and(|status| status.success()) {
        return Err("linerate could not be built".into());
    }
    let mut link = cargo(&["run", "--quiet", "--package", "linerate-tests", "--bin", "link", "--"]);
    let linerate = format!("linerate{}", std::env::consts::EXE_SUFFIX);
    link.args(options).env("LINERATE_BIN", target().join("debug").join(linerate));
    let status = link.status().map_err(|e| format!("cannot start the link: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("the link: {status}")) }
}
