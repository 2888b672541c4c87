//! Two networks with a virtual cable between them, which carries what the kernel sends as it is. Where
//! a link has to do something to packets, `link` is the place.

use crate::namespace::Namespace;

/// Two namespaces, each with one end of the cable. Everything is taken down when it is dropped.
#[derive(Debug)]
pub struct Cable {
    /// Where clients run.
    pub near: Namespace,
    /// Where servers run.
    pub far: Namespace,
}

/// The addresses of one end of a cable.
#[derive(Debug, Clone, Copy)]
pub struct Addresses {
    /// IPv4.
    pub v4: &'static str,
    /// IPv6.
    pub v6: &'static str,
    /// IPv6 within the cable only, without its zone.
    pub link_local: &'static str,
}

/// Where clients run.
pub const NEAR: Addresses = Addresses { v4: "10.77.0.1", v6: "fd77::1", link_local: "fe80::1" };
/// Where servers run.
pub const FAR: Addresses = Addresses { v4: "10.77.0.2", v6: "fd77::2", link_local: "fe80::2" };
/// The name of the cable at both ends, and so the zone of its link-local addresses.
pub const DEVICE: &str = "veth0";

impl Cable {
    /// Makes the networks and the cable, with all its addresses.
    ///
    /// # Panics
    ///
    /// When the system does not let it; see
    /// [`may_make_namespaces`](crate::namespace::may_make_namespaces).
    pub fn new() -> Self {
        let cable = Self::with_link_local_addresses();
        for (namespace, own) in [(&cable.near, NEAR), (&cable.far, FAR)] {
            namespace.ip(&format!("address add {}/24 dev {DEVICE}", own.v4));
            namespace.ip(&format!("address add {}/64 dev {DEVICE} nodad", own.v6));
        }
        cable
    }

    /// The same with its link-local addresses only.
    ///
    /// # Panics
    ///
    /// As for [`new`](Self::new).
    pub fn with_link_local_addresses() -> Self {
        let (near, far) = (Namespace::new(), Namespace::new());
        near.ip(&format!("link add {DEVICE} type veth peer name {DEVICE} netns {}", far.name()));
        for (namespace, own) in [(&near, NEAR), (&far, FAR)] {
            // Only the addresses that are given, and packets as long as they would be on a real cable.
            namespace.ip(&format!("link set {DEVICE} addrgenmode none"));
            namespace.ip(&format!("link set {DEVICE} gso_max_segs 1"));
            namespace.ip(&format!("link set {DEVICE} up"));
            namespace.ip(&format!("address add {}/64 dev {DEVICE} nodad", own.link_local));
        }
        Self { near, far }
    }
}

impl Default for Cable {
    fn default() -> Self {
        Self::new()
    }
}
