// Drives Chromium for browser.py: a command of JSON in each line of its input, a reply of JSON in each line of its output.
"use strict";
const { createRequire } = require("module");
const path = require("path");
const readline = require("readline");

const [packages, program] = process.argv.slice(2);
const { chromium } = createRequire(path.join(packages, "package.json"))("playwright-core");

// What the page and the browser complain about since the page was opened, or since the last question.
let problems = [];
let page = null;

const commands = {
  async open({ url, width, height, dark, script, password, scale }) {
    if (page) await page.context().close();
    problems = [];
    const context = await browser.newContext({
      viewport: { width, height },
      deviceScaleFactor: scale,
      colorScheme: dark ? "dark" : "light",
      javaScriptEnabled: script,
      httpCredentials: password ? { username: "larder", password } : undefined,
    });
    page = await context.newPage();
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) problems.push(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => problems.push(`script: ${error}`));
    page.on("requestfailed", (request) => problems.push(`request: ${request.url()} ${request.failure().errorText}`));
    page.on("response", (answer) => answer.status() >= 400 && problems.push(`${answer.status()}: ${answer.url()}`));
    if (script) {
      await page.addInitScript(() => {
        addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective}`));
      });
    }
    const answer = await page.goto(url);
    return { status: answer.status(), bytes: (await answer.body()).length, fields: answer.headers() };
  },
  run: ({ code }) => page.evaluate(code),
  html: () => settled(() => page.content()),
  press: ({ key }) => page.keyboard.press(key),
  click: ({ selector }) => page.click(selector),
  picture: ({ file, full }) => page.screenshot({ path: file, fullPage: full }).then(() => true),
  problems: () => problems.splice(0),
};

// A page that loads itself again has no content for a moment.
async function settled(ask) {
  for (let left = 50; ; left--) {
    try {
      return await ask();
    } catch (error) {
      if (left === 0 || !String(error).includes("navigating")) throw error;
      await new Promise((done) => setTimeout(done, 100));
    }
  }
}

let browser;
(async () => {
  // As root, Chromium has no sandbox; it shows nothing but the pages of these tests.
  browser = await chromium.launch({ executablePath: program, chromiumSandbox: process.getuid() !== 0 });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const command = JSON.parse(line);
    try {
      console.log(JSON.stringify({ value: (await commands[command.do](command)) ?? null }));
    } catch (error) {
      console.log(JSON.stringify({ error: String(error) }));
    }
  }
  await browser.close();
})();
