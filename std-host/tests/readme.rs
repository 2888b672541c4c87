//! Every command that the README shows is one that the command line takes.

use linerate::cli::parse;

#[test]
fn the_readmes_commands_can_be_typed() {
    let readme = include_str!("../../README.md");
    let spans = readme.split('`').skip(1).step_by(2);
    let blocks = readme.lines().filter_map(|line| line.strip_prefix("    "));
    let commands: Vec<&str> =
        spans.chain(blocks).filter(|text| text.starts_with("linerate -")).collect();
    assert!(commands.len() >= 10, "the README has its commands: {commands:?}");
    for command in commands {
        let parsed = parse(command.split_whitespace().map(Into::into));
        let is_help = command.ends_with("--help");
        assert_eq!(parsed.is_ok(), !is_help, "{command}: {parsed:?}");
    }
}
