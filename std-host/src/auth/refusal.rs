//! Who was refused and why: for the server's log alone. A client is told only that it was refused,
//! whatever the reason, so that nobody can try out users, keys or padding.

use std::fmt;
use std::net::IpAddr;

/// A login that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Where it came from.
    pub peer: IpAddr,
    /// The user name in its token, if that could be read.
    pub user: Option<String>,
    /// The check that failed.
    pub failure: Failure,
}

/// The check of a login that failed. Later checks were not reached.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The client sent no token.
    NoToken,
    /// The token is no base64.
    NotBase64,
    /// The token cannot be decrypted.
    NotForThisKey,
    /// What was decrypted does not hold user, password and time.
    NotReadable,
    /// The client's clock and this one are too far apart.
    Skew {
        /// How far the client's time lies before this server's; negative if after.
        behind_secs: i64,
        /// How far it may.
        most_secs: u64,
    },
    /// The users file cannot be read; in the system's words.
    UsersFile(String),
    /// No line of the users file is about this user.
    UnknownUser,
    /// The user is known by another password.
    WrongPassword,
    /// The check took too long.
    NotInTime {
        /// How long it may take.
        most_secs: u64,
    },
    /// The check could not be made, because the server is ending.
    NotChecked,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.peer)?;
        if let Some(user) = &self.user {
            // Anybody can put anything into a token: nothing of it may reach a terminal raw.
            write!(f, ", user \"{}\"", user.escape_debug())?;
        }
        write!(f, ": {}", self.failure)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoToken => f.write_str("the client sent no credentials"),
            Self::NotBase64 => f.write_str("the token is no base64"),
            Self::NotForThisKey => {
                f.write_str("the token was made for another key or with another padding")
            }
            Self::NotReadable => {
                f.write_str("the token does not hold user, password and time, or was made for another key or with another padding")
            }
            Self::Skew { behind_secs, most_secs } => {
                let direction = if *behind_secs < 0 { "ahead" } else { "behind" };
                let apart = behind_secs.unsigned_abs();
                write!(
                    f,
                    "the client's clock is {apart} s {direction}, --time-skew-threshold is {most_secs} s"
                )
            }
            Self::UsersFile(words) => write!(f, "the users file cannot be read: {words}"),
            Self::UnknownUser => f.write_str("no such user"),
            Self::WrongPassword => f.write_str("wrong password"),
            Self::NotInTime { most_secs } => write!(
                f,
                "it was not checked within {most_secs} s: the users file is not given, or too many log in"
            ),
            Self::NotChecked => f.write_str("the server is ending"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_names_peer_user_and_check() {
        let skew = Failure::Skew { behind_secs: -3600, most_secs: 10 };
        let rows = [
            (None, Failure::NoToken, "192.0.2.7: the client sent no credentials"),
            (Some("mario"), Failure::WrongPassword, "192.0.2.7, user \"mario\": wrong password"),
            (
                Some("\u{1b}[2Jx\n"),
                Failure::UnknownUser,
                "192.0.2.7, user \"\\u{1b}[2Jx\\n\": no such user",
            ),
            (
                Some("mario"),
                skew,
                "192.0.2.7, user \"mario\": the client's clock is 3600 s ahead, --time-skew-threshold is 10 s",
            ),
        ];
        for (user, failure, text) in rows {
            let peer = IpAddr::from([192, 0, 2, 7]);
            let refusal = Refusal { peer, user: user.map(str::to_owned), failure };
            assert_eq!(refusal.to_string(), text);
        }
    }
}
