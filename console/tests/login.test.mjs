/** Signing in: the one-time link, the cookie, devices. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { startDaemonAndBrowser } from "./support/start.mjs";

const { daemon, browser } = await startDaemonAndBrowser();

test("a link signs one browser in, once", async () => {
  const url = await daemon.loginUrl();
  const page = await (await browser.newContext()).newPage();
  browser.watch(page);
  await page.goto(url);
  await page.waitForURL(/\/console\/?$/);
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
  const cookies = await page.context().cookies();
  assert.deepEqual(cookies.map((it) => [it.httpOnly, it.sameSite]), [[true, "Strict"]]);
  browser.assertNoProblems();

  const other = await (await browser.newContext()).newPage();
  await other.goto(url);
  await other.getByRole("alert").waitFor();
  assert.deepEqual(await other.context().cookies(), []);
});
