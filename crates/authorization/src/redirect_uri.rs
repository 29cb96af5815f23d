//! Redirect URIs: which a client may register, and which of a request is one of them.

use url::{Host, Url};

/// The longest redirect URI in bytes.
const LONGEST: usize = 2048;
/// The redirect URIs that a client may have.
pub(crate) const MOST: usize = 10;
/// The schemes of programs that have no dot, as RFC 8252 (7.1) asks for: those of the clients that `mcp config` knows.
const KNOWN_SCHEMES: [&str; 6] = ["claude", "cursor", "vscode", "vscode-insiders", "windsurf", "zed"];
/// The hosts by which a program on the machine of the browser is named.
const LOCAL_HOSTS: [&str; 3] = ["127.0.0.1", "[::1]", "localhost"];

/// Says why a client may not have a redirect URI, if so.
pub(crate) fn fault(text: &str) -> Option<&'static str> {
    let is_plain =
        text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\'));
    if text.len() > LONGEST || !is_plain {
        return Some("a redirect URI is too long, or has characters that no URI has");
    }
    let Ok(url) = Url::parse(text) else { return Some("a redirect URI is no absolute URI") };
    if url.fragment().is_some() {
        return Some("a redirect URI must have no fragment");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Some("a redirect URI must have no user name");
    }
    match url.scheme() {
        "https" if !text.starts_with("https://") || !has_plain_host(&url) => {
            Some("a redirect URI with https must be written in full, with the name of a host")
        }
        "https" => None,
        "http" if local_parts(text).is_some() => None,
        "http" => Some("a redirect URI with http must be one of this machine: 127.0.0.1, [::1] or localhost"),
        scheme if scheme.contains('.') || KNOWN_SCHEMES.contains(&scheme) => None,
        _ => Some("a redirect URI of a program must have a scheme with a dot, such as com.example.app"),
    }
}

/// Returns whether a host has no characters but those of host names and addresses.
fn has_plain_host(url: &Url) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'[' | b']' | b':');
    url.host_str().is_some_and(|host| !host.is_empty() && host.bytes().all(is_plain))
}

/// Returns the host, as it is written, and what follows the port, of a redirect URI to a program on the machine of the
/// browser.
fn local_parts(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("http://")?;
    let (authority, behind) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = *LOCAL_HOSTS.iter().find(|host| {
        let port = authority.strip_prefix(**host);
        port.is_some_and(|port| port.is_empty() || port.starts_with(':'))
    })?;
    let port = authority.strip_prefix(host)?;
    let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    let url = Url::parse(text).ok()?;
    let is_same = url.scheme() == "http" && url.host_str() == Some(host) && url.username().is_empty();
    (is_port && is_same && url.password().is_none()).then_some((host, behind))
}

/// Returns whether an address is one of this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Returns whether a redirect URI of a request is the one that was registered: exactly, but for the port of a loopback
/// address, which a program gets when it starts (RFC 8252, 7.3).
pub(crate) fn matches(registered: &str, given: &str) -> bool {
    if fault(given).is_some() {
        return false;
    }
    if registered == given {
        return true;
    }
    // The rest is compared as it is written and as browsers read it, so that no rule of normalization makes two the same.
    let read = |text: &str| {
        let url = Url::parse(text).ok()?;
        Some((url.path().to_owned(), url.query().map(str::to_owned)))
    };
    let (one, other) = (local_parts(registered), local_parts(given));
    one.is_some() && one == other && read(registered) == read(given)
}

/// Adds parameters to a redirect URI.
pub(crate) fn with_parameters(redirect_uri: &str, parameters: &[(&str, &str)]) -> String {
    // What is registered is an absolute URI, which the parser takes.
    let Ok(mut url) = Url::parse(redirect_uri) else { return redirect_uri.to_owned() };
    url.query_pairs_mut().extend_pairs(parameters);
    url.into()
}

/// Returns what a person reads of a redirect URI: its host, or its scheme where it has no host that means anything.
pub(crate) fn shown(redirect_uri: &str) -> String {
    let Ok(url) = Url::parse(redirect_uri) else { return String::new() };
    let port = url.port();
    match (url.scheme(), url.host_str()) {
        ("http", _) => port.map_or("this computer".to_owned(), |port| format!("this computer, port {port}")),
        ("https", Some(host)) => port.map_or(host.to_owned(), |port| format!("{host}:{port}")),
        (scheme, _) => format!("the program for {scheme}: on this computer"),
    }
}

/// Returns the source by which a content security policy names the target of a redirect.
pub(crate) fn policy_source(redirect_uri: &str) -> String {
    let Ok(url) = Url::parse(redirect_uri) else { return String::new() };
    match (url.scheme(), url.host()) {
        // A policy cannot name addresses of IPv6.
        ("http", Some(Host::Ipv6(_))) => "http:".to_owned(),
        // What is no host name could add to the policy.
        ("http" | "https", Some(_)) if !has_plain_host(&url) => String::new(),
        ("http" | "https", Some(_)) => url.origin().ascii_serialization(),
        (scheme, _) => format!("{scheme}:"),
    }
}
