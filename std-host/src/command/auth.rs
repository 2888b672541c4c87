//! Makes keys and users for a server's logins.

use std::path::Path;

use linerate::auth::{KeyFiles, add_user, check_name, make_keys, user_line};
use linerate::cli::AuthConfig;
use linerate::error::{Error, ExitCode};
use linerate::report::error_line;
use linerate_core::test::End;

use super::{console, password};

/// Does what was asked for and says what became of it.
pub(crate) fn auth(config: &AuthConfig) -> ExitCode {
    let made = match config {
        AuthConfig::Keys { bits, prefix } => keys(*bits, prefix),
        AuthConfig::User { name, file } => user(name, file.as_deref()),
    };
    match made {
        Ok(text) => {
            console::print(&text);
            ExitCode::Success
        }
        Err(error) => {
            console::complain(&error_line("linerate", &error, End::Client));
            error.exit_code()
        }
    }
}

fn user(name: &str, file: Option<&Path>) -> Result<String, Error> {
    check_name(name)?;
    let password = password::read_new()?;
    let Some(file) = file else { return user_line(name, &password) };
    add_user(file, name, &password)?;
    Ok(format!("user {name} is in {}\n", file.display()))
}

fn keys(bits: usize, prefix: &str) -> Result<String, Error> {
    let files = KeyFiles::new(prefix);
    make_keys(bits, &files)?;
    let (private, public) = (files.private.display(), files.public.display());
    Ok(format!(
        "server: --rsa-private-key-path {private} (keep it secret)\n\
         clients: --rsa-public-key-path {public}\n"
    ))
}
