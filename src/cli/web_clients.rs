//! Clients of MCP that run at their makers and reach the server over HTTP: the steps by which a person connects them.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use serde::Serialize;
use sidenote_base::platform::Shell;

use super::clients::Client;

/// A client that runs at its maker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum WebClient {
    /// ChatGPT: the steps for a connector.
    Chatgpt,
    /// Claude on the web, on the phone and in the desktop app: the steps for a connector.
    ClaudeWeb,
}

/// A client of `mcp config`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigClient {
    /// A program that starts the server.
    Program(Client),
    /// A client that reaches the server.
    Web(WebClient),
}

/// All clients, in the order of the help.
const CLIENTS: [ConfigClient; 10] = [
    ConfigClient::Program(Client::ClaudeCode),
    ConfigClient::Program(Client::ClaudeDesktop),
    ConfigClient::Program(Client::Cursor),
    ConfigClient::Program(Client::Vscode),
    ConfigClient::Program(Client::Codex),
    ConfigClient::Program(Client::Gemini),
    ConfigClient::Program(Client::Windsurf),
    ConfigClient::Program(Client::Zed),
    ConfigClient::Web(WebClient::Chatgpt),
    ConfigClient::Web(WebClient::ClaudeWeb),
];

impl ValueEnum for ConfigClient {
    fn value_variants<'a>() -> &'a [Self] {
        &CLIENTS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Program(client) => client.to_possible_value(),
            Self::Web(client) => client.to_possible_value(),
        }
    }
}

/// The steps by which a person connects a client.
#[derive(Debug, Serialize)]
pub(super) struct Steps {
    /// The steps, in order.
    pub(super) steps: Vec<String>,
}

impl WebClient {
    /// Returns the steps. `public_url` is the address by which the client reaches the server, if it is known; `vaults` are the
    /// values of `--vault`, and `names` the names in them, of which each has an endpoint.
    pub(super) fn steps(self, public_url: Option<&str>, vaults: &[String], names: &[String]) -> Steps {
        let address = public_url.unwrap_or("https://YOUR-ADDRESS").trim_end_matches('/');
        let endpoints: Vec<String> = match names {
            [] => vec![format!("{address}/mcp")],
            names => names.iter().map(|name| format!("{address}/v/{name}/mcp")).collect(),
        };
        let endpoint = endpoints.join(" (then again with ") + &")".repeat(endpoints.len() - 1);
        let mut words = vec!["sidenote".to_owned()];
        words.extend(vaults.iter().flat_map(|vault| ["--vault".to_owned(), vault.clone()]));
        words.extend(["mcp", "--http", "--login", "--public-url", address].map(str::to_owned));
        if self == Self::Chatgpt {
            words.extend(["--toolset", "connector"].map(str::to_owned));
        }
        let command = Shell::SYSTEM.line(&words);
        let enter = match self {
            Self::Chatgpt => format!(
                "In ChatGPT, open Settings, Apps & Connectors, Advanced settings, and turn on the developer mode. Choose Create, enter a name and the address {endpoint}, choose OAuth, and connect."
            ),
            Self::ClaudeWeb => format!(
                "In Claude, open Settings, Connectors, and choose Add custom connector. Enter a name and the address {endpoint}, leave the client id and secret empty, and choose Connect."
            ),
        };
        let steps = vec![
            "Set a passphrase: sidenote login passphrase".to_owned(),
            format!(
                "Let a tunnel or proxy lead {address} to 127.0.0.1:3000, for example: tailscale funnel --bg 3000"
            ),
            format!("Start the server: {command}"),
            enter,
            "Your browser opens the page of your server: check that its address is yours, enter the passphrase, and choose Allow.".to_owned(),
            "See who has access with `sidenote login list`, and take it back with `sidenote login revoke`.".to_owned(),
        ];
        Steps { steps }
    }
}

impl Steps {
    /// Returns the steps as numbered lines.
    pub(super) fn text(&self) -> String {
        let line = |(at, step): (usize, &String)| format!("{}. {step}\n", at + 1);
        self.steps.iter().enumerate().map(line).collect()
    }
}
