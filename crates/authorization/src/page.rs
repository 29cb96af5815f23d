//! The pages for the person at the browser: the question whether a client may have access, and why it cannot have it. They
//! have no scripts and load nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use crate::client;
use crate::message::Reply;
use crate::redirect_uri;
use crate::scope::Scopes;
use crate::ticket::Ticket;

/// The style of the pages, which the content security policy names by its hash.
const STYLE: &str = "\
:root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;margin:0;padding:1rem}\
main{max-width:30rem;margin:4vh auto;padding:1.5rem;border:1px solid #8886;border-radius:.75rem}\
h1{font-size:1.25rem;margin:0 0 1rem}dl{display:grid;grid-template-columns:auto 1fr;gap:.25rem 1rem;margin:1rem 0}\
dt{opacity:.75}dd{margin:0;overflow-wrap:anywhere}label{display:block;margin:.75rem 0 .25rem}\
input[type=password]{box-sizing:border-box;width:100%;font:inherit;padding:.5rem}\
.row{display:flex;gap:.75rem;margin-top:1rem}button{font:inherit;padding:.5rem 1rem}\
.fault{border-left:.25rem solid #c33;padding-left:.75rem}";

/// Escapes a text for an element or a quoted attribute.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Replies with a page. A form of it may lead to the server and to `target`.
fn page(status: u16, title: &str, body: &str, target: &str) -> Reply {
    let style = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; form-action 'self' {target}; frame-ancestors 'none'; base-uri 'none'"
    );
    let html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><style>{STYLE}</style></head>\
<body><main>{body}</main></body></html>\n"
    );
    Reply {
        status,
        headers: vec![
            ("content-type", "text/html; charset=utf-8".to_owned()),
            ("content-security-policy", policy),
            ("x-frame-options", "DENY".to_owned()),
            ("x-content-type-options", "nosniff".to_owned()),
            // With no referrer at all, browsers would send no origin with the form either.
            ("referrer-policy", "same-origin".to_owned()),
            ("cache-control", "no-store".to_owned()),
        ],
        body: html,
    }
}

/// Replies that a client cannot have access, where no redirect may be made.
pub(crate) fn refusal(status: u16, why: &str) -> Reply {
    let body = format!("<h1>No access was given</h1><p class=\"fault\">{}</p>", escaped(why));
    page(status, "No access was given - sidenote", &body, "")
}

/// Asks whether a client may have access. `vault` is the name of the vault, and what a rule lets the client do in it; `fault` says
/// what was wrong with the try before.
pub(crate) fn consent(
    status: u16,
    ticket: &Ticket,
    sealed: &str,
    (vault, rule): (&str, Option<&str>),
    fault: Option<&str>,
) -> Reply {
    let mut body = format!("<h1>Give {} access to your notes?</h1>", escaped(&ticket.client_name));
    if let Some(fault) = fault {
        body += &format!("<p class=\"fault\" role=\"alert\">{}</p>", escaped(fault));
    }
    body += "<dl>";
    let known = if client::is_address(&ticket.client_id) {
        format!("its address is {}", ticket.client_id)
    } else {
        "it names itself so; nobody has checked the name".to_owned()
    };
    for (name, value) in [
        ("Client", known.as_str()),
        ("Leads to", &redirect_uri::shown(&ticket.redirect_uri)),
        ("Notes", vault),
        ("Endpoint", &ticket.resource),
    ] {
        body += &format!("<dt>{name}</dt><dd>{}</dd>", escaped(value));
    }
    body += "</dl><p>Go on only if you have just begun to connect this client yourself. It will be able to:</p><ul>\
<li>search and read the notes (<code>read</code>)</li>";
    if ticket.scopes == Scopes::Write {
        body +=
            "<li>create, change, move and delete notes (<code>write</code>); each change can be undone</li>";
    }
    if let Some(rule) = rule {
        body += &format!("<li>by your rule, no more than this: {}</li>", escaped(rule));
    }
    body += "</ul><form method=\"post\" action=\"/authorize\" autocomplete=\"off\">";
    body += &format!("<input type=\"hidden\" name=\"ticket\" value=\"{}\">", escaped(sealed));
    if ticket.scopes == Scopes::Write {
        body += "<label><input type=\"checkbox\" name=\"write\" value=\"yes\" checked> It may change notes</label>";
    }
    body += "<label for=\"passphrase\">Passphrase of this server</label>\
<input id=\"passphrase\" type=\"password\" name=\"passphrase\" autocomplete=\"current-password\" maxlength=\"1024\" autofocus>\
<div class=\"row\"><button name=\"decision\" value=\"allow\">Allow</button>\
<button name=\"decision\" value=\"deny\">Deny</button></div></form>\
<p><small>Take access back at any time: <code>sidenote login revoke</code> on the computer with the notes.</small></p>";
    page(
        status,
        "Give access to your notes? - sidenote",
        &body,
        &redirect_uri::policy_source(&ticket.redirect_uri),
    )
}
