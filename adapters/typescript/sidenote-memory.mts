/**
 * The memory tool of the Claude API (`memory_20250818`) with the notes of sidenote as its files.
 *
 *     const memory = new SidenoteMemory({ vault: "/home/me/notes" });
 *     await client.beta.messages.toolRunner({ model, messages, tools: [memory.tool()] });
 *
 * The tool keeps one process `sidenote memory-tool`, which answers a command a line.
 */
import { spawn, type ChildProcessByStdio } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";

import { betaMemoryTool, type MemoryToolHandlers } from "@anthropic-ai/sdk/helpers/beta/memory";
import { ToolError } from "@anthropic-ai/sdk/lib/tools/ToolError";

export type Options = { vault: string; folder?: string; program?: string };

type Waiting = { resolve: (text: string) => void; reject: (error: Error) => void };

export class SidenoteMemory {
  private readonly process: ChildProcessByStdio<Writable, Readable, null>;
  private readonly waiting: Waiting[] = [];

  constructor({ vault, folder, program = "sidenote" }: Options) {
    const choice = folder === undefined ? [] : ["--folder", folder];
    const args = ["--vault", vault, "memory-tool", ...choice];
    this.process = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
    createInterface({ input: this.process.stdout }).on("line", (line) => this.answer(line));
    this.process.on("error", (error) => this.end(error));
    this.process.on("close", () => this.end(new Error("sidenote has ended")));
    this.process.stdin.on("error", (error) => this.end(error));
  }

  /** Returns the tool for the SDK. */
  tool() {
    const run = (command: object) => this.run(command);
    const handlers: MemoryToolHandlers = {
      view: run, create: run, str_replace: run, insert: run, delete: run, rename: run,
    };
    return betaMemoryTool(handlers);
  }

  /** Ends the process. */
  close(): void {
    this.process.stdin.end();
  }

  private run(command: object): Promise<string> {
    return new Promise((resolve, reject) => {
      if (this.process.exitCode !== null) {
        return reject(new Error("sidenote has ended"));
      }
      this.waiting.push({ resolve, reject });
      this.process.stdin.write(JSON.stringify(command) + "\n");
    });
  }

  private answer(line: string): void {
    const said = JSON.parse(line) as { content?: string; error?: string };
    const next = this.waiting.shift();
    if (said.error === undefined) {
      next?.resolve(said.content ?? "");
    } else {
      next?.reject(new ToolError(said.error));
    }
  }

  private end(error: Error): void {
    this.waiting.splice(0).forEach((waiting) => waiting.reject(error));
  }
}
