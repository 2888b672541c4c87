//! What people do most often, each with the command for it. Help, manual and README show the same
//! ones.

use std::fmt::Write as _;

/// Tasks, and the words after the program's name.
pub(super) const EXAMPLES: &[(&str, &str)] = &[
    ("serve tests on this host", "-s"),
    ("how fast can I send", "-c HOST"),
    ("how fast can I receive", "-c HOST -R"),
    ("both ways at once", "-c HOST --bidir"),
    ("four streams for half a minute, without the slow start", "-c HOST -P 4 -O 3 -t 30"),
    ("loss and jitter at a rate", "-c HOST -u -b 20M"),
    ("a given amount", "-c HOST -n 1G"),
    ("a result for a script", "-c HOST -J"),
    ("what the server saw", "-c HOST --get-server-output"),
    ("marked as voice is, to see what the network makes of it", "-c HOST -u -b 1M --dscp ef"),
    ("copy a file: on the server, then on the client", "-s -1 -F copy"),
    ("", "-c HOST -F original"),
];

/// The examples as lines of help.
pub(super) fn text(program: &str) -> String {
    let widest = EXAMPLES.iter().map(|(_, words)| words.len()).max().unwrap_or(0);
    let mut text = String::from("Examples:");
    for (task, words) in EXAMPLES {
        let line = format!("\n  {program} {words:<widest$}  {task}");
        text.push_str(line.trim_end());
    }
    let _ = write!(text, "\n\n{UNITS}");
    text
}

const UNITS: &str = "Sizes and counts take k, m, g or t in steps of 1024, rates in steps of 1000: \
                     -n 1M is 1048576\nbytes, -b 1M is 1000000 bits per second.";
