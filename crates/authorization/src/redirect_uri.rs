//! Redirect URIs: which a client may register, and which of a request is one of them.

use url::{Host, Url};

/// The longest redirect URI in bytes.
const LONGEST: usize = 2048;
/// The redirect URIs that a client may have.
pub(crate) const MOST: usize = 10;
/// The schemes that browsers or systems run, read or connect to, so that no program of the user's can own them.
const REFUSED_SCHEMES: [&str; 16] = [
    "about",
    "blob",
    "chrome",
    "data",
    "file",
    "filesystem",
    "ftp",
    "intent",
    "javascript",
    "mailto",
    "tel",
    "vbscript",
    "view-source",
    "ws",
    "wss",
    "wyciwyg",
];

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
        "https" => None,
        "http" if is_loopback(&url) => None,
        "http" => Some("a redirect URI with http must be one of this machine: 127.0.0.1, [::1] or localhost"),
        scheme if REFUSED_SCHEMES.contains(&scheme) => {
            Some("a redirect URI has a scheme that no program can own")
        }
        _ => None,
    }
}

/// Returns whether a redirect URI leads to a program on the machine of the browser.
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
    if registered == given {
        return fault(given).is_none();
    }
    let (Ok(mut one), Ok(mut other)) = (Url::parse(registered), Url::parse(given)) else { return false };
    let is_local = |url: &Url| url.scheme() == "http" && is_loopback(url);
    if fault(given).is_some() || !is_local(&one) || !is_local(&other) {
        return false;
    }
    // The rest is compared as it is written, so that no rule of normalization makes two the same.
    let rest = |text: &str| {
        let behind = text.split_once("://").map_or("", |(_, behind)| behind);
        behind.find('/').map_or(String::new(), |at| behind.get(at..).unwrap_or_default().to_owned())
    };
    let has_port_only = one.set_port(None).is_ok() && other.set_port(None).is_ok();
    has_port_only && one.host() == other.host() && rest(registered) == rest(given)
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
    match (url.scheme(), url.host_str()) {
        ("http", _) => "this computer".to_owned(),
        ("https", Some(host)) => host.to_owned(),
        (scheme, _) => format!("the program for {scheme}: on this computer"),
    }
}

/// Returns the source by which a content security policy names the target of a redirect.
pub(crate) fn policy_source(redirect_uri: &str) -> String {
    let Ok(url) = Url::parse(redirect_uri) else { return String::new() };
    match (url.scheme(), url.host()) {
        // A policy cannot name addresses of IPv6.
        ("http", Some(Host::Ipv6(_))) => "http:".to_owned(),
        ("http" | "https", Some(_)) => url.origin().ascii_serialization(),
        (scheme, _) => format!("{scheme}:"),
    }
}
