/** Tests of forms: schema to fields, values to the answer. */

import { expect, test } from "vitest";
import { checkValue, readFields, toContent, type FieldValue, type FormField } from "./form-schema";

const SCHEMA = {
  type: "object",
  required: ["name", "tags", "port"],
  properties: {
    name: { type: "string", title: "Your name", minLength: 2, maxLength: 4, default: "Ada" },
    mail: { type: "string", format: "email" },
    site: { type: "string", format: "uri" },
    due: { type: "string", format: "date" },
    start: { type: "string", format: "date-time", default: "2026-11-18T10:30:00Z" },
    port: { type: "integer", minimum: 1, maximum: 65535, default: 80 },
    ratio: { type: "number" },
    force: { type: "boolean", default: true },
    branch: { type: "string", enum: ["main", "next"] },
    size: { type: "string", oneOf: [{ const: "s", title: "Small" }, { const: "l", title: "Large" }] },
    tags: { type: "array", minItems: 1, maxItems: 2, items: { type: "string", enum: ["a", "b", "c"] } },
    toppings: { type: "array", items: { anyOf: [{ const: "x", title: "Extra" }] }, default: ["x"] },
    odd: { type: "object" },
  },
};

const fields = readFields(SCHEMA);
const field = (name: string): FormField => fields.find((it) => it.name === name) as FormField;
const check = (name: string, value: FieldValue): string | undefined => checkValue(field(name), value);

test("each type of the schema has its kind of field, in order", () => {
  expect(fields.map((it) => [it.name, it.kind])).toEqual([
    ["name", "text"],
    ["mail", "email"],
    ["site", "url"],
    ["due", "date"],
    ["start", "date-time"],
    ["port", "integer"],
    ["ratio", "number"],
    ["force", "boolean"],
    ["branch", "choice"],
    ["size", "choice"],
    ["tags", "choices"],
    ["toppings", "choices"],
    ["odd", "unknown"],
  ]);
  expect(field("name")).toMatchObject({ label: "Your name", isRequired: true, min: 2, max: 4, initial: "Ada" });
  expect(field("size").choices).toEqual([{ value: "s", label: "Small" }, { value: "l", label: "Large" }]);
  expect(field("toppings")).toMatchObject({ choices: [{ value: "x", label: "Extra" }], initial: ["x"] });
});

test("values outside of the limits are refused with the limit", () => {
  expect(check("name", "")).toMatch("required");
  expect(check("name", "A")).toMatch("At least 2");
  expect(check("name", "Augusta")).toMatch("At most 4");
  expect(check("name", "👩👩")).toBeUndefined();
  expect(check("mail", "")).toBeUndefined();
  expect(check("mail", "x")).toMatch("e-mail");
  expect(check("site", "example")).toMatch("address");
  expect(check("port", "0")).toMatch("least value is 1");
  expect(check("port", "70000")).toMatch("greatest value is 65535");
  expect(check("port", "1.5")).toMatch("whole number");
  expect(check("ratio", "many")).toMatch("not a number");
  expect(check("branch", "other")).toMatch("Choose one");
  expect(check("tags", [])).toMatch("at least 1");
  expect(check("tags", ["a", "b", "c"])).toMatch("at most 2");
  expect(check("tags", ["a"])).toBeUndefined();
});

test("the answer has typed values and leaves out empty ones", () => {
  const start = field("start").initial as string;
  const values = { port: "8080", ratio: "0.5", mail: "", tags: ["b"], toppings: [] };
  expect(toContent(fields, values)).toEqual({
    name: "Ada",
    start: new Date(start).toISOString(),
    port: 8080,
    ratio: 0.5,
    force: true,
    tags: ["b"],
  });
  expect(new Date(start).toISOString()).toBe("2026-11-18T10:30:00.000Z");
});

test("a schema of another form has no fields", () => {
  for (const schema of [undefined, null, 1, [], {}, { properties: [] }]) expect(readFields(schema)).toEqual([]);
});

test("a field name of the object prototype is a field like others", () => {
  const [only] = readFields(JSON.parse('{"properties":{"__proto__":{"type":"string","default":"x"}}}'));
  expect(only).toMatchObject({ name: "__proto__", initial: "x" });
});
