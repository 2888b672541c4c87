//! What lies between client and server: the loopback, or a virtual cable that the bench makes and
//! takes down.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::plan::LinkKind;

/// A network that is up until it is dropped.
#[derive(Debug)]
pub(super) enum Network {
    Loopback,
    Veth(Cable),
}

impl Network {
    pub(super) fn make(kind: LinkKind) -> Result<Self, String> {
        match kind {
            LinkKind::Loopback => Ok(Self::Loopback),
            LinkKind::Veth => Cable::make().map(Self::Veth),
        }
    }

    /// Where clients find the server.
    pub(super) fn server_address(&self) -> &'static str {
        match self {
            Self::Loopback => "127.0.0.1",
            Self::Veth(_) => FAR_ADDRESS,
        }
    }

    /// What a client's packets leave through.
    pub(super) fn device(&self) -> &'static str {
        match self {
            Self::Loopback => "lo",
            Self::Veth(_) => DEVICE,
        }
    }

    /// A program at the client's end. It has the process id of what is started.
    pub(super) fn client(&self, program: &Path) -> Command {
        match self {
            Self::Loopback => Command::new(program),
            Self::Veth(cable) => cable.command(NEAR, program),
        }
    }

    /// A program at the server's end.
    pub(super) fn server(&self, program: &Path) -> Command {
        match self {
            Self::Loopback => Command::new(program),
            Self::Veth(cable) => cable.command(FAR, program),
        }
    }

    /// Takes the calling thread to the client's end, for good.
    #[cfg(target_os = "linux")]
    pub(super) fn enter(&self) -> std::io::Result<()> {
        if let Self::Veth(cable) = self {
            let file = fs::File::open(Path::new(FOLDER).join(cable.name(NEAR)))?;
            nix::sched::setns(file, nix::sched::CloneFlags::CLONE_NEWNET)?;
        }
        Ok(())
    }
}

/// Two namespaces with a virtual cable between them, which carries what the kernel sends as it is.
#[derive(Debug)]
pub(super) struct Cable {
    process: u32,
}

impl Cable {
    /// Makes it, after what a bench that was killed has left.
    pub(super) fn make() -> Result<Self, String> {
        if crate::workspace::output_of("id", &["-u"]).trim() != "0" {
            return Err("a veth pair needs root".into());
        }
        delete_those_left_behind();
        // From here on a drop takes down what there is of it.
        let cable = Self { process: std::process::id() };
        let (near, far) = (cable.name(NEAR), cable.name(FAR));
        ip(&format!("netns add {near}"))?;
        ip(&format!("netns add {far}"))?;
        ip(&format!(
            "-n {near} link add {DEVICE} mtu 1500 type veth peer name {DEVICE} mtu 1500 netns {far}"
        ))?;
        for (name, address) in [(&near, NEAR_ADDRESS), (&far, FAR_ADDRESS)] {
            ip(&format!("-n {name} address add {address}/24 dev {DEVICE}"))?;
            ip(&format!("-n {name} link set lo up"))?;
            ip(&format!("-n {name} link set {DEVICE} up"))?;
        }
        Ok(cable)
    }

    /// Pulls the far plug, or puts it in again.
    pub(super) fn plug(&self, is_in: bool) -> Result<(), String> {
        let state = if is_in { "up" } else { "down" };
        ip(&format!("-n {} link set {DEVICE} {state}", self.name(FAR)))
    }

    fn name(&self, end: &str) -> String {
        format!("{PREFIX}{}{MARK}{end}", self.process)
    }

    fn command(&self, end: &str, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name(end)]).arg(program);
        command
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for end in [NEAR, FAR] {
            if let Err(why) = ip(&format!("netns delete {}", self.name(end))) {
                eprintln!("{why}");
            }
        }
    }
}

fn ip(words: &str) -> Result<(), String> {
    let output = Command::new("ip").args(words.split_whitespace()).output();
    let output = output.map_err(|e| format!("ip: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {words}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

fn delete_those_left_behind() {
    let entries = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    for name in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once(MARK));
        let Some((id, _)) = process.filter(|(id, _)| id.parse::<u32>().is_ok()) else { continue };
        if !Path::new("/proc").join(id).exists() {
            // Somebody else may have just done the same.
            let _ = ip(&format!("netns delete {name}"));
        }
    }
}

/// What the tests call theirs, which clean up by the process id in it as well.
const PREFIX: &str = "linerate-";
const MARK: &str = "-bench-";
const NEAR: &str = "near";
const FAR: &str = "far";
const DEVICE: &str = "veth0";
const NEAR_ADDRESS: &str = "10.78.0.1";
const FAR_ADDRESS: &str = "10.78.0.2";
/// Where the `ip` command keeps them.
const FOLDER: &str = "/run/netns";
