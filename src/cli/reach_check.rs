//! Examines for `doctor --reach` whether clients elsewhere can log in at a server of `mcp --http --login`: asks the address that
//! the user names for what a client asks for, and says what is wrong.

use std::time::Duration;

use serde_json::{Value, json};
use sidenote_authorization::{AUTHORIZATION_METADATA, RESOURCE_METADATA, origin};
use sidenote_base::error::Result;
use sidenote_config::Secret;
use sidenote_http_client::{Http, HttpError, Reply};

use crate::store::{Finding, Level};

/// The name of the findings.
const CHECK: &str = "reach";
/// The time that each answer may take.
const LIMIT: Duration = Duration::from_secs(15);
/// The largest document in bytes.
const MAX_DOCUMENT: u64 = 64 << 10;
/// The path of the endpoint where the address has none.
const ENDPOINT: &str = "/mcp";

fn problem(state: impl Into<String>, advice: impl Into<String>) -> Finding {
    Finding::new(CHECK, Level::Problem, state.into()).with_advice(advice.into(), "")
}

/// Examines the address of an endpoint, or of a server with one.
///
/// # Errors
/// `Invalid` if the text is no address with `https`, or with `http` of this machine.
pub(super) fn findings(address: &str) -> Result<Vec<Finding>> {
    let Some((scheme, rest)) = address.split_once("://") else {
        // It is none, and the error says so.
        return origin(address).map(|_| Vec::new());
    };
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let server = origin(&format!("{scheme}://{host}"))?;
    let path = match path.trim_end_matches('/') {
        "" => ENDPOINT,
        path => path,
    };
    let http = Http::default();
    let mut findings = Vec::new();
    match issuer(&http, &server) {
        Ok(finding) => findings.push(finding),
        Err(finding) => return Ok(vec![*finding]),
    }
    findings.push(resource(&http, &server, path));
    findings.push(endpoint(&http, &server, path));
    Ok(findings)
}

/// Fetches a document.
fn fetch(http: &Http, address: &str) -> std::result::Result<Reply, Box<Finding>> {
    http.exchange(address, None, MAX_DOCUMENT, LIMIT).map_err(|error| Box::new(unreachable(address, error)))
}

fn unreachable(address: &str, error: HttpError) -> Finding {
    let why = match error {
        HttpError::TimedOut => format!("no answer within {} s", LIMIT.as_secs()),
        HttpError::Unreachable(why) | HttpError::Address(why) | HttpError::Broken(why) => why,
        HttpError::Write(error) => error.to_string(),
    };
    let advice = if why.contains("certificate") {
        "the certificate of the tunnel or proxy is not trusted here; if you made it yourself, SSL_CERT_FILE names the file of its authority"
    } else {
        "see whether the tunnel or proxy runs, and leads to the address that the server listens on"
    };
    problem(format!("{address} cannot be reached: {why}"), advice)
}

/// Examines the metadata of the authorization server.
fn issuer(http: &Http, server: &str) -> std::result::Result<Finding, Box<Finding>> {
    let address = format!("{server}{AUTHORIZATION_METADATA}");
    let reply = fetch(http, &address)?;
    let document: Option<Value> = serde_json::from_slice(&reply.body).ok();
    let named = document.as_ref().and_then(|document| document.get("issuer")?.as_str());
    let problem = match (reply.status, named) {
        (200, Some(named)) if named == server => {
            return Ok(Finding::new(CHECK, Level::Ok, format!("{server} has an authorization server")));
        }
        (200, Some(named)) => problem(
            format!("the server at {server} says that its address is {named}, so clients refuse it"),
            format!("start the server with --public-url {server}"),
        ),
        (403, _) => problem(
            format!("the server refuses requests for {server}"),
            format!(
                "start the server with --public-url {server}, and let the proxy pass on the Host of requests"
            ),
        ),
        (404, _) => problem(
            format!("{address} does not exist"),
            "start the server with --login, and let the proxy pass on all paths",
        ),
        (502..=504, _) => problem(
            format!("the tunnel or proxy at {server} answers {}, and not the server", reply.status),
            "start the server, or correct the port in the settings of the tunnel or proxy",
        ),
        (status, _) => problem(
            format!("{address} is answered with the status {status}, and not with metadata"),
            "see whether the tunnel or proxy asks for a login of its own, or leads to another server",
        ),
    };
    Err(Box::new(problem))
}

/// Examines the metadata of the endpoint.
fn resource(http: &Http, server: &str, path: &str) -> Finding {
    let address = format!("{server}{RESOURCE_METADATA}{path}");
    let reply = match fetch(http, &address) {
        Ok(reply) => reply,
        Err(finding) => return *finding,
    };
    let document: Option<Value> = serde_json::from_slice(&reply.body).ok();
    let named = document.as_ref().and_then(|document| document.get("resource")?.as_str());
    let endpoint = format!("{server}{path}");
    match named {
        Some(named) if named == endpoint => {
            Finding::new(CHECK, Level::Ok, format!("{endpoint} is an endpoint, and says where to log in"))
        }
        _ => problem(
            format!("the server has no endpoint at {endpoint}"),
            "name the endpoint as the server prints it when it starts: /mcp, or /v/NAME/mcp",
        ),
    }
}

/// Examines how a call without a token is answered.
fn endpoint(http: &Http, server: &str, path: &str) -> Finding {
    let address = format!("{server}{path}");
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    let reply = match http.post_json(&address, &Secret::default(), &call, LIMIT) {
        Ok(reply) => reply,
        Err(error) => return unreachable(&address, error),
    };
    let is_told = reply.challenge.is_some_and(|challenge| challenge.contains("resource_metadata="));
    match reply.status {
        401 if is_told => Finding::new(CHECK, Level::Ok, "a call without a token is refused".to_owned()),
        401 => problem(
            "a call without a token is refused, and the client is not told where to log in",
            "let the proxy pass on the header WWW-Authenticate",
        ),
        200 => problem(
            format!("{address} answers everybody, without a token"),
            "stop the tunnel or proxy, and start the server with --login",
        ),
        status => problem(
            format!("a call to {address} is answered with the status {status}"),
            "see whether the tunnel or proxy passes on POST requests as they are",
        ),
    }
}
