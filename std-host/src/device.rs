//! Binding to a network device (`--bind-dev`, `HOST%DEVICE`). Whether this machine can is asked before
//! anything is opened: a test on another device than the one asked for would measure the wrong path.

use std::io;

use linerate_core::protocol::error_text;
use socket2::{Domain, Socket, Type};

use crate::error::{Error, words};
use crate::sys;

/// Whether sockets can be bound to `device`.
///
/// # Errors
/// iperf3's words for what is wrong, with the name of the device.
pub(crate) fn check(device: Option<&str>) -> Result<(), Error> {
    let Some(name) = device else { return Ok(()) };
    let bound = Socket::new(Domain::IPV4, Type::DGRAM, None)
        .or_else(|_| Socket::new(Domain::IPV6, Type::DGRAM, None))
        .and_then(|probe| sys::bind_to_device(&probe, name));
    match bound {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            let reason = words(&error);
            Err(Error::Usage(format!("--bind-dev {name}: {}: {reason}", iperf3(NO_BINDING))))
        }
        Err(error) => Err(Error::system(format!("--bind-dev {name}: {}", iperf3(BINDING)), &error)),
    }
}

fn iperf3(number: i32) -> &'static str {
    error_text::text(number).unwrap_or_default()
}

/// iperf3's number for a device that cannot be bound to.
const BINDING: i32 = 143;
/// iperf3's number for a system without such a binding.
const NO_BINDING: i32 = 146;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_not_there_is_named() {
        assert!(check(None).is_ok());
        let error = check(Some("nosuchdev0")).unwrap_err().to_string();
        assert!(error.starts_with("--bind-dev nosuchdev0: "), "{error}");
        #[cfg(target_os = "linux")]
        assert!(error.contains("Unable to bind-to-device"), "{error}");
    }
}
