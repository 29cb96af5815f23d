//! The registration endpoint (RFC 7591): a client says its name and where to lead back, and gets an id and no secret.

use std::sync::PoisonError;

use serde_json::{Value, json};
use sidenote_base::error::Result;

use crate::audit::AuditEntry;
use crate::message::{Reply, Request, is_type};
use crate::slowdown::Quota;
use crate::token::new_id;
use crate::{AuthorizationServer, client};

/// The registrations in each hour for one address, and in all.
const BY_ADDRESS: u32 = 20;
const IN_ALL: u32 = 100;
const HOUR: i64 = 3_600_000;

/// Bounds the registrations: anybody may register.
pub(crate) fn quota() -> Quota {
    Quota::new(BY_ADDRESS, IN_ALL, HOUR)
}

impl AuthorizationServer {
    /// Answers at the registration endpoint.
    pub(crate) fn register(&self, request: &Request<'_>) -> Result<Reply> {
        let refuse = |error: &str, why: &str| Ok(Reply::error(400, error, why));
        if request.method != "POST" {
            return Ok(Reply::error(405, "invalid_request", "use POST").with("allow", "POST"));
        }
        if !is_type(request.content_type, "application/json") {
            return Ok(Reply::error(415, "invalid_client_metadata", "send application/json"));
        }
        let Ok(metadata) = serde_json::from_slice::<Value>(request.body) else {
            return refuse("invalid_client_metadata", "the metadata are not valid JSON");
        };
        let now = self.now();
        let id = format!("{}{}", client::ID_PREFIX, new_id()?);
        let client = match client::read(&metadata, id, now) {
            Ok(client) => client,
            Err(client::Refused(error, why)) => return refuse(error, why),
        };
        let is_local = request.address.to_canonical().is_loopback();
        let quota = if is_local { &self.local_registrations } else { &self.registrations };
        if !quota.lock().unwrap_or_else(PoisonError::into_inner).take(request.address, now) {
            let reply =
                Reply::error(429, "temporarily_unavailable", "too many clients register; try again later");
            return Ok(reply.with("retry-after", "3600"));
        }
        let document = json!({
            "client_id": client.id,
            "client_id_issued_at": now.millis().div_euclid(1000),
            "client_name": client.name,
            "redirect_uris": client.redirect_uris,
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "scope": self.most.text(),
        });
        let entry = AuditEntry {
            client_id: Some(client.id.clone()),
            client: Some(client.name.clone()),
            ..AuditEntry::new(now, "registered")
        };
        self.state.change(now, |state| state.add_client(client))?;
        self.audit.add_of_stranger(entry, request.address);
        Ok(Reply::json(201, &document))
    }
}
