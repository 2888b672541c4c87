//! One server under short tests for hours: prints what it holds of its system after the first hundred
//! and after the last, and fails if that grew. The tests are those of `tests/tests/soak.rs`.

use crate::workspace::{cargo, target};

/// Runs so many tests, or for so long.
pub(crate) fn run(options: &[String]) -> Result<(), String> {
    let (variable, value) = parse(options)?;
    let mut build = cargo(&["build", "--release", "--locked", "-p", "linerate"]);
    let built = build.status().map_err(|e| format!("cargo: {e}"))?;
    if !built.success() {
        return Err("the release build of linerate failed".into());
    }
    let name = format!("linerate{}", std::env::consts::EXE_SUFFIX);
    let mut soak = cargo(&["test", "--locked", "-p", "linerate-tests", "--test", "soak"]);
    soak.args(["--", "--nocapture"]);
    soak.env("LINERATE_BIN", target().join("release").join(name)).env(variable, value);
    match soak.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("the server grew, or a test failed".into()),
        Err(e) => Err(format!("cargo: {e}")),
    }
}

/// What tells the suite how long to go on.
fn parse(options: &[String]) -> Result<(&'static str, String), String> {
    let (variable, value) = match options {
        [] => return Ok(("LINERATE_SOAK_TESTS", "10000".into())),
        [option, value] if option == "--tests" => ("LINERATE_SOAK_TESTS", value),
        [option, value] if option == "--hours" => ("LINERATE_SOAK_HOURS", value),
        other => return Err(format!("soak takes --tests N or --hours H, not {}", other.join(" "))),
    };
    let number = value.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    number.map(|_| (variable, value.clone())).ok_or(format!("{value:?} is no number above 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_checked_before_anything_runs() {
        let parse =
            |line: &str| parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(parse("--hours 24"), Ok(("LINERATE_SOAK_HOURS", "24".into())));
        assert_eq!(parse("--tests 500"), Ok(("LINERATE_SOAK_TESTS", "500".into())));
        assert!(parse("").is_ok());
        for wrong in ["--hours", "--hours x", "--hours 0", "--tests -1", "--days 1", "--tests inf"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
