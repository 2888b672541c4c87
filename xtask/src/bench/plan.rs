//! What was asked of the bench.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The options, read.
#[derive(Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) work: Work,
    /// None is the system's iperf3, or for Windows this checkout's linerate.
    pub(super) peer: Option<PathBuf>,
    pub(super) own: Option<PathBuf>,
    /// The Windows build against linerate for this system.
    pub(super) wine: bool,
    pub(super) runs: usize,
    /// None leaves it to each row.
    pub(super) seconds: Option<u32>,
    /// Parts of names; a row with any of them is measured, without any all are.
    pub(super) rows: Vec<String>,
    pub(super) congestion: Vec<String>,
    pub(super) link: LinkKind,
    pub(super) json: bool,
}

/// What the bench does.
#[derive(Debug, PartialEq, Clone, Copy)]
pub(super) enum Work {
    /// Both tools side by side.
    Compare,
    /// Cases that linerate alone passes or fails.
    Check,
    /// Nanoseconds of the engine's hot path.
    Micro,
    /// Instructions of the same.
    Instructions,
}

/// What lies between the two ends.
#[derive(Debug, PartialEq, Clone, Copy)]
pub(super) enum LinkKind {
    Loopback,
    /// A pair of virtual devices with an MTU of 1500, each in a namespace of its own.
    Veth,
}

impl Plan {
    pub(super) fn parse(options: &[String]) -> Result<Self, String> {
        let mut plan = Self {
            work: Work::Compare,
            peer: None,
            own: None,
            wine: false,
            runs: 7,
            seconds: None,
            rows: Vec::new(),
            congestion: vec!["cubic".into(), "bbr".into()],
            link: LinkKind::Loopback,
            json: false,
        };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let mut value = || options.next().ok_or(format!("{option} needs a value"));
            match option.as_str() {
                "--peer" => plan.peer = Some(value()?.into()),
                "--own" => plan.own = Some(value()?.into()),
                "--runs" => plan.runs = positive(option, value()?)?,
                "--seconds" => plan.seconds = Some(positive(option, value()?)?),
                "--rows" => plan.rows = list(value()?),
                "--congestion" => plan.congestion = list(value()?),
                "--link" => plan.link = value()?.parse()?,
                "--json" => plan.json = true,
                "--wine" => plan.wine = true,
                "--check" => plan.work = Work::Check,
                "--micro" => plan.work = Work::Micro,
                "--instructions" => plan.work = Work::Instructions,
                other => return Err(format!("bench does not know {other}")),
            }
        }
        Ok(plan)
    }

    /// Whether the row of this name was asked for.
    pub(super) fn wants(&self, name: &str) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|part| name.contains(part.as_str()))
    }
}

impl FromStr for LinkKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "loopback" => Ok(Self::Loopback),
            "veth" => Ok(Self::Veth),
            other => Err(format!("--link takes loopback or veth, not {other:?}")),
        }
    }
}

impl fmt::Display for LinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loopback => "loopback",
            Self::Veth => "veth",
        })
    }
}

fn list(text: &str) -> Vec<String> {
    text.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn positive<T: FromStr + PartialOrd + From<u8>>(option: &str, text: &str) -> Result<T, String> {
    let number = text.parse().ok().filter(|n| *n >= T::from(1));
    number.ok_or(format!("{option} takes a number from 1 on, not {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Plan, String> {
        Plan::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_checked_before_anything_runs() {
        let plan =
            parse("--runs 3 --seconds 2 --rows udp,reverse --link veth").expect("it is right");
        assert_eq!((plan.runs, plan.seconds, plan.link), (3, Some(2), LinkKind::Veth));
        assert!(plan.wants("tcp reverse") && plan.wants("udp 64") && !plan.wants("tcp"));
        assert_eq!(parse("--wine").map(|plan| (plan.wine, plan.work)), Ok((true, Work::Compare)));
        assert_eq!(parse("").map(|plan| (plan.runs, plan.wants("tcp"))), Ok((7, true)));
        for wrong in ["--runs 0", "--runs", "--fast", "--link wifi", "--seconds x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
