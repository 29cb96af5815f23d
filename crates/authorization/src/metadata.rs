//! The metadata documents: of the authorization server (RFC 8414) and of its endpoints (RFC 9728).

use serde_json::json;

use crate::AuthorizationServer;
use crate::message::{Reply, Request};

/// The path of the metadata of the server.
pub const AUTHORIZATION_METADATA: &str = "/.well-known/oauth-authorization-server";
/// The path of the metadata of endpoints, which the path of an endpoint follows.
pub const RESOURCE_METADATA: &str = "/.well-known/oauth-protected-resource";

impl AuthorizationServer {
    /// Answers with the document of a path.
    pub(crate) fn metadata(&self, request: &Request<'_>) -> Reply {
        if !matches!(request.method, "GET" | "HEAD") {
            return Reply::error(405, "invalid_request", "use GET").with("allow", "GET");
        }
        let issuer = &self.issuer;
        if request.path == AUTHORIZATION_METADATA {
            return Reply::json(
                200,
                &json!({
                    "issuer": issuer,
                    "authorization_endpoint": format!("{issuer}/authorize"),
                    "token_endpoint": format!("{issuer}/token"),
                    "registration_endpoint": format!("{issuer}/register"),
                    "revocation_endpoint": format!("{issuer}/revoke"),
                    "scopes_supported": self.most.names(),
                    "response_types_supported": ["code"],
                    "response_modes_supported": ["query"],
                    "grant_types_supported": ["authorization_code", "refresh_token"],
                    "token_endpoint_auth_methods_supported": ["none"],
                    "revocation_endpoint_auth_methods_supported": ["none"],
                    "code_challenge_methods_supported": ["S256"],
                    "authorization_response_iss_parameter_supported": true,
                    "client_id_metadata_document_supported": true,
                }),
            );
        }
        let path = request.path.strip_prefix(RESOURCE_METADATA).unwrap_or_default();
        let address = format!("{issuer}{path}");
        let found = match (path, self.resources.as_slice()) {
            ("" | "/", [only]) => Some(only),
            _ => self.resources.iter().find(|resource| resource.address == address),
        };
        let Some(resource) = found else {
            return Reply::error(404, "not_found", "there is no endpoint at this path");
        };
        Reply::json(
            200,
            &json!({
                "resource": resource.address,
                "authorization_servers": [issuer],
                "scopes_supported": self.most.names(),
                "bearer_methods_supported": ["header"],
                "resource_name": "sidenote",
            }),
        )
    }
}
