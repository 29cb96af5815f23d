// Logs in with both TypeScript SDKs and calls every tool: typescript.mjs ADDRESS CALLS KIND, where KIND is sdk or client.
import { readFileSync } from "node:fs";

import * as modern from "@modelcontextprotocol/client";
import * as sdk from "@modelcontextprotocol/sdk/client/index.js";
import * as sdkAuth from "@modelcontextprotocol/sdk/client/auth.js";
import * as sdkHttp from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [address, calls, kind] = process.argv.slice(2);
const table = JSON.parse(readFileSync(calls, "utf8"));
const redirect = "http://127.0.0.1:1/callback";
const anId = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/;

/** Follows the provider's redirects as a browser does, and returns the code that the client gets. */
async function browse(url) {
  const cookies = new Map();
  for (let at = 0; at < 20; at += 1) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(url, { redirect: "manual", headers: { cookie } });
    for (const line of response.headers.getSetCookie()) {
      const [name, ...value] = line.split(";")[0].split("=");
      if (value.join("=") === "") cookies.delete(name);
      else cookies.set(name, value.join("="));
    }
    const location = response.headers.get("location");
    if (!location) throw new Error(`${url}: ${response.status} ${await response.text()}`);
    url = new URL(location, url);
    if (url.href.startsWith(redirect)) {
      if (!url.searchParams.get("code")) throw new Error(url.href);
      return url.searchParams;
    }
  }
  throw new Error(`too many redirects, the last one to ${url}`);
}

/** What a client keeps of a login. */
class Login {
  asked = [];
  get redirectUrl() {
    return redirect;
  }
  get clientMetadata() {
    return {
      client_name: "sidenote-login",
      redirect_uris: [redirect],
      application_type: "native",
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    };
  }
  clientInformation() {
    return this.information;
  }
  saveClientInformation(information) {
    this.information = information;
  }
  tokens() {
    return this.saved;
  }
  saveTokens(tokens) {
    this.saved = tokens;
  }
  saveCodeVerifier(verifier) {
    this.verifier = verifier;
  }
  codeVerifier() {
    return this.verifier;
  }
  async redirectToAuthorization(url) {
    this.asked.push(url);
    this.answer = await browse(url);
  }
}

const { Client, Transport, Unauthorized } =
  kind === "sdk"
    ? { Client: sdk.Client, Transport: sdkHttp.StreamableHTTPClientTransport, Unauthorized: sdkAuth.UnauthorizedError }
    : { Client: modern.Client, Transport: modern.StreamableHTTPClientTransport, Unauthorized: modern.UnauthorizedError };

const login = new Login();
const name = { name: "sidenote-login", version: "1" };

/** Connects, and logs in where that is asked for. */
async function connected() {
  for (let at = 0; at < 2; at += 1) {
    const client = new Client(name);
    const transport = new Transport(new URL(address), { authProvider: login });
    try {
      await client.connect(transport);
      return client;
    } catch (error) {
      if (!(error instanceof Unauthorized)) throw error;
      await finish(transport);
    }
  }
  throw new Error("the login is not accepted");
}

async function finish(transport) {
  // The newer client also checks who answered (RFC 9207).
  if (kind === "sdk") await transport.finishAuth(login.answer.get("code"));
  else await transport.finishAuth(login.answer);
}

/** Calls a tool; where its scope is missing, the client asks for it and the call is made again. */
async function call(state, tool, given) {
  try {
    return await state.client.callTool({ name: tool, arguments: given });
  } catch (error) {
    if (!(error instanceof Unauthorized)) throw error;
    await finish(state.client.transport);
    await state.client.close();
    state.client = await connected();
    return state.client.callTool({ name: tool, arguments: given });
  }
}

const state = { client: await connected() };
const listed = (await state.client.listTools()).tools.map((tool) => tool.name);
const known = new Set(table.map((call) => call.tool));
if (listed.length !== known.size || !listed.every((tool) => known.has(tool))) {
  throw new Error(`the tools are ${listed}`);
}
const kept = {};
const filled = (_, value) => (typeof value === "string" && value.startsWith("$") ? kept[value.slice(1)] : value);
for (const { tool, arguments: given, keep } of table) {
  const result = await call(state, tool, JSON.parse(JSON.stringify(given, filled)));
  const text = JSON.stringify(result);
  if (result.isError) throw new Error(`${tool}: ${text}`);
  if (keep) kept[keep] = anId.exec(text)[0];
}
await state.client.close();
const scopes = login.asked.map((url) => url.searchParams.get("scope"));
const resources = new Set(login.asked.map((url) => url.searchParams.get("resource")));
if (resources.size !== 1 || !resources.has(address)) throw new Error(`the resources are ${[...resources]}`);
console.log(`typescript ${kind}: ${table.length} calls, scopes asked for: ${scopes.join(" | ")}`);
