// What the scripts for Node share: a vault of its own for each server, and the calls of the table.
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const here = import.meta.dirname;
const anId = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/;

export const program = process.argv[2];
export const table = JSON.parse(readFileSync(join(here, "calls.json"), "utf8"));

/** Lets `use` work with a server of these tools: how to start one, or where one is. `more` are other
 * arguments, and `prepare` gets the environment before the server starts. */
export async function served(transport, tools, use, more = [], prepare = () => {}) {
  const folder = mkdtempSync(join(tmpdir(), "sidenote-"));
  cpSync(join(here, "example-vault"), join(folder, "vault"), { recursive: true });
  const args = ["--vault", join(folder, "vault"), "mcp", "--toolset", tools, ...more];
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    SIDENOTE_EMBED_PROVIDER: "none",
    SIDENOTE_MEMORY_CONVERSATIONS: join(here, "sessions"),
    MEMORY_BACKUP_PATH: join(folder, "backups"),
  };
  try {
    prepare(env);
    if (transport === "stdio") return await use({ command: program, args, env });
    const server = spawn(program, [...args, "--http", "127.0.0.1:0"], { env, stdio: ["ignore", "ignore", "pipe"] });
    const ended = new Promise((resolve) => server.once("exit", resolve));
    try {
      for await (const line of createInterface({ input: server.stderr })) {
        const [url] = /http:\/\/\S+\/mcp/.exec(line) ?? [];
        if (url) return await use(url);
      }
      throw new Error("the server ended");
    } finally {
      server.kill();
      const code = await ended;
      if (code !== 0) throw new Error(`the server ended with ${code}`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Fails where the table and the tools that are listed are not the same. */
export function compare(listed, calls) {
  const known = new Set(calls.map((call) => call.tool));
  const unknown = listed.filter((name) => !known.has(name));
  const missing = [...known].filter((name) => !listed.includes(name));
  if (unknown.length + missing.length > 0) {
    throw new Error(`not in the table: ${unknown}; not served: ${missing}`);
  }
}

/** Makes all calls of a set; `call` makes one. */
export async function callAll(calls, call) {
  const kept = {};
  const filled = (_, value) =>
    typeof value === "string" && value.startsWith("$") ? kept[value.slice(1)] : value;
  for (const { tool, arguments: given, keep } of calls) {
    const result = await call(tool, JSON.parse(JSON.stringify(given, filled)));
    const text = JSON.stringify(result);
    if (result.isError) throw new Error(`${tool}: ${text}`);
    if (keep) kept[keep] = anId.exec(text)[0];
  }
  return calls.length;
}
