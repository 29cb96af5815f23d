//! Clients: their metadata, as they register it (RFC 7591) or publish it at the address that is their id (client id metadata
//! documents).

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sidenote_base::clock::Timestamp;
use url::{Host, Url};

use crate::redirect_uri;

/// The longest name of a client that is kept, in characters.
const LONGEST_NAME: usize = 100;
/// The longest id of a client that is an address, in bytes.
const LONGEST_ID: usize = 512;
/// The beginning of the ids that this server gives.
pub(crate) const ID_PREFIX: &str = "sidenote-client-";
/// The largest client id metadata document in bytes; the draft asks for 5 KB at least.
pub const MAX_DOCUMENT: usize = 16 << 10;

/// A client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Client {
    pub(crate) id: String,
    /// The name that the client gives itself, which proves nothing.
    pub(crate) name: String,
    pub(crate) redirect_uris: Vec<String>,
    pub(crate) registered: Timestamp,
}

/// Why the metadata of a client are refused: the error of RFC 7591, and a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused(pub(crate) &'static str, pub(crate) &'static str);

const METADATA: &str = "invalid_client_metadata";

/// Reads what a client says of itself.
pub(crate) fn read(metadata: &Value, id: String, now: Timestamp) -> Result<Client, Refused> {
    let Some(fields) = metadata.as_object() else {
        return Err(Refused(METADATA, "the metadata are no JSON object"));
    };
    let list = |key: &str| -> Result<Option<Vec<String>>, Refused> {
        match fields.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(values)) => {
                let texts: Option<Vec<String>> =
                    values.iter().map(|value| value.as_str().map(str::to_owned)).collect();
                texts
                    .map(Some)
                    .ok_or(Refused(METADATA, "a list of the metadata holds other values than texts"))
            }
            Some(_) => {
                Err(Refused(METADATA, "redirect_uris, grant_types and response_types are lists of texts"))
            }
        }
    };
    let redirect_uris = list("redirect_uris")?.unwrap_or_default();
    if redirect_uris.is_empty() || redirect_uris.len() > redirect_uri::MOST {
        return Err(Refused("invalid_redirect_uri", "give one to ten redirect_uris"));
    }
    if let Some(why) = redirect_uris.iter().find_map(|uri| redirect_uri::fault(uri)) {
        return Err(Refused("invalid_redirect_uri", why));
    }
    if list("grant_types")?.is_some_and(|types| !types.iter().any(|kind| kind == "authorization_code")) {
        return Err(Refused(METADATA, "grant_types must have authorization_code"));
    }
    if list("response_types")?.is_some_and(|types| !types.iter().any(|kind| kind == "code")) {
        return Err(Refused(METADATA, "response_types must have code"));
    }
    let name = match fields.get("client_name") {
        None | Some(Value::Null) => "",
        Some(Value::String(name)) => name,
        Some(_) => return Err(Refused(METADATA, "client_name is no text")),
    };
    let name = plain_name(name);
    let name = if name.is_empty() { "a client without a name".to_owned() } else { name };
    Ok(Client { id, name, redirect_uris, registered: now })
}

/// Returns a name without control characters, and without characters that show nothing or turn the direction of text.
fn plain_name(name: &str) -> String {
    let is_shown = |c: &char| !c.is_control() && !is_ignorable(*c);
    name.chars().filter(is_shown).take(LONGEST_NAME).collect::<String>().trim().to_owned()
}

/// Returns whether a character is ignored where it cannot be shown (`Default_Ignorable_Code_Point` of Unicode), separates
/// lines, or is blank though it is no white space.
fn is_ignorable(c: char) -> bool {
    matches!(
        c,
        '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}'..='\u{1160}' | '\u{17B4}'..='\u{17B5}'
            | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}'
            | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' | '\u{1BCA0}'..='\u{1BCA3}'
            | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}'
    )
}

/// Returns whether the id of a client is the address of its metadata.
pub(crate) fn is_address(id: &str) -> bool {
    id.starts_with("https://")
}

/// Says why an address cannot be the id of a client, if so.
pub(crate) fn address_fault(id: &str) -> Option<&'static str> {
    let is_plain = id.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let url = Url::parse(id).ok().filter(|url| is_plain && id.len() <= LONGEST_ID && url.as_str() == id);
    let Some(url) = url else { return Some("the address of the client is not written as browsers write it") };
    if url.fragment().is_some() || !url.username().is_empty() || url.password().is_some() {
        return Some("the address of the client must have no fragment and no user name");
    }
    if url.path() == "/" {
        return Some("the address of the client must have a path");
    }
    let is_named =
        matches!(url.host(), Some(Host::Domain(name)) if name.contains('.') && !name.ends_with(".localhost"));
    if !is_named || url.port().is_some() {
        return Some("the address of the client must have a public host name, and no port");
    }
    None
}

/// Reads the document that a client publishes at the address which is its id.
pub(crate) fn read_document(id: &str, document: &[u8], now: Timestamp) -> Result<Client, Refused> {
    if document.len() > MAX_DOCUMENT {
        return Err(Refused(METADATA, "the metadata of the client are too long"));
    }
    let metadata: Value = serde_json::from_slice(document)
        .map_err(|_| Refused(METADATA, "the address of the client leads to no JSON"))?;
    if metadata.get("client_id").and_then(Value::as_str) != Some(id) {
        return Err(Refused(
            METADATA,
            "the metadata of the client name another client_id than their address",
        ));
    }
    let method = metadata.get("token_endpoint_auth_method").and_then(Value::as_str).unwrap_or("none");
    // A shared secret cannot be published. A client with a key may use it elsewhere; here, PKCE is what binds it.
    if metadata.get("client_secret").is_some() || method.starts_with("client_secret") {
        return Err(Refused(METADATA, "the metadata of the client name a secret, which nobody can publish"));
    }
    read(&metadata, id.to_owned(), now)
}
