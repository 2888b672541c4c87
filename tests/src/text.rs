//! Text reports without what differs from run to run: numbers are masked, and the last intervals, which
//! one run has and the next has not, are left out. What is left must be the same line for line,
//! trailing blanks included.

/// The lines of a report, masked. `program` is the name that messages begin with.
pub fn masked(text: &str, program: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        if is_short_interval(line) {
            // It brought its separator along.
            if lines.last().is_some_and(|line| line.starts_with("- -")) {
                lines.pop();
            }
            continue;
        }
        lines.push(mask(line, program));
    }
    lines
}

/// A line of an interval that is no part of the report's regular intervals.
fn is_short_interval(line: &str) -> bool {
    let is_interval = line.starts_with('[') && line.contains(" sec ");
    let is_summary = ["sender", "receiver", "out-of-order"].iter().any(|end| line.ends_with(end));
    if !is_interval || is_summary {
        return false;
    }
    let after_label = line.rsplit_once(']').map_or("", |(_, rest)| rest);
    let span = after_label.split(" sec ").next().unwrap_or("");
    let mut ends = span.split('-').map(|end| end.trim().parse::<f64>());
    match (ends.next(), ends.next()) {
        (Some(Ok(start)), Some(Ok(end))) => end - start < SHORT,
        _ => false,
    }
}

/// Each number, with the blanks that fill its column, becomes one sign; so do the units that go with
/// its size, names that are random, and who wrote the report.
fn mask(line: &str, program: &str) -> String {
    for (word, shown) in [("Cookie: ", "      Cookie: *"), ("Time: ", "Time: *")] {
        if line.trim_start().starts_with(word) {
            return shown.into();
        }
    }
    if line.starts_with("iperf 3.") || line.starts_with("linerate ") {
        return "VERSION".into();
    }
    let line = match line.strip_prefix(program).filter(|rest| rest.starts_with(':')) {
        Some(rest) => format!("PROGRAM{rest}"),
        None => line.into(),
    };
    mask_units(&mask_numbers(&line))
}

fn mask_numbers(line: &str) -> String {
    let mut masked = String::new();
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        if !c.is_ascii_digit() {
            masked.push(c);
            continue;
        }
        while chars.next_if(|&c| c.is_ascii_digit() || c == '.').is_some() {}
        let label = masked.trim_end_matches(' ').len();
        masked.truncate(label);
        masked.push_str(" #");
    }
    masked
}

fn mask_units(line: &str) -> String {
    let mut masked = line.to_owned();
    for unit in ["Bytes", "Byte", "bits", "bit"] {
        for prefix in ["K", "M", "G", "T"] {
            masked = masked.replace(&format!(" {prefix}{unit}"), &format!(" {unit}"));
        }
    }
    masked
}

/// Seconds; the tests' regular intervals are a good deal longer.
const SHORT: f64 = 0.3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_is_gone_and_nothing_else() {
        let one = "\
[  5]   0.00-1.00   sec  3.02 GBytes  25.9 Gbits/sec    5   1023 KBytes       \n\
- - -\n\
[  5]   1.00-1.01   sec  1.00 MBytes   900 Mbits/sec    0   1.37 MBytes       \n\
- - -\n\
[  5]   0.00-1.01   sec  3.02 GBytes  25.9 Gbits/sec    5            sender\n";
        let other = "\
[ 12]   0.00-1.00   sec   952 MBytes  7.99 Gbits/sec  115   1.37 MBytes       \n\
- - -\n\
[ 12]   0.00-1.00   sec   952 MBytes  7.99 Gbits/sec  115            sender\n";
        assert_eq!(masked(one, "a"), masked(other, "b"));
        let other = other.replace("115            sender", "115             sender");
        assert_ne!(masked(one, "a"), masked(&other, "b"));
        assert_eq!(masked("a: error - 1", "a"), masked("b: error - 2", "b"));
    }
}
