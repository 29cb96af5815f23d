//! Requests and replies of the authorization server, without a framework, and the parameters of a request.

use std::net::IpAddr;

use serde_json::{Value, json};
use url::form_urlencoded;

/// The parameters that a request may have.
const MOST_PARAMETERS: usize = 40;

/// A request.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The method, such as `POST`.
    pub method: &'a str,
    /// The path.
    pub path: &'a str,
    /// What follows `?`, if anything.
    pub query: &'a str,
    /// The media type of the body.
    pub content_type: Option<&'a str>,
    /// The body.
    pub body: &'a [u8],
    /// The cookies.
    pub cookie: Option<&'a str>,
    /// Whether it has an `Authorization` header.
    pub has_credentials: bool,
    /// Where a browser says that the request comes from (`Sec-Fetch-Site`).
    pub fetch_site: Option<&'a str>,
    /// The address of the client.
    pub address: IpAddr,
}

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status of HTTP.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: String,
}

impl Reply {
    /// Replies with JSON that nobody keeps.
    pub(crate) fn json(status: u16, document: &Value) -> Self {
        let headers = vec![
            ("content-type", "application/json".to_owned()),
            ("cache-control", "no-store".to_owned()),
            ("x-content-type-options", "nosniff".to_owned()),
        ];
        Self { status, headers, body: format!("{document}\n") }
    }

    /// Replies with an error of OAuth (RFC 6749, 5.2).
    pub(crate) fn error(status: u16, error: &str, description: &str) -> Self {
        Self::json(status, &json!({ "error": error, "error_description": description }))
    }

    /// Adds a header.
    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }
}

/// The parameters of a request, none of which is given twice.
#[derive(Debug)]
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Parses parameters. Returns the name of the one that is given twice, or `None` where there are too many, as an error.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, Option<String>> {
        let mut all: Vec<(String, String)> = Vec::new();
        for (name, value) in form_urlencoded::parse(text) {
            if all.iter().any(|(known, _)| *known == name) {
                return Err(Some(name.into_owned()));
            }
            if all.len() == MOST_PARAMETERS {
                return Err(None);
            }
            all.push((name.into_owned(), value.into_owned()));
        }
        Ok(Self(all))
    }

    /// Returns the value of a parameter. One without a value counts as missing (RFC 6749, 3.1).
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }
}

/// Returns whether a media type is this one, whatever its parameters are.
pub(crate) fn is_type(content_type: Option<&str>, expected: &str) -> bool {
    let kind = content_type.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    kind.trim().eq_ignore_ascii_case(expected)
}
