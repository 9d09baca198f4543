// What the tests in Chromium have in common.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const launch = () =>
  chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });

/** How long the page may take for anything. */
export const PATIENCE = 60_000;

/** Repeats assertions until they hold, because the page changes after an action of the reader has returned. */
export async function eventually(assertions) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    try {
      return await assertions();
    } catch (error) {
      if (Date.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

export const text = async (locator, expected) => assert.match(await locator.innerText(), expected);
export const none = async (locator) => assert.equal(await locator.count(), 0);
export const texts = (locator) => locator.allInnerTexts();
export const options = (page, label) => page.getByLabel(label, { exact: true });

/** Fails if axe finds a serious problem in the page. */
export async function accessible(page, name) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const serious = violations.filter((it) => ["serious", "critical"].includes(it.impact));
  const report = serious.map((it) => `${it.id}: ${it.help}\n  ${it.nodes.slice(0, 3).map((node) => node.html).join("\n  ")}`);
  assert.deepEqual(report, [], `${name} is not accessible`);
}
