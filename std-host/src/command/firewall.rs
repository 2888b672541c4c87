//! Windows Firewall, which lets nobody in whom it was not told to, and does not say so to them.

use std::path::Path;

/// The command that lets clients come to this program over TCP and UDP, whatever its port.
pub(super) fn rule(name: &str, program: &Path) -> String {
    let program = program.display();
    format!(
        "netsh advfirewall firewall add rule name=\"{name}\" dir=in action=allow program=\"{program}\""
    )
}

/// What somebody may have to do before his server is reached, for those who ask for more detail.
pub(super) fn hint() -> Option<String> {
    let program = std::env::current_exe().ok().filter(|_| cfg!(windows))?;
    let rule = rule("linerate", &program);
    Some(format!(
        "where Windows Firewall keeps clients out, an administrator lets them in by: {rule}"
    ))
}
