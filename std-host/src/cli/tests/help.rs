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

#[test]
fn every_example_can_be_typed() {
    for (_, words) in examples::EXAMPLES {
        let line = format!("linerate {words}");
        assert!(parse_line(&line).is_ok(), "{line}: {:?}", parse_line(&line));
    }
}

#[test]
fn the_manual_names_every_option_and_exit_code() {
    let manual = generate::manual("linerate").expect("memory takes every write");
    // Roff writes dashes and apostrophes in its own way.
    let plain = [("\\-", "-"), ("\\fB", ""), ("\\fR", ""), ("\\*(Aq", "'")]
        .into_iter()
        .fold(manual, |text, (roff, plain)| text.replace(roff, plain));
    for arg in args::command("linerate").get_arguments().filter(|arg| !arg.is_hide_set()) {
        let long = arg.get_long().expect("every option has a long name");
        assert!(plain.contains(&format!("--{long}")), "--{long} is not in {plain}");
    }
    for code in ExitCode::ALL {
        assert!(plain.contains(code.meaning()), "{code:?}");
    }
}

#[test]
fn completions_know_every_option_in_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let stop = parse_line(&format!("linerate completions {shell}")).expect_err("a text");
        let Stop::Generated(script) = &stop else { panic!("{stop:?}") };
        for arg in args::command("linerate").get_arguments().filter(|arg| !arg.is_hide_set()) {
            let long = arg.get_long().expect("every option has a long name");
            assert!(script.contains(long), "{shell}: {long}");
        }
        // The command has -h, and no word for it.
        let help = "Print this message or the help of the given subcommand(s)";
        assert!(!script.contains(help) && !script.contains("subcmd__help"), "{shell}");
        assert_eq!(stop.exit_code() as u8, 0);
    }
}

#[test]
fn a_shell_that_is_not_known_gets_the_list() {
    let usage = |line: &str| parse_line(line).expect_err(line).to_string();
    let unknown = usage("linerate completions tcsh");
    let list = "must be one of bash, elvish, fish, powershell, zsh";
    assert_eq!(unknown, format!("linerate: parameter error - <SHELL> tcsh: {list}"));
    let missing = usage("linerate completions");
    assert_eq!(missing, "linerate: parameter error - <SHELL> is missing");
}

#[test]
fn the_readme_shows_the_examples_and_the_exit_codes() {
    let readme = include_str!("../../../../README.md");
    for (task, words) in examples::EXAMPLES.iter().filter(|(task, _)| !task.is_empty()) {
        let row = format!("| {task} | `linerate {words}` |");
        assert!(readme.contains(&row), "{row}");
    }
    for code in ExitCode::ALL {
        let row = format!("| {} | {} |", code as u8, code.meaning());
        assert!(readme.contains(&row), "{row}");
    }
}
