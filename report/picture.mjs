// Draws the picture in docs/guide/report.md: node picture.mjs PAGE PICTURE, where PAGE is the report of the example.
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [page, picture] = process.argv.slice(2);
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const view = await browser.newPage({ colorScheme: "light", viewport: { width: 1120, height: 900 } });
await view.goto(pathToFileURL(resolve(page)).href);
const { y, height } = await view.locator(".timeline").boundingBox();
await view.screenshot({ path: picture, fullPage: true, clip: { x: 0, y: 0, width: 1120, height: y + height + 40 } });
await browser.close();
