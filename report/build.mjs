// Bundles src into command/src/html_report/assets, which the command embeds. With --check, compares instead of writing.
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const MAX_BYTES = 150 * 1024;
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const assets = here("../command/src/html_report/assets/");

const notices = await Promise.all(
  ["preact", "diff"].map(async (name) => {
    const { version } = JSON.parse(await readFile(here(`node_modules/${name}/package.json`), "utf8"));
    const license = await readFile(here(`node_modules/${name}/LICENSE`), "utf8");
    return `${name} ${version}\n\n${license.trim()}`;
  }),
);
const banner = `/*!\nContains parts of these packages.\n\n${notices.join("\n\n---\n\n")}\n*/`;

const { outputFiles } = await build({
  entryPoints: [here("src/main.jsx"), here("src/style.css")],
  entryNames: "[name]",
  outdir: assets,
  write: false,
  bundle: true,
  minify: true,
  charset: "ascii",
  target: ["chrome103", "firefox113", "safari16.4"],
  format: "iife",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
});
const text = (ending) => outputFiles.find((file) => file.path.endsWith(ending)).text.trim();
const bundles = {
  "bundle.js": `${banner}\n${text(".js")}\n`,
  "bundle.css": `${text(".css")}\n`,
};

let bytes = 0;
for (const [name, content] of Object.entries(bundles)) {
  bytes += Buffer.byteLength(content);
  if (/<\/(script|style)|<!--/i.test(content)) throw new Error(`${name} cannot be embedded in HTML`);
  if (process.argv.includes("--check")) {
    if ((await readFile(assets + name, "utf8")) !== content) {
      throw new Error(`${name} does not match its sources: run npm run build`);
    }
  } else {
    await writeFile(assets + name, content);
  }
}
if (bytes > MAX_BYTES) throw new Error(`the bundle has ${bytes} bytes: at most ${MAX_BYTES} are allowed`);
console.log(`${bytes} bytes`);
