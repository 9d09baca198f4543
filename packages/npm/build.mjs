// Writes the npm packages: admit, and one with the binary for each platform.
//   node build.mjs --out DIR PLATFORM=BINARY...
import { chmodSync, copyFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

// The platforms of the releases, with the names of Node.js.
const PLATFORMS = {
  "linux-x86_64": { os: "linux", cpu: "x64" },
  "linux-aarch64": { os: "linux", cpu: "arm64" },
  "darwin-x86_64": { os: "darwin", cpu: "x64" },
  "darwin-arm64": { os: "darwin", cpu: "arm64" },
};

const here = fileURLToPath(new URL(".", import.meta.url));
const root = join(here, "../..");
const version = /^version = "(.*)"$/m.exec(readFileSync(join(root, "Cargo.toml"), "utf8"))[1];
const { values, positionals } = parseArgs({ options: { out: { type: "string" } }, allowPositionals: true });
if (!values.out) throw new Error("--out is required");

const name = ({ os, cpu }) => `@admit-dev/${os}-${cpu}`;
const common = { version, license: "Apache-2.0", repository: "github:admit-dev/admit" };

function write(folder, manifest) {
  copyFileSync(join(root, "LICENSE"), join(folder, "LICENSE"));
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest, null, 2) + "\n");
}

const main = join(values.out, "admit");
cpSync(join(here, "admit"), main, { recursive: true });
copyFileSync(join(here, "README.md"), join(main, "README.md"));
write(main, {
  name: "@admit-dev/admit",
  description: "Test admission webhooks as kube-apiserver calls them, without a cluster",
  ...common,
  type: "module",
  bin: { admit: "command.js" },
  exports: { ".": { types: "./index.d.ts", default: "./index.js" } },
  engines: { node: ">=18" },
  optionalDependencies: Object.fromEntries(Object.values(PLATFORMS).map((platform) => [name(platform), version])),
});

for (const argument of positionals) {
  const [platform, binary] = argument.split("=");
  const names = PLATFORMS[platform];
  if (!names || !binary) throw new Error(`invalid argument ${argument}: must be PLATFORM=BINARY`);
  const folder = join(values.out, `${names.os}-${names.cpu}`);
  mkdirSync(folder, { recursive: true });
  copyFileSync(binary, join(folder, "admit"));
  chmodSync(join(folder, "admit"), 0o755);
  write(folder, {
    name: name(names),
    description: `The admit binary for ${names.os} on ${names.cpu}`,
    ...common,
    os: [names.os],
    cpu: [names.cpu],
  });
}
