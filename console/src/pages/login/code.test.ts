// @vitest-environment jsdom

import { afterEach, expect, test } from "vitest";
import { parseCode, suggestDeviceName, takeCodeFromAddress } from "./code";

afterEach(() => history.replaceState(null, "", "/"));

test("a code is read from a link, a fragment or as it is", () => {
  expect(parseCode("http://127.0.0.1:7456/console/login#code=Ab_3-x")).toBe("Ab_3-x");
  expect(parseCode("  Ab_3-x\n")).toBe("Ab_3-x");
  expect(parseCode("http://127.0.0.1:7456/console/login")).toBe("");
  expect(parseCode("")).toBe("");
});

test("the code is removed from the address and the history when it is read", () => {
  history.replaceState(null, "", "/console/login?next=%2Finbox#code=Ab_3-x");
  const entries = history.length;
  expect(takeCodeFromAddress()).toBe("Ab_3-x");
  expect(location.href).not.toContain("Ab_3-x");
  expect(location.search).toBe("?next=%2Finbox");
  expect(history.length).toBe(entries);
  expect(takeCodeFromAddress()).toBe("");
});

test("browsers are named after their program and system", () => {
  const chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";
  const safari = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1";
  expect(suggestDeviceName(chrome)).toBe("Chrome on Linux");
  expect(suggestDeviceName(safari)).toBe("Safari on iPhone");
  expect(suggestDeviceName(`${chrome} Edg/140.0.0.0`)).toBe("Edge on Linux");
  expect(suggestDeviceName("curl/8")).toBe("Browser");
});
