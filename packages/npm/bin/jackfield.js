#!/usr/bin/env node
/**
 * Starts the program of this platform, which npm has installed as an optional dependency: `@jackfield/linux-x64` and
 * others. Nothing is downloaded, neither here nor by an install script.
 */
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const platform = `${process.platform}-${process.arch}`;
const supported = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"];

function fail(message) {
  console.error(`error: ${message}`);
  process.exit(1);
}

function findProgram() {
  if (!supported.includes(platform)) {
    const hint = process.platform === "win32" ? "use it in WSL 2" : "build it with cargo";
    fail(`there is no package of jackfield for ${platform}; ${hint}`);
  }
  try {
    return require.resolve(`@jackfield/${platform}/bin/jackfield`);
  } catch {
    fail(`the package @jackfield/${platform} is missing; install jackfield without --omit=optional`);
  }
}

let child;

// A terminal sends SIGINT and SIGQUIT to both processes. Forwarding them would count as a second Ctrl-C.
for (const signal of ["SIGINT", "SIGQUIT"]) process.on(signal, () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));

child = spawn(findProgram(), process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => fail(`failed to start ${child.spawnfile}: ${error.message}`));
child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
