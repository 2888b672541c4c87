//! The calls of qWAVE, from a library that Windows Server has as a feature only: it is loaded when it
//! is needed.

use std::io;
use std::os::windows::io::BorrowedSocket;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use windows_sys::Win32::Foundation::{FARPROC, HANDLE};
use windows_sys::Win32::NetworkManagement::QoS::{
    QOS_NON_ADAPTIVE_FLOW, QOS_SET_FLOW, QOS_TRAFFIC_TYPE, QOS_VERSION, QOSSetOutgoingDSCPValue,
};
use windows_sys::Win32::Networking::WinSock::{SOCKADDR, SOCKET};
use windows_sys::Win32::System::IO::OVERLAPPED;
use windows_sys::Win32::System::LibraryLoader::{
    GetProcAddress, LOAD_LIBRARY_SEARCH_SYSTEM32, LoadLibraryExW,
};
use windows_sys::core::BOOL;

use crate::options::raw;
use crate::qos::{Flow, Subsystem, unsupported};

/// The packets of a connected socket have a class as long as this lives.
#[derive(Debug)]
pub struct Mark(#[allow(dead_code, reason = "kept for its drop")] Flow<Handle>);

/// Has everything that a connected socket sends carry the upper six bits of a TOS or traffic class
/// byte. Windows 7 and later; classes other than 8, 40 and 56 need rights.
///
/// # Errors
/// Of kind `Unsupported` where it cannot be had, with the reason.
pub fn mark(socket: BorrowedSocket<'_>, class: u8) -> io::Result<Mark> {
    Flow::marked(class, || Handle::open(raw(socket))).map(Mark)
}

/// The subsystem's handle for one socket: closing it ends the socket's flow.
#[derive(Debug)]
struct Handle {
    functions: &'static Functions,
    handle: HANDLE,
    socket: SOCKET,
}

// SAFETY: the subsystem takes a handle from any thread; this type's own use of it is not shared.
unsafe impl Send for Handle {}
// SAFETY: as above; nothing can be done with a shared reference.
unsafe impl Sync for Handle {}

impl Handle {
    fn open(socket: SOCKET) -> io::Result<Self> {
        let missing = || {
            unsupported(
                "Windows marks through qWAVE, which this system lacks (Windows Server has it as a \
                 feature: Install-WindowsFeature qWave)"
                    .into(),
            )
        };
        let functions = Functions::get().ok_or_else(missing)?;
        let version = QOS_VERSION { MajorVersion: 1, MinorVersion: 0 };
        let mut handle = null_mut();
        // SAFETY: reads one version and writes one handle, which the pointers point to.
        done(unsafe { (functions.create_handle)(&raw const version, &raw mut handle) }).map_err(
            |error| unsupported(format!("Windows marks through qWAVE, which fails: {error}")),
        )?;
        Ok(Self { functions, handle, socket })
    }
}

impl Subsystem for Handle {
    fn add_flow(&mut self, traffic_type: i32) -> io::Result<u32> {
        let mut flow = 0;
        // SAFETY: the handle is open; a connected socket needs no address; one number is written.
        done(unsafe {
            (self.functions.add_socket_to_flow)(
                self.handle,
                self.socket,
                null(),
                traffic_type,
                QOS_NON_ADAPTIVE_FLOW,
                &raw mut flow,
            )
        })?;
        Ok(flow)
    }

    fn set_dscp(&mut self, flow: u32, dscp: u32) -> io::Result<()> {
        // SAFETY: the handle is open; as many bytes are read as the size says, and nothing is
        // written, for no completion is asked for.
        done(unsafe {
            (self.functions.set_flow)(
                self.handle,
                flow,
                QOSSetOutgoingDSCPValue,
                size_of_val(&dscp) as u32,
                (&raw const dscp).cast(),
                0,
                null_mut(),
            )
        })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle is open and is not used again. There is nobody to tell of a failure.
        unsafe { (self.functions.close_handle)(self.handle) };
    }
}

fn done(result: BOOL) -> io::Result<()> {
    if result != 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Found in the library, which stays loaded.
#[derive(Debug)]
struct Functions {
    create_handle: CreateHandle,
    add_socket_to_flow: AddSocketToFlow,
    set_flow: SetFlow,
    close_handle: CloseHandle,
}

type CreateHandle = unsafe extern "system" fn(*const QOS_VERSION, *mut HANDLE) -> BOOL;
type AddSocketToFlow = unsafe extern "system" fn(
    HANDLE,
    SOCKET,
    *const SOCKADDR,
    QOS_TRAFFIC_TYPE,
    u32,
    *mut u32,
) -> BOOL;
type SetFlow = unsafe extern "system" fn(
    HANDLE,
    u32,
    QOS_SET_FLOW,
    u32,
    *const core::ffi::c_void,
    u32,
    *mut OVERLAPPED,
) -> BOOL;
type CloseHandle = unsafe extern "system" fn(HANDLE) -> BOOL;

impl Functions {
    fn get() -> Option<&'static Self> {
        static FUNCTIONS: OnceLock<Option<Functions>> = OnceLock::new();
        FUNCTIONS.get_or_init(Self::load).as_ref()
    }

    /// From the system's folder alone: a library of this name beside the program is none of ours.
    fn load() -> Option<Self> {
        let name = windows_sys::core::w!("qwave.dll");
        // SAFETY: the name is a string that ends with zero; the file handle must be null.
        let library = unsafe { LoadLibraryExW(name, null_mut(), LOAD_LIBRARY_SEARCH_SYSTEM32) };
        if library.is_null() {
            return None;
        }
        // SAFETY: the library stays loaded; the name is a string that ends with zero.
        let find = |name: &std::ffi::CStr| -> FARPROC {
            unsafe { GetProcAddress(library, name.as_ptr().cast()) }
        };
        // SAFETY: each function has, in the library's reference, the type it is given here.
        unsafe {
            Some(Self {
                create_handle: std::mem::transmute::<_, CreateHandle>(find(c"QOSCreateHandle")?),
                add_socket_to_flow: std::mem::transmute::<_, AddSocketToFlow>(find(
                    c"QOSAddSocketToFlow",
                )?),
                set_flow: std::mem::transmute::<_, SetFlow>(find(c"QOSSetFlow")?),
                close_handle: std::mem::transmute::<_, CloseHandle>(find(c"QOSCloseHandle")?),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};
    use std::os::windows::io::AsSocket;

    use super::*;

    #[test]
    fn a_connected_socket_is_marked_or_the_reason_is_told() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.connect(socket.local_addr().unwrap()).unwrap();
        match mark(socket.as_socket(), 46 << 2) {
            Ok(mark) => drop(mark),
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::Unsupported);
                assert!(error.to_string().starts_with("Windows "), "{error}");
            }
        }
    }
}
