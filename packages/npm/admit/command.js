#!/usr/bin/env node
// Runs the admit binary for this platform.
import { spawn } from "node:child_process";
import { binary } from "./binary.js";

let path;
try {
  path = binary();
} catch (error) {
  console.error(`error: ${error.message}`);
  process.exit(3);
}
const child = spawn(path, process.argv.slice(2), { stdio: "inherit" });
const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
for (const signal of signals) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`error: ${error.message}`);
  process.exit(3);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  for (const name of signals) process.removeAllListeners(name);
  process.kill(process.pid, signal);
});
