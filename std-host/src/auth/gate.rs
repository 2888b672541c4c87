//! The server's side of a login: opens tokens, checks them, and answers every failure alike.
//!
//! Decryption keeps a processor busy and takes a time that must tell nothing. So it runs on threads
//! that serve no connection, few at once, and a refusal leaves at a whole number of seconds after the
//! parameters arrived, whichever check failed and however long it took. A login that is granted is
//! answered at once: it tells its client nothing that this does not know.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use linerate_core::protocol::code::error_number;
use linerate_core::protocol::error_text;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};

use super::keys::PrivateKey;
use super::refusal::{Failure, Refusal};
use super::token::Claim;
use super::unix_seconds;
use super::users::Users;
use crate::config::{LoginConfig, Padding};
use crate::error::{Error, words};

/// Lets those in who have a password.
#[derive(Debug)]
pub(crate) struct Gate {
    checks: Arc<Checks>,
    room: Arc<Semaphore>,
}

/// Somebody who logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    /// The user name.
    pub user: String,
    /// How far the client's clock lies behind this one; negative if ahead.
    pub behind_secs: i64,
}

/// What a login is held against.
#[derive(Debug)]
struct Checks {
    key: PrivateKey,
    users: PathBuf,
    most_skew: Duration,
    padding: Padding,
}

impl Gate {
    /// Reads the key, and looks whether the users file can be read. The file is read again at each
    /// login, so that users come and go without a restart.
    ///
    /// # Errors
    /// [`Error::Usage`] that names the option and the file.
    pub(crate) fn open(config: &LoginConfig) -> Result<Self, Error> {
        let LoginConfig { private_key, users, time_skew, padding } = config;
        let key = PrivateKey::read(private_key).map_err(|problem| {
            let path = private_key.display();
            Error::Usage(format!("--rsa-private-key-path {path}: {problem}"))
        })?;
        Users::read(users).map_err(|error| {
            let text = error_text::text(error_number::USERS_FILE).unwrap_or_default();
            let (path, words) = (users.display(), words(&error));
            Error::Usage(format!("--authorized-users-path {path}: {text}: {words}"))
        })?;
        let (users, most_skew, padding) = (users.clone(), *time_skew, *padding);
        let checks = Arc::new(Checks { key, users, most_skew, padding });
        Ok(Self { checks, room: Arc::new(Semaphore::new(CHECKS_AT_ONCE)) })
    }

    /// Checks the token that came with a client's parameters. Must be called as soon as they are
    /// here: the time of the answer counts from the call.
    ///
    /// # Errors
    /// [`Refusal`] for the log, not before the time at which every refusal leaves.
    pub(crate) async fn admit(
        &self,
        token: Option<String>,
        peer: IpAddr,
    ) -> Result<Guest, Refusal> {
        let (arrived, now) = (Instant::now(), SystemTime::now());
        let checked = self.check(token, now).await;
        if checked.is_err() {
            let steps = arrived.elapsed().as_secs() / ANSWER_STEP.as_secs() + 1;
            let steps = u32::try_from(steps).unwrap_or(u32::MAX);
            tokio::time::sleep_until(arrived + ANSWER_STEP * steps).await;
        }
        checked.map_err(|(user, failure)| Refusal { peer: peer.to_canonical(), user, failure })
    }

    async fn check(
        &self,
        token: Option<String>,
        now: SystemTime,
    ) -> Result<Guest, (Option<String>, Failure)> {
        let (room, checks) = (self.room.clone(), self.checks.clone());
        let checking = async move {
            let room = room.acquire_owned().await.ok()?;
            let checking = spawn_blocking(move || {
                // A thread that waits for the file of a client that has gone has it still.
                let _room = room;
                checks.check(token.as_deref(), unix_seconds(now))
            });
            checking.await.ok()
        };
        let failed = |failure| Err((None, failure));
        match timeout(MOST_TIME, checking).await {
            Ok(checked) => checked.unwrap_or(failed(Failure::NotChecked)),
            Err(_) => failed(Failure::NotInTime { most_secs: MOST_TIME.as_secs() }),
        }
    }
}

impl Checks {
    fn check(&self, token: Option<&str>, now: i64) -> Result<Guest, (Option<String>, Failure)> {
        let token = token.ok_or((None, Failure::NoToken))?;
        let claim =
            Claim::open(token, &self.key, self.padding).map_err(|failure| (None, failure))?;
        let user = String::from_utf8_lossy(&claim.user).into_owned();
        let behind_secs = now.saturating_sub(claim.time);
        match self.check_claim(&claim, behind_secs) {
            Ok(()) => Ok(Guest { user, behind_secs }),
            Err(failure) => Err((Some(user), failure)),
        }
    }

    fn check_claim(&self, claim: &Claim, behind_secs: i64) -> Result<(), Failure> {
        let most_secs = self.most_skew.as_secs();
        if behind_secs.unsigned_abs() > most_secs {
            return Err(Failure::Skew { behind_secs, most_secs });
        }
        let users = Users::read(&self.users);
        let users = users.map_err(|error| Failure::UsersFile(words(&error)))?;
        users.check(&claim.user, &claim.password)
    }
}

/// Every refusal leaves at a multiple of this after the parameters arrived. Far longer than a check
/// takes, and long enough to make guessing slow.
const ANSWER_STEP: Duration = Duration::from_secs(1);
/// No system takes so long for a file that it still gives.
const MOST_TIME: Duration = Duration::from_secs(20);
/// Logins that are checked at once, so that a crowd of them leaves processors to running tests.
const CHECKS_AT_ONCE: usize = 2;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::keys::PublicKey;
    use super::super::samples::{PUBLIC, not_there, recorded};
    use super::*;

    const TIME: i64 = 1_700_000_000;

    fn config(padding: Padding, skew_secs: u64) -> LoginConfig {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/recorded");
        LoginConfig {
            private_key: root.join("auth-private.pem"),
            users: root.join("auth-users.csv"),
            time_skew: Duration::from_secs(skew_secs),
            padding,
        }
    }

    fn checks(skew_secs: u64) -> Arc<Checks> {
        Gate::open(&config(Padding::Oaep, skew_secs)).expect("recorded files").checks
    }

    fn token(user: &str, password: &str) -> String {
        let claim = Claim { user: user.into(), password: password.into(), time: TIME };
        claim.seal(&PublicKey::from_pem(PUBLIC).expect("recorded"), Padding::Oaep).expect("short")
    }

    #[test]
    fn clocks_may_be_apart_by_the_threshold_either_way() {
        let token = recorded("token_oaep_sha1");
        for (threshold, behind, is_in) in [
            (10, 0, true),
            (10, 5, true),
            (10, -5, true),
            (10, 10, true),
            (10, -10, true),
            (10, 11, false),
            (10, -11, false),
            (10, 15, false),
            (20, 15, true),
            (20, -15, true),
            (20, 21, false),
            (20, 3600, false),
            (20, -3600, false),
            (20, i64::MAX - TIME, false),
            (20, i64::MIN, false),
        ] {
            let now = TIME.saturating_add(behind);
            let checked = checks(threshold).check(Some(&token), now);
            assert_eq!(checked.is_ok(), is_in, "{threshold} {behind}");
            match checked {
                Ok(guest) => assert_eq!(guest, Guest { user: "mario".into(), behind_secs: behind }),
                Err((user, failure)) => {
                    assert_eq!(user.as_deref(), Some("mario"));
                    assert!(
                        matches!(failure, Failure::Skew { most_secs, .. } if most_secs == threshold)
                    );
                }
            }
        }
    }

    #[test]
    fn each_failure_is_told_apart_for_the_log() {
        let mario = || Some("mario".to_owned());
        let rows = [
            (None, None, Failure::NoToken),
            (Some("no base64".to_owned()), None, Failure::NotBase64),
            (Some(recorded("token_pkcs1_v15")), None, Failure::NotForThisKey),
            (Some(token("mario", "verdi")), mario(), Failure::WrongPassword),
            (Some(token("luigi", "rossi")), Some("luigi".into()), Failure::UnknownUser),
        ];
        for (token, user, failure) in rows {
            let checked = checks(10).check(token.as_deref(), TIME);
            assert_eq!(checked, Err((user, failure)), "{token:?}");
        }
        let mut gone = config(Padding::Oaep, 10);
        let key = PrivateKey::read(&gone.private_key).expect("recorded");
        gone.users = "no/such/file".into();
        let (users, most_skew) = (gone.users, gone.time_skew);
        let gone = Checks { key, users, most_skew, padding: Padding::Oaep };
        let checked = gone.check(Some(&token("mario", "rossi")), TIME);
        assert!(matches!(checked, Err((_, Failure::UsersFile(_)))), "{checked:?}");
    }

    #[test]
    fn files_that_cannot_be_used_stop_the_start() {
        let mut without_key = config(Padding::Oaep, 10);
        without_key.private_key = "no/key.pem".into();
        let mut without_users = config(Padding::Oaep, 10);
        without_users.users = "no/users.csv".into();
        let rows = [
            (without_key, "--rsa-private-key-path no/key.pem"),
            (
                without_users,
                "--authorized-users-path no/users.csv: cannot access authorized users file",
            ),
        ];
        for (config, begin) in rows {
            let message = Gate::open(&config).expect_err(begin).to_string();
            assert_eq!(message, format!("{begin}: {}", not_there()));
        }
    }

    /// Paused time goes on by itself when nothing else can, so the answers' times are exact.
    #[tokio::test(start_paused = true)]
    async fn every_refusal_leaves_after_the_same_time() {
        let gate = Gate::open(&config(Padding::Oaep, 10)).expect("recorded files");
        let tokens = [
            None,
            Some("no base64".to_owned()),
            Some(recorded("token_oaep_sha1")),
            Some(token("luigi", "x")),
        ];
        for token in tokens {
            let arrived = Instant::now();
            let refused = gate.admit(token, IpAddr::from([192, 0, 2, 7])).await;
            assert!(refused.is_err());
            assert_eq!(arrived.elapsed(), ANSWER_STEP, "{refused:?}");
        }
    }

    /// As when the system does not give the users file to those who are being checked.
    #[tokio::test(start_paused = true)]
    async fn login_that_cannot_be_checked_is_refused_in_time() {
        let gate = Gate::open(&config(Padding::Oaep, 10)).expect("recorded files");
        let held = u32::try_from(CHECKS_AT_ONCE).expect("few");
        let _held = gate.room.acquire_many(held).await.expect("never closed");
        let refused = gate.admit(Some(token("mario", "rossi")), [192, 0, 2, 7].into()).await;
        let failure = refused.expect_err("nobody looked").failure;
        assert_eq!(failure, Failure::NotInTime { most_secs: 20 });
    }
}
