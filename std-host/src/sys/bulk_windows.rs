//! What Windows has of it: `TransmitFile`, and since Windows 10 2004 segmentation and joining of datagrams.
//! Sending and receiving themselves are the channel's.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsSocket;

use linerate_windows as native;
use socket2::Socket;

pub(crate) use super::bulk_none::{SKIPS_RX_COPY, request_arrivals, set_least_readable};
pub(crate) use native::is_of_the_file;

pub(crate) const MOST_MESSAGES: usize = 16;
/// `TransmitFile` reads ahead on its own, which a loop of reading and sending does not.
pub(crate) const PREFERS_SEND_FILE: bool = true;

/// In the folder for temporary files. It goes with its last handle, and the system need not write it out.
pub(crate) fn file_of(bytes: &[u8]) -> io::Result<File> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let name = format!("linerate-{:016x}", u64::from_ne_bytes(random));
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .attributes(TEMPORARY)
        .custom_flags(DELETE_ON_CLOSE)
        .open(std::env::temp_dir().join(name))?;
    file.write_all(bytes)?;
    Ok(file)
}

pub(crate) fn request_joined(socket: &Socket) -> io::Result<()> {
    native::request_joined(socket.as_socket())
}

/// A connected socket says so unasked, by failing a receive that has nothing to do with it.
pub(crate) fn request_refusals(_socket: &Socket) -> io::Result<()> {
    Ok(())
}

pub(crate) fn forget_errors(_socket: &Socket) {}

/// `FILE_ATTRIBUTE_TEMPORARY`
const TEMPORARY: u32 = 0x100;
/// `FILE_FLAG_DELETE_ON_CLOSE`
const DELETE_ON_CLOSE: u32 = 0x0400_0000;
