use super::*;

/// The width is fixed here because `parse` takes that of the terminal.
fn help(program: &str) -> String {
    args::command(program).term_width(100).render_help().to_string()
}

#[test]
fn help_is_grouped_by_role() {
    insta::assert_snapshot!(help("linerate"));
}

#[test]
fn help_under_the_iperf3_name_hides_what_that_name_switches_off() {
    let text = help("iperf3");
    assert!(text.contains("iperf3 -c HOST [OPTIONS]"), "{text}");
    assert!(!text.contains("linerate") && !text.contains("--explain"), "{text}");
}

#[test]
fn help_and_version_are_no_failures() {
    for line in ["linerate -h", "linerate --help", "linerate -c host -u --help"] {
        let stop = parse_line(line).expect_err(line);
        assert!(matches!(&stop, Stop::Help(text) if text.contains("Usage: linerate -s")), "{line}");
        assert_eq!(stop.exit_code() as u8, 0);
    }
    let own = env!("CARGO_PKG_VERSION");
    for (line, version) in [
        ("linerate -v", format!("linerate {own} (equals iperf 3.21)")),
        ("linerate -s --version", format!("linerate {own} (equals iperf 3.21)")),
        // Scripts look for the second word of the first line.
        ("/usr/bin/iperf3 --version", format!("iperf 3.21 (linerate {own})")),
    ] {
        let stop = parse_line(line).expect_err(line);
        assert_eq!(stop.exit_code() as u8, 0);
        let Stop::Version(text) = stop else { panic!("{line}: {stop:?}") };
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[..2], [version.as_str(), system_info().as_str()], "{line}");
        assert!(lines[2].starts_with("Optional features available: "), "{line}");
        assert_eq!(lines.len(), 3, "{line}");
    }
}

#[test]
fn the_table_of_options_is_sound() {
    args::command("linerate").debug_assert();
}

#[test]
fn every_option_belongs_to_a_role() {
    let headings = [Some(args::COMMON), Some(args::SERVER), Some(args::CLIENT)];
    for arg in args::command("linerate").get_arguments() {
        assert!(headings.contains(&arg.get_help_heading()), "{arg}");
    }
}
