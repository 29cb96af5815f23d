//! Documents at addresses that strangers name: fetched over TLS from public addresses of the internet alone, and by no proxy.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use sidenote_base::error::{Error, ErrorKind};
use ureq::Agent;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::tls::TlsConfig;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

use crate::{fetch_with, trusted};

/// Resolves names to public addresses alone. The connection is made to the very addresses that were checked.
#[derive(Debug, Default)]
struct PublicResolver(DefaultResolver);

impl Resolver for PublicResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = self.0.resolve(uri, config, timeout)?;
        let mut public = self.empty();
        for address in found.iter().filter(|address| is_public(address.ip())) {
            public.push(*address);
        }
        if public.is_empty() { Err(ureq::Error::HostNotFound) } else { Ok(public) }
    }
}

/// Returns whether an address is one of the public internet: not of this machine, of a local network, or reserved.
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            !(address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_broadcast()
                || address.is_documentation()
                || address.is_multicast()
                || a == 0
                || a >= 240
                || (a == 100 && (64..128).contains(&b))
                || (a == 192 && b == 0 && c == 0)
                || (a == 192 && b == 88 && c == 99)
                || (a == 198 && matches!(b, 18 | 19)))
        }
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Returns whether an address of IPv6 is in the part of it that is routed, and stands for no address of IPv4.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    // 2000::/3 alone is given out; in it, Teredo, documentation and 6to4 lead elsewhere.
    a & 0xE000 == 0x2000
        && !(a == 0x2001 && (b < 0x0200 || b == 0x0DB8))
        && a != 0x2002
        && !(a == 0x3FFF && b < 0x1000)
}

/// Fetches a document of at most `max` bytes within `limit`, with `https`, from a public address. Redirects are not followed, no proxy
/// is used, and any status but 200 is an error.
///
/// # Errors
/// `NotFound` if the server has no such document; `Io` if it cannot be fetched, is longer, or is not at a public address.
pub fn fetch_public_document(url: &str, max: u64, limit: Duration) -> Result<Vec<u8>, Error> {
    if !url.starts_with("https://") {
        return Err(Error::new(ErrorKind::Io, format!("{url} cannot be fetched: it has no https")));
    }
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .https_only(true)
        .proxy(None)
        .user_agent(concat!("sidenote/", env!("CARGO_PKG_VERSION")))
        .tls_config(TlsConfig::builder().root_certs(trusted()).build())
        .build();
    let agent = Agent::with_parts(config, DefaultConnector::default(), PublicResolver::default());
    fetch_with(&agent, url, max, limit)
}
