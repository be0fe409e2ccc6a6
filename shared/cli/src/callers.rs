//! What whoever starts a local server should know about its callers.

use std::net::SocketAddr;

use tickover_embedded::HostName;

use crate::show::say;

/// Says who may call a server that listens here, and what they `can` do, if it isn't only this machine.
pub(crate) fn tell(listen: SocketAddr, allowed: &[HostName], can: &str) {
    if listen.ip().is_loopback() {
        return;
    }
    if allowed.is_empty() {
        say("callers on other machines are refused: --allow-host gives this one a name for them");
    } else {
        say(&format!("whoever reaches this address can {can}: callers aren't asked who they are"));
    }
}
