// Lists and calls every tool of every set with both TypeScript SDKs: typescript.mjs PROGRAM.
import * as modern from "@modelcontextprotocol/client";
import * as modernStdio from "@modelcontextprotocol/client/stdio";
import * as sdk from "@modelcontextprotocol/sdk/client/index.js";
import * as sdkStdio from "@modelcontextprotocol/sdk/client/stdio.js";
import * as sdkHttp from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { callAll, compare, served, table } from "./server.mjs";

const name = { name: "sidenote-clients", version: "1" };
const client = (mode) => ({
  client: () => new modern.Client(name, { versionNegotiation: { mode } }),
  stdio: modernStdio.StdioClientTransport,
  http: modern.StreamableHTTPClientTransport,
});
const clients = {
  "client legacy": client("legacy"),
  "client modern": client({ pin: "2026-07-28" }),
  "client auto": client("auto"),
  sdk: {
    client: () => new sdk.Client(name),
    stdio: sdkStdio.StdioClientTransport,
    http: sdkHttp.StreamableHTTPClientTransport,
  },
};

function check(holds, what) {
  if (!holds) throw new Error(what);
}

/** Asks for everything that is no tool. */
async function lookAround(client) {
  const { resources } = await client.listResources();
  check(resources.length > 50, "resources are missing");
  for (const { uri } of resources.slice(0, 20)) {
    check((await client.readResource({ uri })).contents.length > 0, uri);
  }
  check((await client.listResourceTemplates()).resourceTemplates.length > 0, "a template is missing");
  const { prompts } = await client.listPrompts();
  check(prompts.some((prompt) => prompt.name === "recall"), "prompts are missing");
  const prompt = await client.getPrompt({ name: "recall", arguments: { topic: "river" } });
  check(prompt.messages.length > 0, "a prompt is empty");
  const ref = { type: "ref/prompt", name: "link_suggestions" };
  const { completion } = await client.complete({ ref, argument: { name: "note", value: "Inb" } });
  check(completion.values.includes("Inbox"), "a name is not completed");
}

for (const [which, kind] of Object.entries(clients)) {
  for (const transport of ["stdio", "http"]) {
    let count = 0;
    for (const [tools, calls] of Object.entries(table)) {
      await served(transport, tools, async (server) => {
        const client = kind.client();
        const place = transport === "stdio" ? new kind.stdio(server) : new kind.http(new URL(server));
        await client.connect(place);
        const listed = await client.listTools();
        compare(listed.tools.map((tool) => tool.name), calls);
        count += await callAll(calls, (tool, given) => client.callTool({ name: tool, arguments: given }));
        await lookAround(client);
        await client.close();
      });
    }
    console.log(`typescript ${which} ${transport}: ${count} calls`);
  }
}
