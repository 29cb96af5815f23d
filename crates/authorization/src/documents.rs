//! Client id metadata documents: fetched for the person at the page of consent, from the address that the client names, and
//! kept for some minutes. How often strangers can have one fetched is bounded.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;

use crate::client::{self, Client};
use crate::slowdown::Quota;

/// The time in milliseconds for which a document is kept.
const KEPT: i64 = 5 * 60_000;
/// The documents that are kept. Beyond that, all are forgotten.
const MOST: usize = 64;
/// The documents that are fetched in each minute for one address, and in all.
const BY_ADDRESS: u32 = 6;
const IN_ALL: u32 = 30;
const MINUTE: i64 = 60_000;

/// Fetches a document from a public address, within limits of time and size. It may block.
pub type FetchDocument = Box<dyn Fn(&str) -> Result<Vec<u8>> + Send + Sync>;

/// The documents of clients.
pub(crate) struct ClientDocuments {
    fetch: FetchDocument,
    kept: Mutex<HashMap<String, Client>>,
    quota: Mutex<Quota>,
}

impl std::fmt::Debug for ClientDocuments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClientDocuments")
    }
}

impl ClientDocuments {
    pub(crate) fn new(fetch: FetchDocument) -> Self {
        let quota = Mutex::new(Quota::new(BY_ADDRESS, IN_ALL, MINUTE));
        Self { fetch, kept: Mutex::default(), quota }
    }

    /// Returns the client that an address describes, or a sentence for the person that says why there is none.
    pub(crate) fn client(&self, id: &str, address: IpAddr, now: Timestamp) -> Result<Client, String> {
        if let Some(why) = client::address_fault(id) {
            return Err(format!("The client cannot be known: {why}."));
        }
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        let is_new = |client: &Client| (0..KEPT).contains(&(now.millis() - client.registered.millis()));
        if let Some(client) = kept.filter(is_new) {
            return Ok(client);
        }
        if !self.quota.lock().unwrap_or_else(PoisonError::into_inner).take(address, now) {
            return Err("Too many clients were looked up. Try again in a minute.".to_owned());
        }
        let document = (self.fetch)(id).map_err(|error| {
            tracing::warn!("the metadata of a client cannot be fetched: {error}");
            "The address of the client cannot be read; the log of the server says why.".to_owned()
        })?;
        let client = client::read_document(id, &document, now)
            .map_err(|refused| format!("The client cannot be known: {}.", refused.1))?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST {
            kept.clear();
        }
        kept.insert(id.to_owned(), client.clone());
        Ok(client)
    }
}
