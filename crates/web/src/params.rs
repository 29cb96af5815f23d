//! The parameters of requests: those in the query string of an address, and the bodies of actions.

use std::borrow::Cow;

use axum::http::Uri;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use sidenote_base::clock::Timestamp;

use crate::reply::ApiError;

/// The parameters of a request, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Params {
    pairs: Vec<(String, String)>,
    query: String,
}

impl Params {
    /// Reads the parameters of an address.
    pub(crate) fn of(uri: &Uri) -> Self {
        let query = uri.query().unwrap_or("").to_owned();
        let decoded = |text: &str| -> String {
            let text: Cow<'_, str> =
                if text.contains('+') { text.replace('+', " ").into() } else { text.into() };
            percent_decode_str(&text).decode_utf8_lossy().into_owned()
        };
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        });
        Self { pairs: pairs.collect(), query }
    }

    /// Returns a parameter, if it is given and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Lists the values of a parameter that may be repeated.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let pairs = self.pairs.iter().filter(move |(own, _)| own == name);
        pairs.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Returns a parameter.
    ///
    /// # Errors
    /// `invalid` if it is missing.
    pub(crate) fn required(&self, name: &str) -> Result<&str, ApiError> {
        self.get(name).ok_or_else(|| ApiError::invalid(&format!("the parameter {name} is missing")))
    }

    /// Returns a number.
    ///
    /// # Errors
    /// `invalid` if it is given and is no number.
    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, ApiError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let number = text
            .parse()
            .map_err(|_| ApiError::invalid(&format!("the parameter {name} is no number: {text:?}")))?;
        Ok(Some(number))
    }

    /// Returns whether a flag is set.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !matches!(value, "0" | "false"))
    }

    /// Returns the query string without a parameter.
    pub(crate) fn without(&self, name: &str) -> String {
        let parts = self.query.split('&').filter(|pair| pair.split('=').next() != Some(name));
        parts.collect::<Vec<_>>().join("&")
    }
}

/// Reads the body of an action.
///
/// # Errors
/// `invalid` if it is malformed.
pub(crate) fn parsed<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, ApiError> {
    let body = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body)
        .map_err(|error| ApiError::invalid(&format!("the body is not valid: {error}")))
}

/// Reads a day.
///
/// # Errors
/// `invalid` if the text is no day.
pub(crate) fn day_of(text: Option<&str>) -> Result<Option<Timestamp>, ApiError> {
    let Some(text) = text else { return Ok(None) };
    let day = Timestamp::parse(text).filter(|_| text.len() == "2026-11-21".len());
    let day = day.ok_or_else(|| ApiError::invalid(&format!("{text:?} is no day, such as 2026-11-21")))?;
    Ok(Some(day))
}
