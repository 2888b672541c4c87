//! One case: a client's command line, and what it asks for. The line is what is run and what a
//! failure shows; the fields are read from it, so that the two cannot differ.

/// What a client is asked to do.
#[derive(Debug, Clone)]
pub struct Case {
    /// The options as typed, without host, port and output format.
    pub line: &'static str,
    /// UDP, else TCP.
    pub udp: bool,
    /// Who sends.
    pub direction: Direction,
    /// Streams each way.
    pub streams: u64,
    /// What ends the test.
    pub end: End,
    /// Seconds left out at the start.
    pub omit: u64,
    /// Bytes of a block or datagram, where the line says so.
    pub len: Option<u64>,
    /// Bits per second of each stream, where the line limits it.
    pub rate: Option<u64>,
    /// Whether the server's output comes back to the client.
    pub server_output: bool,
}

/// Who sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The client.
    Forward,
    /// The server (`-R`).
    Reverse,
    /// Both at once (`--bidir`).
    Both,
}

/// What ends a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// After this many seconds (`-t`).
    Seconds(u64),
    /// After this many bytes over all streams (`-n`).
    Bytes(u64),
    /// After this many blocks or datagrams over all streams (`-k`).
    Blocks(u64),
}

impl Case {
    /// The case that a command line is.
    ///
    /// # Panics
    ///
    /// When the line has an option that no check knows.
    pub fn new(line: &'static str) -> Self {
        let mut case = Self {
            line,
            udp: false,
            direction: Direction::Forward,
            streams: 1,
            end: End::Seconds(10),
            omit: 0,
            len: None,
            rate: None,
            server_output: false,
        };
        let mut words = line.split_whitespace();
        while let Some(option) = words.next() {
            let mut value = || words.next().unwrap_or_else(|| panic!("{option} needs a value"));
            match option {
                "-u" => case.udp = true,
                "-R" => case.direction = Direction::Reverse,
                "--bidir" => case.direction = Direction::Both,
                "--get-server-output" => case.server_output = true,
                "-P" => case.streams = number(value(), 1),
                "-t" => case.end = End::Seconds(number(value(), 1)),
                "-n" => case.end = End::Bytes(number(value(), 1024)),
                "-k" => case.end = End::Blocks(number(value(), 1024)),
                "-O" => case.omit = number(value(), 1),
                "-l" => case.len = Some(number(value(), 1024)),
                "-b" => case.rate = Some(number(value(), 1000)),
                "-w" => drop(value()),
                "-6" | "-N" | "-Z" | "--skip-rx-copy" | "--gsro" => {}
                other => panic!("no check knows {other}"),
            }
        }
        case
    }

    /// The address to run it against.
    pub fn host(&self) -> &'static str {
        if self.line.split_whitespace().any(|word| word == "-6") { "::1" } else { "127.0.0.1" }
    }

    /// The client's options, with the JSON document asked for.
    pub fn options(&self) -> Vec<&'static str> {
        self.line.split_whitespace().chain(["-J"]).collect()
    }

    /// The ways that data goes in this case.
    pub fn ways(&self) -> &'static [Way] {
        match self.direction {
            Direction::Forward => &[Way::ToServer],
            Direction::Reverse => &[Way::ToClient],
            Direction::Both => &[Way::ToServer, Way::ToClient],
        }
    }
}

/// The way that data goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The client sends.
    ToServer,
    /// The server sends.
    ToClient,
}

/// A number with the K and M that both tools take, in steps of 1024 for sizes and 1000 for rates.
fn number(text: &str, step: u64) -> u64 {
    let (digits, factor) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], step),
        Some(b'M') => (&text[..text.len() - 1], step * step),
        _ => (text, 1),
    };
    digits.parse::<u64>().unwrap_or_else(|_| panic!("{text} is no number")) * factor
}
