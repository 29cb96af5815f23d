//! Access control: the token of the first address, the cookie that it becomes, and the names and origins of requests.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use axum::http::{HeaderMap, Uri, header};
use sidenote_http::token;

use crate::Web;
use crate::params::Params;
use crate::reply::ApiError;

/// How long the cookie is kept, in seconds.
const COOKIE_AGE: u32 = 180 * 86_400;
/// The name of the file with the secret of the cookie.
const SECRET: &str = "web-secret";
/// The names of this machine.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Decides about requests. Only hashes of the token and the cookie are kept.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    token: blake3::Hash,
    cookie: String,
    cookie_hash: blake3::Hash,
    cookie_name: String,
    /// The values of `Host` that are allowed; all if empty.
    hosts: Vec<String>,
}

impl Access {
    /// Creates the rules of a server. The cookie differs for each vault and each secret.
    pub(crate) fn new(address: SocketAddr, web: &Web, token: &str, root: &Path) -> Self {
        let secret = match (&web.token_file, &web.secret_folder) {
            (Some(_), _) => token.to_owned(),
            (None, Some(folder)) => stored_secret(folder),
            (None, None) => token::new_token(),
        };
        let key = blake3::derive_key("sidenote web cookie", secret.as_bytes());
        let cookie = blake3::keyed_hash(&key, root.as_os_str().as_encoded_bytes()).to_hex().to_string();
        Self {
            token: blake3::hash(token.as_bytes()),
            cookie_hash: blake3::hash(cookie.as_bytes()),
            cookie,
            cookie_name: format!("sidenote-{}", address.port()),
            hosts: hosts_of(address),
        }
    }

    /// Refuses a request for another name, and returns the name.
    ///
    /// # Errors
    /// `forbidden`, with the name.
    pub(crate) fn check_host(&self, headers: &HeaderMap) -> Result<String, ApiError> {
        let Some(host) = lowercase(headers, &header::HOST) else {
            return Err(ApiError::forbidden("the request has no Host"));
        };
        if !self.hosts.is_empty() && !self.hosts.contains(&host) {
            return Err(ApiError::forbidden(&format!("the name {host:?} is not one of this server"))
                .with_hint("open the address that `sidenote web` printed"));
        }
        Ok(host)
    }

    /// Refuses a request for another name, or from another origin.
    ///
    /// # Errors
    /// `forbidden`, with the header that is wrong.
    pub(crate) fn check_origin(&self, headers: &HeaderMap, is_api: bool) -> Result<(), ApiError> {
        let host = self.check_host(headers)?;
        if let Some(origin) = lowercase(headers, &header::ORIGIN) {
            let own = origin.split_once("://").is_some_and(|(_, place)| place == host);
            if !own {
                return Err(ApiError::forbidden(&format!("pages of {origin:?} may not use this server")));
            }
        }
        let site = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
        if is_api && site.is_some_and(|site| !matches!(site, "same-origin" | "none")) {
            return Err(ApiError::forbidden("pages of other sites may not use this server"));
        }
        Ok(())
    }

    /// Returns whether a request has the cookie.
    pub(crate) fn is_signed_in(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        // Hashes are compared in constant time.
        pairs.any(|(name, value)| {
            name == self.cookie_name && blake3::hash(value.as_bytes()) == self.cookie_hash
        })
    }

    /// Returns the address without its token and the cookie, if the token of an address is right. `None` if the address has
    /// no token.
    ///
    /// # Errors
    /// `unauthorized` if the token is wrong.
    pub(crate) fn sign_in(&self, uri: &Uri) -> Result<Option<(String, String)>, ApiError> {
        let params = Params::of(uri);
        let Some(given) = params.get("token") else { return Ok(None) };
        if blake3::hash(given.as_bytes()) != self.token {
            return Err(ApiError::unauthorized());
        }
        let rest = params.without("token");
        // Two slashes at the beginning would name another host.
        let path = format!("/{}", uri.path().trim_start_matches(['/', '\\']));
        let to = if rest.is_empty() { path } else { format!("{path}?{rest}") };
        let cookie = format!(
            "{}={}; Path=/; Max-Age={COOKIE_AGE}; HttpOnly; SameSite=Strict",
            self.cookie_name, self.cookie
        );
        Ok(Some((to, cookie)))
    }
}

fn lowercase(headers: &HeaderMap, name: &header::HeaderName) -> Option<String> {
    headers.get(name).map(|value| value.to_str().unwrap_or("?").to_lowercase())
}

/// Lists the values of `Host` of a server. Beyond this machine its names are unknown, and the token protects it.
fn hosts_of(address: SocketAddr) -> Vec<String> {
    if !address.ip().is_loopback() {
        return Vec::new();
    }
    let own = match address.ip() {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    let names = LOOPBACK.into_iter().map(str::to_owned).chain([own]);
    // Browsers leave out the usual port.
    let with_port = |name: String| match address.port() {
        80 => vec![format!("{name}:80"), name],
        port => vec![format!("{name}:{port}")],
    };
    names.flat_map(with_port).collect()
}

/// Returns the secret that is kept in a folder of the user, or one for this process if none can be kept.
fn stored_secret(folder: &Path) -> String {
    let stored = sidenote_base::platform::make_private_dir(folder)
        .map_err(|error| sidenote_base::error::Error::io("create", folder, error))
        .and_then(|()| token::read_or_create(&folder.join(SECRET), false));
    stored.unwrap_or_else(|error| {
        tracing::warn!("pages have to be opened again after a restart: {error}");
        token::new_token()
    })
}
