//! The firmware by hand: `firmware run IMAGE [ARGUMENT...]` boots an image and prints its log;
//! `firmware bench` and `firmware cost` measure servers beside bare loops. `cargo xtask firmware` builds
//! the images and runs this.

#[cfg(target_os = "linux")]
mod bench;
#[cfg(target_os = "linux")]
mod cost;
#[cfg(target_os = "linux")]
mod elf;
#[cfg(target_os = "linux")]
mod load;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod sizes;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["run", image, ref arguments @ ..] => {
            run::run(image, arguments);
            Ok(())
        }
        ["bench"] => {
            bench::bench(5);
            Ok(())
        }
        ["cost"] => cost::cost(false),
        ["cost", "--write"] => cost::cost(true),
        ["sizes"] => sizes::sizes(),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("firmware: {message}");
            std::process::ExitCode::FAILURE
        }
    }
}

#[cfg(target_os = "linux")]
const USAGE: &str = "usage: firmware run IMAGE [ARGUMENT...] | bench | cost [--write] | sizes";

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("the board is emulated on Linux only");
}
