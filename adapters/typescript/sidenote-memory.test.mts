/** Runs the adapter with the SDK and the program: `SIDENOTE=PATH node --test sidenote-memory.test.mts`. */
import assert from "node:assert";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { SidenoteMemory } from "./sidenote-memory.mts";

test("commands are answered", async () => {
  const vault = mkdtempSync(join(tmpdir(), "sidenote-"));
  const memory = new SidenoteMemory({ vault, folder: "Agent", program: process.env["SIDENOTE"] ?? "sidenote" });
  const tool = memory.tool();
  const path = "/memories/a.txt";
  const create = { command: "create", path, file_text: "one\ntwo\n" } as const;
  assert.equal(await tool.run(create), `File created successfully at: ${path}`);
  await assert.rejects(async () => tool.run(create), /File \/memories\/a.txt already exists/);
  const shown = `Here's the content of ${path} with line numbers:\n     1\tone`;
  assert.equal(await tool.run({ command: "view", path, view_range: [1, 1] }), shown);
  await tool.run({ command: "insert", path, insert_line: 0, insert_text: "zero" });
  await tool.run({ command: "rename", old_path: path, new_path: "/memories/b/c.txt" });
  assert.equal(readFileSync(join(vault, "Agent/b/c.txt"), "utf8"), "zero\none\ntwo\n");
  await tool.run({ command: "delete", path: "/memories/b" });
  memory.close();
});
