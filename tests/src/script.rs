//! A peer that follows a list of steps over raw TCP, in either role: the honest exchange, any prefix
//! of it, and anything else after that. It is how the suites play peers that no honest program is.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// One thing a scripted peer does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Client: sends the cookie, which is this peer's own.
    Cookie,
    /// Sends these bytes on the control connection.
    Send(Vec<u8>),
    /// Waits for exactly this control code.
    Expect(u8),
    /// Reads this many bytes and does not look at them.
    Read(usize),
    /// Reads a length and that many bytes.
    ReadFrame,
    /// A data connection: opened with the cookie, or accepted with it.
    Stream,
    /// Sends some bytes on every data connection.
    Data,
    /// Says nothing for this long.
    Pause(Duration),
}

/// A frame: four bytes of length, most significant first, and the text.
pub fn frame(text: impl AsRef<[u8]>) -> Step {
    let text = text.as_ref();
    let length = u32::try_from(text.len()).expect("a script's frame is short");
    Step::Send([&length.to_be_bytes()[..], text].concat())
}

/// The exchange of an honest client of one TCP stream, up to its end.
pub fn honest_client() -> Vec<Step> {
    vec![
        Step::Cookie,
        Step::Expect(PARAM_EXCHANGE),
        frame(PARAMETERS),
        Step::Expect(CREATE_STREAMS),
        Step::Stream,
        Step::Expect(TEST_START),
        Step::Expect(TEST_RUNNING),
        Step::Data,
        Step::Send(vec![TEST_END]),
        Step::Expect(EXCHANGE_RESULTS),
        frame(RESULTS),
        Step::ReadFrame,
        Step::Expect(DISPLAY_RESULTS),
        Step::Send(vec![IPERF_DONE]),
    ]
}

/// The exchange of an honest server of one TCP stream, up to the moment at which the client has all
/// it needs.
pub fn honest_server() -> Vec<Step> {
    vec![
        Step::Read(COOKIE_LEN),
        Step::Send(vec![PARAM_EXCHANGE]),
        Step::ReadFrame,
        Step::Send(vec![CREATE_STREAMS]),
        Step::Stream,
        Step::Send(vec![TEST_START]),
        Step::Send(vec![TEST_RUNNING]),
        Step::Expect(TEST_END),
        Step::Send(vec![EXCHANGE_RESULTS]),
        Step::ReadFrame,
        frame(RESULTS),
    ]
}

/// What a server closes an honest exchange with.
pub fn honest_server_end() -> Vec<Step> {
    vec![Step::Send(vec![DISPLAY_RESULTS]), Step::Expect(IPERF_DONE)]
}

/// A refusal: the code, an iperf3 error number, and no system error.
pub fn server_error(number: i32) -> Step {
    Step::Send([&[0xfe][..], &number.to_be_bytes(), &[0; 4]].concat())
}

/// A peer in the middle of its script.
#[derive(Debug)]
pub struct Peer {
    control: TcpStream,
    cookie: Vec<u8>,
    streams: Vec<TcpStream>,
    end: End,
}

/// Where data connections come from.
#[derive(Debug)]
enum End {
    Client(SocketAddr),
    Server(TcpListener),
}

impl Peer {
    /// A client of the server at this address.
    ///
    /// # Errors
    ///
    /// When there is no connection.
    pub fn connect(server: SocketAddr) -> io::Result<Self> {
        Self::new(TcpStream::connect(server)?, End::Client(server))
    }

    /// A server for the next client of this listener. It waits until there is one; who knows that none
    /// will come ends the waiting by connecting.
    ///
    /// # Errors
    ///
    /// When there is no connection.
    pub fn accept(listener: TcpListener) -> io::Result<Self> {
        Self::new(listener.accept()?.0, End::Server(listener))
    }

    fn new(control: TcpStream, end: End) -> io::Result<Self> {
        control.set_read_timeout(Some(PATIENCE))?;
        control.set_nodelay(true)?;
        // Peers of one server at the same time must not share a cookie, and have different ports.
        let cookie = format!("{:a<36}\0", format!("port{}", control.local_addr()?.port()));
        Ok(Self { control, cookie: cookie.into_bytes(), streams: Vec::new(), end })
    }

    /// Does these steps in order.
    ///
    /// # Errors
    ///
    /// At the first step that cannot be done, because the other end closed, sent something else, or
    /// kept silent.
    pub fn follow(&mut self, steps: &[Step]) -> io::Result<()> {
        steps.iter().try_for_each(|step| self.one(step))
    }

    /// Waits until the other end has closed the control connection, whatever it says before that, and
    /// hands back what it said.
    ///
    /// # Errors
    ///
    /// When it does not close in time.
    pub fn until_closed(&mut self) -> io::Result<Vec<u8>> {
        let mut said = Vec::new();
        match self.control.read_to_end(&mut said) {
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                Err(e)
            }
            // A reset is a close too.
            _ => Ok(said),
        }
    }

    /// Breaks the control connection off with a reset, as a machine does that knows nothing of it.
    ///
    /// # Errors
    ///
    /// When the system does not let it.
    #[cfg(target_os = "linux")]
    pub fn reset(self) -> io::Result<()> {
        rustix::net::sockopt::set_socket_linger(&self.control, Some(Duration::ZERO))?;
        Ok(())
    }

    fn one(&mut self, step: &Step) -> io::Result<()> {
        match step {
            Step::Cookie => self.control.write_all(&self.cookie),
            Step::Send(bytes) => self.control.write_all(bytes),
            Step::Expect(code) => self.expect_code(*code),
            Step::Read(length) => self.control.read_exact(&mut vec![0; *length]),
            Step::ReadFrame => self.read_frame(),
            Step::Stream => self.add_stream(),
            Step::Data => {
                self.streams.iter_mut().try_for_each(|stream| stream.write_all(&[0; 4096]))
            }
            Step::Pause(time) => {
                // The silence of a peer is what is played here.
                std::thread::sleep(*time);
                Ok(())
            }
        }
    }

    fn expect_code(&mut self, code: u8) -> io::Result<()> {
        let mut found = [0];
        self.control.read_exact(&mut found)?;
        if found == [code] {
            return Ok(());
        }
        Err(io::Error::other(format!("expected control code {code}, got {}", found[0])))
    }

    fn read_frame(&mut self) -> io::Result<()> {
        let mut length = [0; 4];
        self.control.read_exact(&mut length)?;
        self.control.read_exact(&mut vec![0; u32::from_be_bytes(length) as usize])
    }

    /// What arrives on an accepted stream is read and thrown away, or its sender would stand still.
    fn add_stream(&mut self) -> io::Result<()> {
        let stream = match &self.end {
            End::Client(server) => {
                let mut stream = TcpStream::connect(server)?;
                stream.write_all(&self.cookie)?;
                stream
            }
            End::Server(listener) => {
                let stream = listener.accept()?.0;
                let mut reader = stream.try_clone()?;
                std::thread::spawn(move || io::copy(&mut reader, &mut io::sink()));
                stream
            }
        };
        self.streams.push(stream);
        Ok(())
    }
}

impl Drop for Peer {
    /// Closes the data connections even where a reader still holds one.
    fn drop(&mut self) {
        for stream in &self.streams {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

/// Bytes of a cookie, its NUL included.
const COOKIE_LEN: usize = 37;
const PARAMETERS: &str = r#"{"tcp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1,"len":4096,"bandwidth":1000000,"client_version":"3.12"}"#;
const RESULTS: &str = r#"{"cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":0,"sender_has_retransmits":0,"streams":[{"id":1,"bytes":4096,"retransmits":0,"jitter":0,"errors":0,"omitted_errors":0,"packets":0,"omitted_packets":0,"start_time":0,"end_time":1}]}"#;

/// The control codes, as iperf3's protocol numbers them.
const TEST_START: u8 = 1;
const TEST_RUNNING: u8 = 2;
const TEST_END: u8 = 4;
const PARAM_EXCHANGE: u8 = 9;
const CREATE_STREAMS: u8 = 10;
const EXCHANGE_RESULTS: u8 = 13;
const DISPLAY_RESULTS: u8 = 14;
const IPERF_DONE: u8 = 16;

/// The longest silence of the other end that a script bears. A server's own deadlines are shorter.
const PATIENCE: Duration = Duration::from_secs(40);
