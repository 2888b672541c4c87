//! Every recorded control connection of real iperf3, replayed against this engine in both roles: fed
//! what one end said, it must say what the other end said, in any chunking. See `recorded/README.md`
//! for how the records were made.

mod record;
mod replay;

use linerate_core::protocol::code::{ControlCode, ServerError};
use linerate_core::protocol::cookie::Cookie;
use linerate_core::protocol::extension::Offer;
use linerate_core::protocol::parameters::ClientText;
use linerate_core::session::{
    Admission, ClientConfig, ClientSession, Command, Deadlines, Ending, Phase, Refusal,
    ServerConfig, ServerSession, SessionError,
};
use linerate_core::test::End;
use linerate_core::time::{Duration, Instant};
use linerate_tests::virtual_time::STREAMS;
use record::{Record, Said, Step};
use replay::{CHUNKS, Player, Replay};
use serde_json::Value;

#[test]
fn a_server_says_what_a_recorded_one_said() {
    let mut replayed = 0;
    for record in record::all() {
        // A client that comes while another is served never gets a session.
        if record.said(End::Server).next() == Some(&BUSY) {
            continue;
        }
        for chunk in CHUNKS {
            serve(&record, chunk);
        }
        replayed += 1;
    }
    assert_eq!(replayed, 24, "23 files, one with two served connections");
}

#[test]
fn a_client_says_what_a_recorded_one_said() {
    let mut replayed = 0;
    for record in record::all() {
        for chunk in CHUNKS {
            for offer in [None, Some(Offer::OWN)] {
                request(&record, chunk, offer);
            }
        }
        replayed += 1;
    }
    assert_eq!(replayed, 25, "23 files, two with two connections");
}

const BUSY: Said = Said::Code(ControlCode::AccessDenied.byte());
/// All texts of a client.
const TEXT_BYTES: usize = 1024;

type Server = ServerSession<STREAMS, TEXT_BYTES>;
type Client<'a> = ClientSession<'a, STREAMS>;

fn serve(record: &Record, chunk: usize) {
    let config = ServerConfig {
        interval: Some(Duration::from_secs(1)),
        // Stock clients must never hear of it.
        extension: Some(Offer::OWN),
        ..ServerConfig::default()
    };
    let mut replay = Replay::new(Server::new(record.steps[0].0, config), chunk);
    replay.admission = admission(record);
    replay.output = recorded_output(record);
    if has_congestion(record, End::Server) {
        replay.session.handle_congestion("cubic");
    }
    for (at, step) in &record.steps {
        replay.advance(*at);
        match step {
            Step::Said(End::Client, Said::Cookie(_)) => {}
            Step::Said(End::Client, said) => replay.hear(&said.bytes()),
            Step::Said(End::Server, said) => {
                follow(&mut replay, said, ControlCode::ServerTerminate)
            }
            Step::StreamOpened => replay.input(|session, now| session.accept(now)),
            Step::StreamClosed(End::Client, place) => replay.close_stream(*place),
            Step::Closed(End::Client) => {
                replay.input(|session, now| session.handle_control_closed(now));
            }
            Step::StreamClosed(..) | Step::Closed(_) => {}
        }
    }
    replay.finish();
    let (said, ending) = server_case(record);
    compare(record, End::Server, &said, &replay.said);
    assert_eq!(replay.ending, Some(ending), "{}", record.name);
}

fn request(record: &Record, chunk: usize, offer: Option<Offer>) {
    let asked = asked(record);
    let text = asked.text();
    let config = ClientConfig {
        settings: *asked.settings(),
        packet_rate: None,
        text: ClientText {
            title: text.title(),
            extra_data: text.extra_data(),
            congestion: text.congestion(),
            auth_token: text.auth_token(),
        },
        client_version: linerate_core::IPERF3_EQUIVALENT,
        interval: Some(Duration::from_secs(1)),
        offer,
        deadlines: Deadlines::default(),
    };
    let Some(Said::Cookie(cookie)) = record.said(End::Client).next() else {
        panic!("{}: no cookie", record.name);
    };
    let cookie = Cookie::from_bytes(cookie[..].try_into().expect("cookies have one length"));
    let client = Client::new(record.steps[0].0, config, cookie).expect("few streams");
    let mut replay = Replay::new(client, chunk);
    if has_congestion(record, End::Client) {
        replay.session.handle_congestion("cubic");
    }
    for (at, step) in &record.steps {
        replay.advance(*at);
        match step {
            Step::Said(End::Server, said) => replay.hear(&said.bytes()),
            Step::Said(End::Client, said) => {
                follow(&mut replay, said, ControlCode::ClientTerminate)
            }
            Step::StreamClosed(End::Server, place) => replay.close_stream(*place),
            Step::Closed(End::Server) => {
                replay.input(|session, now| session.handle_control_closed(now));
            }
            Step::StreamClosed(..) | Step::Closed(_) | Step::StreamOpened => {}
        }
    }
    replay.finish();
    let (said, ending) = client_case(record);
    compare(record, End::Client, &said, &replay.said);
    assert_eq!(replay.ending, Some(ending), "{}", record.name);
}

/// A recorded end was interrupted: so is this one.
fn follow<P: Player>(replay: &mut Replay<P>, said: &Said, interrupted: ControlCode) {
    if *said == Said::Code(interrupted.byte()) {
        replay.input(|session, _| session.handle_command(Command::Interrupt));
    }
}

/// What this engine's server is to say, and how it ends.
fn server_case(record: &Record) -> (Vec<Said>, Ending) {
    let mut said: Vec<Said> = record.said(End::Server).cloned().collect();
    let refused = |number| Ending::Failed(SessionError::Denied(ServerError::new(number)));
    let ending = match record.name.as_str() {
        "control-auth-fail-3.20 tcp0" => refused(142),
        // The recorded server hangs up without a reason; this one gives the older ones' reason.
        "control-auth-fail-master tcp0" => {
            said.push(Said::Code(ControlCode::ServerError.byte()));
            said.push(Said::Error(ServerError::new(142).to_bytes().to_vec()));
            refused(142)
        }
        "control-server-error-limit tcp0" => refused(27),
        "control-server-max-duration tcp0" => refused(37),
        "control-server-terminate tcp0" => Ending::Failed(SessionError::Interrupted),
        // The recorded server answers an interrupted client with error 119, to no effect.
        "control-client-terminate tcp0" | "control-stale-error-after-done tcp0" => {
            said.truncate(said.len() - 2);
            Ending::Failed(SessionError::Terminated(End::Client))
        }
        // An error of the test before, which this one knows nothing of.
        "control-stale-error-after-done tcp2" => {
            said.truncate(said.len() - 2);
            Ending::Complete
        }
        _ => Ending::Complete,
    };
    (said, ending)
}

/// What this engine's client is to say, and how it ends.
fn client_case(record: &Record) -> (Vec<Said>, Ending) {
    let mut said: Vec<Said> = record.said(End::Client).cloned().collect();
    let refused = |number| {
        let refusal = Refusal::Error(ServerError::new(number));
        Ending::Failed(SessionError::Refused(refusal))
    };
    let ending = match record.name.as_str() {
        "control-auth-fail-3.20 tcp0" => refused(142),
        // The recorded client says goodbye to a server that has hung up.
        "control-auth-fail-master tcp0" => {
            said.pop();
            Ending::Failed(SessionError::ControlClosed(Phase::Preparing))
        }
        "control-server-error-limit tcp0" => refused(27),
        "control-server-max-duration tcp0" => refused(37),
        "control-busy tcp2" => Ending::Failed(SessionError::Refused(Refusal::Busy)),
        "control-server-terminate tcp0" => Ending::Failed(SessionError::Terminated(End::Server)),
        "control-client-terminate tcp0" | "control-stale-error-after-done tcp0" => {
            Ending::Failed(SessionError::Interrupted)
        }
        _ => Ending::Complete,
    };
    (said, ending)
}

/// Holds what was said against what was to be said: codes and numbers equal, documents with the same
/// keys.
fn compare(record: &Record, end: End, expected: &[Said], mut said: &[u8]) {
    let name = &record.name;
    for (index, expected) in expected.iter().enumerate() {
        let what = format!("{name}, {end:?}, {index}: {expected:?} then {:?}", said.get(..20));
        let length = match expected {
            // The server's session begins after the cookie.
            Said::Code(_) => 1,
            Said::Cookie(_) => Cookie::LEN,
            Said::Error(_) => ServerError::LEN,
            Said::Document(..) => {
                let length = said.first_chunk().unwrap_or_else(|| panic!("{what}"));
                4 + u32::from_be_bytes(*length) as usize
            }
        };
        let (taken, rest) = said.split_at_checked(length).unwrap_or_else(|| panic!("{what}"));
        said = rest;
        match expected {
            Said::Document(_, recorded) => {
                let own: Value = serde_json::from_slice(&taken[4..]).expect("valid JSON");
                compare_keys(recorded, &own, record.is_old(end), &what);
            }
            _ => assert_eq!(taken, expected.bytes(), "{what}"),
        }
    }
    assert!(said.is_empty(), "{name}, {end:?} says more than the recorded end: {said:?}");
}

/// The same keys in the same order; old ends had fewer. The offer of the extension is ours alone.
fn compare_keys(recorded: &Value, own: &Value, is_old: bool, what: &str) {
    let (recorded_keys, mut own_keys) = (keys(recorded), keys(own));
    own_keys.retain(|key| key != "linerate");
    if is_old {
        own_keys.retain(|key| recorded_keys.contains(key));
    }
    assert_eq!(own_keys, recorded_keys, "{what}");
}

/// All keys of a document, those of the first stream after their array.
fn keys(document: &Value) -> Vec<String> {
    let mut all = Vec::new();
    for (key, value) in document.as_object().into_iter().flatten() {
        all.push(key.clone());
        for inner in value.as_array().into_iter().flatten() {
            all.extend(keys(inner).iter().map(|inner| format!("{key}.{inner}")));
        }
    }
    all
}

/// The recorded server's answer to the test.
fn admission(record: &Record) -> Admission {
    let accepts = Said::Code(ControlCode::CreateStreams.byte());
    if record.said(End::Server).any(|said| *said == accepts) {
        return Admission::Accept;
    }
    let number = record.said(End::Server).find_map(|said| match said {
        Said::Error(bytes) => bytes[..].try_into().ok().map(ServerError::from_bytes),
        _ => None,
    });
    Admission::Deny(number.unwrap_or(ServerError::new(142)))
}

/// The member of the recorded server's results that holds its output.
fn recorded_output(record: &Record) -> Option<String> {
    record.said(End::Server).find_map(|said| {
        let Said::Document(_, document) = said else { return None };
        let text = document.get("server_output_text")?;
        Some(format!("\"server_output_text\":{text}"))
    })
}

fn has_congestion(record: &Record, end: End) -> bool {
    record.said(end).any(|said| match said {
        Said::Document(_, document) => document.get("congestion_used").is_some(),
        _ => false,
    })
}

/// What the recorded client asked for, as this engine's server reads it; a default if it was refused
/// before it could ask.
fn asked(record: &Record) -> Server {
    let mut server = Server::new(Instant::ZERO, ServerConfig::default());
    if let Some(parameters) = record.parameters() {
        server.handle_control(Instant::ZERO, parameters);
        assert_eq!(server.phase(), Phase::Preparing, "{}", record.name);
    }
    server
}

impl Player for Server {
    fn accept(&mut self, now: Instant) {
        self.handle_stream_accepted(now).expect("it awaits streams");
    }

    fn prepare(&mut self, now: Instant, admission: Admission) {
        self.handle_prepared(now, admission);
    }

    fn announce_output(&mut self, now: Instant, bytes: Option<u32>) {
        self.handle_server_output(now, bytes);
    }
}

impl Player for Client<'_> {
    fn accept(&mut self, _: Instant) {}

    fn prepare(&mut self, _: Instant, _: Admission) {
        panic!("clients do not prepare");
    }

    fn announce_output(&mut self, _: Instant, _: Option<u32>) {
        panic!("clients have no output to send");
    }
}
