//! RSA authentication as iperf3 has it since 3.2: the client sends its user name and password with
//! the time, encrypted with the server's public key, and the server looks them up in a file. What it
//! protects and what it does not is in `docs/authentication.md`.

mod client;
mod gate;
mod keys;
mod make;
mod pem;
mod refusal;
mod token;
mod users;

use std::time::{SystemTime, UNIX_EPOCH};

#[cfg(test)]
mod samples;

pub(crate) use client::Login;
pub(crate) use gate::Gate;
pub use gate::Guest;
pub use make::{KeyFiles, add_user, check_name, make_keys, user_line};
pub use refusal::{Failure, Refusal};

/// The time of a login: whole seconds since 1970, as iperf3 counts them.
fn unix_seconds(time: SystemTime) -> i64 {
    let seconds = match time.duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_secs().try_into().ok(),
        Err(before) => i64::try_from(before.duration().as_secs()).ok().map(|secs| -secs),
    };
    seconds.unwrap_or(i64::MAX)
}
