// Lists and calls every tool of every set with the inspector's command line, over HTTP: inspector.mjs PROGRAM.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

import { callAll, compare, served, table } from "./server.mjs";

const run = promisify(execFile);
const inspector = join(
  import.meta.dirname,
  "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js",
);

async function inspect(url, era, ...args) {
  const all = [inspector, "--cli", url, "--transport", "http", "--protocol-era", era, "--format", "json", ...args];
  // With --strict it ends with 6 where a schema is not portable, and says which.
  const { stdout } = await run(process.execPath, all, { maxBuffer: 1 << 26 });
  return JSON.parse(stdout).result;
}

for (const era of ["legacy", "modern"]) {
  let count = 0;
  for (const [tools, calls] of Object.entries(table)) {
    await served("http", tools, async (url) => {
      const listed = await inspect(url, era, "--method", "tools/list", "--strict");
      compare(listed.tools.map((tool) => tool.name), calls);
      count += await callAll(calls, (tool, given) => {
        const pairs = Object.entries(given).flatMap(([key, value]) => [
          "--tool-arg",
          `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`,
        ]);
        return inspect(url, era, "--method", "tools/call", "--tool-name", tool, ...pairs);
      });
    });
  }
  console.log(`inspector ${era}: ${count} calls, every schema portable`);
}
