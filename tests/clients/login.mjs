// Lets both TypeScript SDKs log in at the authorization server of the program: login.mjs PROGRAM. The person at the page of
// consent is played by two requests, as a browser sends them.
import { execFileSync } from "node:child_process";
import * as modern from "@modelcontextprotocol/client";
import * as sdk from "@modelcontextprotocol/sdk/client/index.js";
import * as sdkHttp from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { program, served } from "./server.mjs";

const passphrase = "four words of a list";
const redirect = "http://127.0.0.1:1/callback";
const name = { name: "sidenote-clients", version: "1" };
const clients = {
  client: { Client: modern.Client, Transport: modern.StreamableHTTPClientTransport },
  sdk: { Client: sdk.Client, Transport: sdkHttp.StreamableHTTPClientTransport },
};

function check(holds, what) {
  if (!holds) throw new Error(what);
}

/** Opens the page of consent, enters the passphrase, and gives the parameters of the redirect. */
async function consent(url) {
  const page = await fetch(url);
  const html = await page.text();
  check(page.status === 200 && !html.includes("<script"), html);
  const [, ticket] = /name="ticket" value="([^"]+)"/.exec(html);
  const [cookie] = page.headers.get("set-cookie").split(";");
  const reply = await fetch(new URL("/authorize", url), {
    method: "POST",
    redirect: "manual",
    headers: { cookie, origin: new URL(url).origin },
    body: new URLSearchParams({ ticket, passphrase, write: "yes", decision: "allow" }),
  });
  check(reply.status === 303, await reply.text());
  return new URL(reply.headers.get("location")).searchParams;
}

/** What an SDK stores and asks for. */
class Provider {
  redirectUrl = redirect;
  clientMetadata = { client_name: "sidenote-clients", redirect_uris: [redirect], token_endpoint_auth_method: "none" };
  state = () => "a state";
  clientInformation = () => this.client;
  saveClientInformation = (client) => (this.client = client);
  tokens = () => this.stored;
  saveTokens = (tokens) => (this.stored = tokens);
  codeVerifier = () => this.verifier;
  saveCodeVerifier = (verifier) => (this.verifier = verifier);
  discoveryState = () => this.discovered;
  saveDiscoveryState = (discovered) => (this.discovered = discovered);
  redirectToAuthorization = (url) => (this.opened = url);
}

for (const [label, { Client, Transport }] of Object.entries(clients)) {
  const setPassphrase = (env) => execFileSync(program, ["login", "passphrase"], { env, input: passphrase, stdio: "pipe" });
  await served(
    "http",
    "notes",
    async (url) => {
      const provider = new Provider();
      const transport = () => new Transport(new URL(url), { authProvider: provider });
      const first = transport();
      const refused = await new Client(name).connect(first).then(() => false, () => true);
      check(refused && provider.opened, "the client was not told to log in");
      const parameters = await consent(provider.opened);
      check(parameters.get("state") === "a state", "the state is another one");
      check(parameters.get("iss") === new URL(url).origin, "the issuer is another one");
      await first.finishAuth(parameters.get("code"), parameters.get("iss"));
      const client = new Client(name);
      await client.connect(transport());
      const found = await client.callTool({ name: "search_notes", arguments: { query: "river" } });
      check(found.structuredContent.results.length > 0, "nothing was found");
      // An access token that counts no more is renewed.
      const { refresh_token } = provider.stored;
      provider.stored = { ...provider.stored, access_token: "expired" };
      check((await client.listTools()).tools.length > 0, "no tools are listed");
      check(provider.stored.refresh_token !== refresh_token, "the refresh token was not replaced");
      await client.close();
      console.log(`${label}: logged in, called a tool and renewed its token`);
    },
    ["--login"],
    setPassphrase,
  );
}
