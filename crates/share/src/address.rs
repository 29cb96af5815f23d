//! The address of a vault of a team, as people write it.

use sidenote_base::error::{Error, Result};
use sidenote_http_client::is_loopback;

/// The address of a vault of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultAddress {
    /// The address without a slash or `/mcp` at its end.
    url: String,
}

impl VaultAddress {
    /// Reads an address such as `https://notes.example/v/handbook`, which may end in `/mcp`.
    ///
    /// # Errors
    /// `Invalid` if it is not one of a vault, or would send a token unencrypted through a network.
    pub fn parse(text: &str) -> Result<Self> {
        let refused = || {
            Error::invalid(format!("{text} is not the address of a vault"))
                .with_hint("write it as https://notes.example/v/NAME")
        };
        let plain = text.trim().trim_end_matches('/');
        let plain = plain.strip_suffix("/mcp").unwrap_or(plain);
        let (scheme, rest) = plain.split_once("://").ok_or_else(refused)?;
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let is_vault = path.rsplit('/').nth(1) == Some("v") && !path.ends_with('/');
        let has_other_parts = rest.contains(['?', '#', '@', '\\']) || rest.contains(char::is_whitespace);
        if host.is_empty() || !is_vault || has_other_parts {
            return Err(refused());
        }
        match scheme {
            "https" => {}
            "http" if is_loopback(host) => {}
            "http" => {
                return Err(Error::invalid(format!(
                    "{text} would send notes unencrypted through the network"
                ))
                .with_hint("use https://"));
            }
            _ => return Err(refused()),
        }
        Ok(Self { url: plain.to_owned() })
    }

    /// Returns the address, without a slash at its end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the host of the service with its port, as messages show it.
    pub fn host(&self) -> &str {
        self.origin_and_path().0.split_once("://").map_or("", |(_, host)| host)
    }

    /// Returns the address of the vault's endpoint, for which tokens are issued.
    pub fn resource(&self) -> String {
        format!("{}/mcp", self.url)
    }

    /// Returns the address at which the metadata of the endpoint is by default (RFC 9728, 3.1).
    pub(crate) fn metadata(&self) -> String {
        let (origin, path) = self.origin_and_path();
        format!("{origin}/.well-known/oauth-protected-resource{path}/mcp")
    }

    fn origin_and_path(&self) -> (&str, &str) {
        split_origin(&self.url)
    }
}

/// Splits an address into its origin and its path.
pub(crate) fn split_origin(address: &str) -> (&str, &str) {
    let host = address.find("://").map_or(0, |at| at + 3);
    let path = address.get(host..).and_then(|rest| rest.find('/')).map_or(address.len(), |at| host + at);
    address.split_at(path)
}
