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

#[cfg(test)]
mod samples;

pub(crate) use client::Login;
pub(crate) use gate::Gate;
pub use gate::Guest;
pub use make::{KeyFiles, add_user, make_keys, user_line};
pub use refusal::{Failure, Refusal};
