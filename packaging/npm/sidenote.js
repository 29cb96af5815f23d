#!/usr/bin/env node
// Starts the program of the package for this platform, with the same arguments, input and output.
"use strict";
const { spawn } = require("node:child_process");
const os = require("node:os");

const name = process.platform === "win32" ? "sidenote.exe" : "sidenote";
const base = `@sidenote/${process.platform}-${process.arch}`;
const candidates = [base];
if (process.platform === "linux") {
  // npm installs the package for this libc; where both are there, that of glibc needs glibc.
  const glibc = process.report.getReport().header.glibcVersionRuntime;
  candidates.splice(glibc ? 1 : 0, 0, `${base}-musl`);
}

let program;
for (const candidate of candidates) {
  try {
    program = require.resolve(`${candidate}/bin/${name}`);
    break;
  } catch (error) {
    if (error.code !== "MODULE_NOT_FOUND") throw error;
  }
}
if (!program) {
  console.error(`error: sidenote has no package for ${process.platform} ${process.arch}, or it is not installed
hint: install without --omit=optional and --no-optional, or build sidenote from source`);
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit", windowsHide: true });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`error: cannot start ${program}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(signal ? 128 + os.constants.signals[signal] : code));
