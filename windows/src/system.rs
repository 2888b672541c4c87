//! What the system says of itself.

use windows_sys::Wdk::System::SystemServices::RtlGetVersion;
use windows_sys::Win32::System::SystemInformation::{
    ComputerNameDnsHostname, GetComputerNameExW, OSVERSIONINFOW,
};

/// Name of this machine, without its domain.
pub fn host_name() -> Option<String> {
    let mut name = [0u16; 256];
    let mut len = name.len() as u32;
    // SAFETY: at most `len` numbers are written, as many as `name` has; no name has more than 63.
    let result =
        unsafe { GetComputerNameExW(ComputerNameDnsHostname, name.as_mut_ptr(), &raw mut len) };
    let name = name.get(..len as usize).filter(|_| result != 0)?;
    Some(String::from_utf16_lossy(name))
}

/// Version and build, such as `10.0.22631`, whatever version the program's file says it is made for.
/// (Windows 11 is 10.0.22000 and later.)
pub fn release() -> Option<String> {
    let size = size_of::<OSVERSIONINFOW>() as u32;
    let mut version = OSVERSIONINFOW { dwOSVersionInfoSize: size, ..OSVERSIONINFOW::default() };
    // SAFETY: writes one record, whose size stands in it.
    let status = unsafe { RtlGetVersion(&raw mut version) };
    let OSVERSIONINFOW { dwMajorVersion, dwMinorVersion, dwBuildNumber, .. } = version;
    (status == 0).then(|| format!("{dwMajorVersion}.{dwMinorVersion}.{dwBuildNumber}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_has_a_name_and_a_version_of_three_numbers() {
        assert!(host_name().is_some_and(|name| !name.is_empty()));
        let release = release().unwrap();
        let numbers: Vec<u32> = release.split('.').map(|part| part.parse().unwrap()).collect();
        assert_eq!(numbers.len(), 3, "{release}");
        assert!(numbers[0] >= 6, "{release}");
    }
}
