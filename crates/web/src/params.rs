//! The parameters in the query string of an address.

use std::borrow::Cow;

use axum::http::Uri;
use percent_encoding::percent_decode_str;

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
