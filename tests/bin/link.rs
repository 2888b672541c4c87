//! A command across the impairment link: `cargo xtask link --latency 20ms -- linerate -c 10.77.0.2`.
//! The command runs at the near end; a server, or what is asked for, runs at the far end.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match command::Plan::parse(&args).and_then(|plan| plan.run()) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("the link needs the network namespaces of Linux");
    ExitCode::FAILURE
}

#[cfg(target_os = "linux")]
mod command {
    use std::ffi::OsString;
    use std::path::Path;
    use std::process::ExitCode;
    use std::time::{Duration, Instant};

    use linerate_tests::link::model::LinkModel;
    use linerate_tests::link::tap::{FAR, NEAR, TapLink, Wire};
    use linerate_tests::link::words;
    use linerate_tests::namespace::may_make_namespaces;
    use linerate_tests::process::Process;
    use linerate_tests::server::is_listening;
    use linerate_tests::tool::Tool;

    /// What was typed.
    pub(super) struct Plan {
        wire: Wire,
        far: String,
        near: Vec<String>,
    }

    impl Plan {
        pub(super) fn parse(args: &[String]) -> Result<Self, String> {
            let mut plan =
                Self { wire: Wire::default(), far: "linerate -s".into(), near: Vec::new() };
            let mut ways = [true, true];
            let mut words = args.iter();
            while let Some(option) = words.next() {
                match option.as_str() {
                    "--" => break,
                    "--there" => ways = [true, false],
                    "--back" => ways = [false, true],
                    _ => {
                        let value = words.next().ok_or_else(usage)?;
                        plan.set(option, value, ways)?;
                    }
                }
            }
            plan.near = words.cloned().collect();
            if plan.near.is_empty() { Err(usage()) } else { Ok(plan) }
        }

        fn set(&mut self, option: &str, value: &str, ways: [bool; 2]) -> Result<(), String> {
            let number = || value.parse().map_err(|_| format!("{option} takes a number"));
            match option {
                "--seed" => self.wire.seed = number()?,
                "--data-from" => self.wire.data_from_bytes = number()? as usize,
                "--far" => self.far = value.to_owned(),
                _ => {
                    let models: [&mut LinkModel; 2] = [&mut self.wire.there, &mut self.wire.back];
                    for (model, _) in models.into_iter().zip(ways).filter(|(_, applies)| *applies) {
                        words::set(model, option, value)?;
                    }
                }
            }
            Ok(())
        }

        /// Runs it to the end of the command, whose exit code is handed on.
        pub(super) fn run(&self) -> Result<ExitCode, String> {
            if !may_make_namespaces() {
                return Err("there can be no link".into());
            }
            let link = TapLink::start(&self.wire);
            let far = self.start_far(&link);
            eprintln!("near   {} {}", NEAR.v4, NEAR.v6);
            eprintln!("far    {} {}, which runs: {}", FAR.v4, FAR.v6, self.far);
            let mut command = link.near.command(Path::new(&self.near[0]));
            let status = command.args(&self.near[1..]).env("PATH", path()).status();
            let status = status.map_err(|e| format!("{}: {e}", self.near[0]))?;
            drop(far);
            eprintln!("{}", link.passed());
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
        }

        /// Starts what the far end runs, and lets a server get as far as to listen.
        fn start_far(&self, link: &TapLink) -> Process {
            let mut command = link.far.command("sh".as_ref());
            command.args(["-c", &format!("exec {}", self.far)]).env("PATH", path());
            let mut process = Process::start(&mut command);
            let deadline = Instant::now() + TIME_TO_LISTEN;
            while process.is_running()
                && Instant::now() < deadline
                && !is_listening(process.id(), USUAL_PORT)
            {
                std::thread::sleep(POLL);
            }
            process
        }
    }

    /// The usual one, with the linerate of this workspace before any other.
    fn path() -> OsString {
        let linerate = Tool::Linerate.command();
        let own = Path::new(linerate.get_program()).parent().map(Path::to_path_buf);
        let others = std::env::var_os("PATH").unwrap_or_default();
        let all = own.into_iter().chain(std::env::split_paths(&others));
        std::env::join_paths(all).unwrap_or(others)
    }

    fn usage() -> String {
        format!(
            "cargo xtask link [OPTION...] -- COMMAND...\n\n{}\n\
             --there, --back        what follows is for one way only: to the far end, or from it\n\
             --data-from BYTES      shorter frames take the latency and nothing else\n\
             --seed NUMBER          other luck\n\
             --far COMMAND          in place of `linerate -s` at {} and {}",
            words::OPTIONS,
            FAR.v4,
            FAR.v6
        )
    }

    const TIME_TO_LISTEN: Duration = Duration::from_secs(2);
    const POLL: Duration = Duration::from_millis(5);
    /// Of both tools.
    const USUAL_PORT: u16 = 5201;
}
