#!/usr/bin/env node
// Starts the octoprox binary of this platform in place of this process, or as a child where Node.js cannot do that.
"use strict";

const { spawn } = require("node:child_process");
const { optionalDependencies, version } = require("./package.json");

const name = `@octoprox/cli-${process.platform}-${process.arch}`;

function binary() {
  if (!(name in optionalDependencies)) {
    const known = Object.keys(optionalDependencies).map((name) => name.replace("@octoprox/cli-", ""));
    fail(`this package has no binary for ${process.platform}-${process.arch}, only for ${known.join(", ")}.`,
      "Build octoprox from source, or run it in a container.");
  }
  try {
    return require.resolve(`${name}/octoprox`);
  } catch {
    fail(`the package ${name} is missing. It holds the binary for this platform and is an optional dependency.`,
      "Optional dependencies were left out (--omit=optional), or the libc of this system is not glibc.",
      `Install it: npm install ${name}@${version}`);
  }
}

function fail(problem, ...next) {
  console.error([`octoprox: ${problem}`, ...next].join("\n"));
  process.exit(1);
}

function start(file, args) {
  if (process.execve) process.execve(file, [file, ...args], process.env);

  const child = spawn(file, args, { stdio: "inherit" });
  child.on("error", (error) => fail(`cannot start ${file}: ${error.message}`));
  // On a terminal, Ctrl-C reaches the child by itself. A second SIGINT would make it exit at once.
  process.on("SIGINT", () => process.stdin.isTTY || child.kill("SIGINT"));
  for (const signal of ["SIGTERM", "SIGHUP", "SIGQUIT"]) process.on(signal, () => child.kill(signal));
  child.on("exit", (code, signal) => {
    if (!signal) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

start(binary(), process.argv.slice(2));
