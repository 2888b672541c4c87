//! The comparison as tables in Markdown, aligned so that a terminal shows them as well.

use super::measure::{Column, Measured, Outcome};
use super::numbers::{Series, figure};
use super::rows::Table;
use super::side::Metric;

/// Prints a table for each kind of row, and what could not be measured.
pub(super) fn print(rows: &[Measured]) {
    let kinds = [Table::Tcp, Table::Udp, Table::Paced, Table::Captured, Table::Memory, Table::Idle];
    for kind in kinds {
        let done: Vec<_> = rows
            .iter()
            .filter(|row| row.table == kind)
            .filter_map(|row| match &row.outcome {
                Outcome::Done(columns) => Some((row.name.as_str(), columns.as_slice())),
                _ => None,
            })
            .collect();
        if !done.is_empty() {
            println!("\n{}", aligned(&lines(kind, &done)));
        }
    }
    for row in rows {
        match &row.outcome {
            Outcome::Done(_) => {}
            Outcome::Skipped(why) => println!("\n{}: skipped, {why}", row.name),
            Outcome::Failed(why) => println!("\n{}: FAILED, {why}", row.name),
        }
    }
}

/// A line for each side, and one more for what it is beside iperf3.
fn lines(kind: Table, rows: &[(&str, &[Column])]) -> Vec<Vec<String>> {
    let metrics = kind.metrics();
    let heading = ["row", "between"].into_iter().map(str::to_owned);
    let mut lines =
        vec![heading.chain(metrics.iter().map(|m| m.heading(kind))).collect::<Vec<_>>()];
    for (name, columns) in rows {
        for (index, column) in columns.iter().enumerate() {
            let name = if index == 0 { (*name).to_owned() } else { String::new() };
            let mut line = vec![name, column.name.to_owned()];
            let cells = metrics.iter().map(|metric| {
                column.series.get(metric).map(|all| metric.cell(kind, all)).unwrap_or_default()
            });
            line.extend(cells);
            lines.push(line);
            if !column.verdicts.is_empty() {
                let verdict = |metric: &Metric| {
                    let verdict = column.verdicts.iter().find(|verdict| verdict.metric == *metric);
                    verdict.map(|verdict| verdict.text.clone()).unwrap_or_default()
                };
                let mut line = vec![String::new(), String::new()];
                line.extend(metrics.iter().map(verdict));
                lines.push(line);
            }
        }
    }
    lines
}

fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |column: usize| {
        lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0).max(3)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let shown = |cells: &[String]| {
        let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
    };
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let mut text = vec![shown(&lines[0]), shown(&rule)];
    text.extend(lines[1..].iter().map(|line| shown(line)));
    text.join("\n")
}

impl Metric {
    /// For JSON, with the unit.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Rate => "bits_per_second",
            Self::Loss => "lost_percent",
            Self::Spread => "spread_us",
            Self::CpuPerGb => "cpu_seconds_per_gigabyte",
            Self::ClientCpu => "client_cpu_percent",
            Self::ClientMb => "client_peak_megabytes",
            Self::ServerMb => "server_peak_megabytes",
        }
    }

    fn heading(self, kind: Table) -> String {
        let heading = match self {
            Self::Rate if kind.is_slow() => "Mbit/s",
            Self::Rate => "Gbit/s",
            Self::Loss => "loss %",
            Self::Spread => "spread µs",
            Self::CpuPerGb => "CPU s/GB",
            Self::ClientCpu => "client CPU %",
            Self::ClientMb => "client MB",
            Self::ServerMb => "server MB",
        };
        heading.to_owned()
    }

    /// The median, and the least and the most in brackets.
    fn cell(self, kind: Table, series: &Series) -> String {
        let unit = match self {
            Self::Rate if kind.is_slow() => 1e6,
            Self::Rate => 1e9,
            _ => 1.0,
        };
        let [median, least, most] =
            [series.median(), series.least(), series.most()].map(|number| figure(number / unit));
        // Of a single run there is no more to tell.
        if series.least() == series.most() {
            return median;
        }
        format!("{median} ({least} to {most})")
    }
}

impl Table {
    fn is_slow(self) -> bool {
        matches!(self, Self::Paced | Self::Captured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_markdown_with_columns_of_one_width() {
        let line = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let text = aligned(&[line(["row", "µs"]), line(["longer", "1"])]);
        assert_eq!(text, "| row    | µs  |\n| ------ | --- |\n| longer | 1   |");
    }

    #[test]
    fn a_cell_has_the_median_and_the_range_in_the_unit_of_its_table() {
        let mut series = Series::default();
        for rate in [1e9, 2e9, 4e9] {
            series.add(rate);
        }
        assert_eq!(Metric::Rate.cell(Table::Tcp, &series), "2.00 (1.00 to 4.00)");
        assert_eq!(Metric::Rate.cell(Table::Paced, &series), "2000 (1000 to 4000)");
    }
}
