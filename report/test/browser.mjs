// Opens the pages in a folder in Chromium, and checks each view: node browser.mjs FOLDER SCREENSHOTS
//
// A page must not log errors, must not request anything, and must have no serious findings of axe. The pages are named
// after the checks below, which use them as a reader would.
import assert from "node:assert/strict";
import { mkdir, readFile, readdir } from "node:fs/promises";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { PATIENCE, accessible, eventually, launch, none, options, text, texts } from "./page.mjs";

const [folder, screenshots] = process.argv.slice(2);
await mkdir(screenshots, { recursive: true });

/** What a reader does on each page. */
const checks = {
  async review(page) {
    await page.getByRole("heading", { level: 1, name: "CREATE pods default/web" }).waitFor();
    const timeline = await texts(page.locator(".timeline tbody tr"));
    const find = (...words) => timeline.findIndex((row) => words.every((word) => row.includes(word)));
    assert(find("cost-labels", "failed open") >= 0, timeline.join("\n"));
    assert(find("sidecar-injector", "changed") < find("second round"), timeline.join("\n"));
    assert(find("Validation") < find("image-policy", "denied"), timeline.join("\n"));
    await text(page.locator("#skipped"), /only-deployments[\s\S]*rules/);
    // The second container is the injector's; the rewriter changed the image of the first.
    const blame = page.locator(".blame tr", { hasText: "registry.internal/nginx" });
    await text(blame, /registry-rewriter/);
    await blame.locator("summary").click();
    await eventually(() => text(blame, /before: client: nginx:1.27/));
    await options(page, "Show the object").selectOption("0");
    await eventually(() => none(page.locator(".blame tr", { hasText: "registry.internal" })));
    await page.locator(".timeline a", { hasText: "image-policy" }).click();
    const call = page.locator("details.call[open]");
    await call.waitFor();
    await eventually(() => text(call, /allowed: false[\s\S]*is not signed/));
  },
  async conditional(page) {
    await text(page.locator(".verdict"), /Depends on webhooks with unknown responses/);
    const facts = page.locator(".facts");
    await text(facts, /0 calls of 0 webhooks/);
    await text(facts, /Response unknown: \S+ could reject the request or change the object/);
    await text(facts, /If these webhooks allow the request and do not change the object: pod\/web created/);
    await text(facts, /Not read from the cluster: limitranges: the limits of Pods/);
    await text(page.locator(".timeline"), /response unknown/);
    await none(page.getByText("failed open:"));
  },
  async requests(page) {
    await page.getByRole("heading", { level: 1, name: /requests/ }).waitFor();
    await options(page, "Show").selectOption("rejected");
    await page.getByText("1 request", { exact: true }).waitFor();
    await page.locator("tbody a").first().click();
    await page.getByRole("heading", { level: 1, name: /pods/ }).waitFor();
    await eventually(async () => assert.equal(await page.evaluate(() => document.activeElement.tagName), "H1"));
  },
  async verify(page) {
    const verdicts = await texts(page.locator("#verdicts tbody tr"));
    assert(verdicts.some((row) => /injector[\s\S]*NOT idempotent/.test(row)), verdicts.join("\n"));
    await text(page.locator("#remarks"), /dry runs were not checked/);
    await text(page.locator("#denials"), /policy/);
    const first = page.locator(".finding").first();
    await text(first, /What to change/);
    await first.getByText("The smallest object that shows it").click();
    await eventually(() => text(first, /kind: Pod/));
    const downloads = page.waitForEvent("download");
    await first.getByRole("button", { name: /Download/ }).click();
    const proof = JSON.parse(await readFile(await (await downloads).path(), "utf8"));
    assert.equal(proof.check, "V01");
    const order = page.locator("#order");
    await text(order.locator("tbody"), /injector[\s\S]*overwriter[\s\S]*overwrites[\s\S]*metadata.annotations/);
    assert.equal(await order.locator("svg path.overwrites").count(), 2);
    await options(page, "Severity").selectOption("note");
    await eventually(() => none(page.locator(".finding.bad")));
    await options(page, "Severity").selectOption("all");
    await page.locator(".matrix button").first().click();
    await text(page.locator(".matrix .result"), /injector.*: has findings/);
  },
  async run(page) {
    await page.getByRole("heading", { level: 1, name: /scenarios in/ }).waitFor();
    await text(page.locator(".scenario[open] .steps").first(), /no request was sent/);
    const values = await page.locator(".scenario[open] .changes tr", { hasText: "metadata.labels.team" }).innerText();
    assert.match(values, /"red"[\s\S]*"blue"/);
    await page.getByRole("checkbox", { name: "failed" }).uncheck();
    await eventually(() => none(page.locator(".scenario", { hasText: "fails" })));
    await page.getByRole("checkbox", { name: "failed" }).check();
    await page.getByLabel("Filter").fill("without a request");
    await page.getByText("1 scenario", { exact: true }).waitFor();
  },
  async lint(page) {
    await page.getByRole("heading", { level: 1, name: /finding/ }).waitFor();
    await page.getByLabel("Filter").fill("nothing matches this");
    await page.getByText("0 findings", { exact: true }).waitFor();
    await page.getByLabel("Filter").fill("");
    const order = page.locator("#order");
    await text(order.locator("tbody"), /default-team[\s\S]*team-of-namespace[\s\S]*metadata.labels.team differs/);
    assert.equal(await order.locator("svg path.pair").count(), 1);
    assert.equal(await order.locator("svg text").count(), 2);
  },
  async several(page) {
    const overview = page.getByRole("heading", { level: 1, name: /reports/ });
    const links = page.locator("tbody a");
    let filters = 0;
    await overview.waitFor();
    for (let index = 0; index < await links.count(); index += 1) {
      await links.nth(index).click();
      await overview.waitFor({ state: "detached" });
      const filter = page.getByLabel("Filter", { exact: true });
      if (await filter.count() === 1) {
        // The heading gets the focus when the view changes, but not while the user types.
        filters += 1;
        await filter.pressSequentially("pod");
        assert.equal(await filter.inputValue(), "pod");
      }
      await page.getByRole("navigation", { name: "Breadcrumb" }).getByRole("link", { name: "Reports" }).click();
      await overview.waitFor();
    }
    assert(filters > 0);
  },
  async hostile(page) {
    await page.getByRole("heading", { level: 1 }).waitFor();
    // Opened details have further details in them.
    const closed = page.locator("#app details:not([open])");
    for (let count = await closed.count(); count > 0; count = await closed.count()) {
      await closed.first().locator("> summary").click();
    }
    assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
    assert.equal(await page.locator("#app script, #app img").count(), 0);
  },
  async large(page) {
    await page.getByRole("heading", { level: 1 }).waitFor();
    assert(await page.locator("#skipped").getByRole("button", { name: /Show/ }).isVisible());
  },
};

const browser = await launch();
let passed = 0;
for (const file of (await readdir(folder)).filter((it) => it.endsWith(".html")).sort()) {
  const name = file.replace(/\.html$/, "");
  const url = pathToFileURL(resolve(folder, file)).href;
  for (const colorScheme of ["light", "dark"]) {
    const context = await browser.newContext({ colorScheme, viewport: { width: 1280, height: 900 } });
    context.setDefaultTimeout(PATIENCE);
    const page = await context.newPage();
    const problems = [];
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && problems.push(message.text()));
    page.on("pageerror", (error) => problems.push(error.stack));
    page.on("request", (request) => /^(file|data|blob):/.test(request.url()) || problems.push(request.url()));
    await page.goto(url);
    await page.locator("#app h1").waitFor();
    await page.screenshot({ path: `${screenshots}/${name}-${colorScheme}.png`, fullPage: name !== "large" });
    const check = checks[name];
    assert(check, `${file} has no check`);
    if (name !== "large") await accessible(page, name);
    await check(page);
    if (name !== "large") await accessible(page, `${name} after its check`);
    await page.screenshot({ path: `${screenshots}/${name}-${colorScheme}-after.png`, fullPage: name !== "large" });
    await page.evaluate(() => {
      document.getElementById("summary").hidden = false;
      document.getElementById("app").hidden = true;
    });
    if (name !== "large") await accessible(page, `the summary of ${name}`);
    assert.deepEqual(problems, [], name);
    await context.close();
  }
  const context = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  await page.goto(url);
  assert(await page.locator("#summary h1").isVisible());
  assert((await page.locator("#summary").innerText()).length > 200, `${name} has no summary`);
  await page.screenshot({ path: `${screenshots}/${name}-summary.png` });
  await context.close();
  passed += 1;
}
await browser.close();
console.log(`${passed} passed, 0 failed`);
