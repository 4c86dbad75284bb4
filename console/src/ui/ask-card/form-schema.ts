/** The form of an elicitation: from the JSON schema of the agent to fields, and from their values to the answer. */

export interface FieldChoice {
  value: string;
  label: string;
}

export interface FormField {
  name: string;
  label: string;
  description: string | undefined;
  isRequired: boolean;
  kind: "text" | "email" | "url" | "date" | "date-time" | "number" | "integer" | "boolean" | "choice" | "choices" | "unknown";
  /** Of a `choice` or `choices`. */
  choices: FieldChoice[];
  /** The least length of a text, number or count of choices. */
  min: number | undefined;
  max: number | undefined;
  /** Shown and not checked: a regular expression of an agent could block the page. The agent checks the answer. */
  pattern: string | undefined;
  initial: FieldValue;
}

/** The value of a field as its input has it: the text of an input, a check mark, or the chosen values. */
export type FieldValue = string | boolean | string[];

export type FormContent = Record<string, string | number | boolean | string[]>;

type Json = Record<string, unknown>;

const FIELDS_MAX = 100;
const CHOICES_MAX = 500;
const FORMATS = { email: "email", uri: "url", date: "date", "date-time": "date-time" } as const;

const isObject = (it: unknown): it is Json => typeof it === "object" && it !== null && !Array.isArray(it);
const textOf = (it: unknown): string | undefined => (typeof it === "string" ? it : undefined);
const numberOf = (it: unknown): number | undefined => (typeof it === "number" ? it : undefined);
const textsOf = (it: unknown): string[] => (Array.isArray(it) ? it.filter((one) => typeof one === "string") : []);

/** The fields of a form, in the order of the schema. */
export function readFields(schema: unknown): FormField[] {
  if (!isObject(schema) || !isObject(schema["properties"])) return [];
  const required = textsOf(schema["required"]);
  return Object.entries(schema["properties"])
    .slice(0, FIELDS_MAX)
    .map(([name, property]) => readField(name, isObject(property) ? property : {}, required.includes(name)));
}

function readField(name: string, property: Json, isRequired: boolean): FormField {
  const kind = readKind(property);
  const [min, max] = readLimits(property, kind);
  return {
    name,
    label: textOf(property["title"]) ?? name,
    description: textOf(property["description"]),
    isRequired,
    kind,
    choices: readChoices(kind === "choices" && isObject(property["items"]) ? property["items"] : property),
    min,
    max,
    pattern: kind === "text" ? textOf(property["pattern"]) : undefined,
    initial: readInitial(property["default"], kind),
  };
}

function readKind(property: Json): FormField["kind"] {
  switch (property["type"]) {
    case "string": {
      if (property["enum"] || property["oneOf"]) return "choice";
      const format = textOf(property["format"]) ?? "";
      return format in FORMATS ? FORMATS[format as keyof typeof FORMATS] : "text";
    }
    case "number":
    case "integer":
    case "boolean":
      return property["type"];
    case "array":
      return "choices";
    default:
      return "unknown";
  }
}

function readLimits(property: Json, kind: FormField["kind"]): [number | undefined, number | undefined] {
  const isNumber = kind === "number" || kind === "integer";
  const names = isNumber ? ["minimum", "maximum"] : kind === "choices" ? ["minItems", "maxItems"] : ["minLength", "maxLength"];
  return [numberOf(property[names[0] as string]), numberOf(property[names[1] as string])];
}

/** The choices of `enum`, or of `oneOf` or `anyOf` with titles; `enumNames` is the older form of titles. */
function readChoices(source: Json): FieldChoice[] {
  const titled = [source["oneOf"], source["anyOf"]].find(Array.isArray);
  if (titled) {
    const choices = titled.filter((it) => isObject(it) && typeof it["const"] === "string") as Json[];
    return choices.slice(0, CHOICES_MAX).map((it) => {
      const value = it["const"] as string;
      return { value, label: textOf(it["title"]) ?? value };
    });
  }
  const labels = textsOf(source["enumNames"]);
  return textsOf(source["enum"])
    .slice(0, CHOICES_MAX)
    .map((value, index) => ({ value, label: labels[index] ?? value }));
}

function readInitial(value: unknown, kind: FormField["kind"]): FieldValue {
  if (kind === "boolean") return value === true;
  if (kind === "choices") return textsOf(value);
  if (kind === "date-time") return toLocalTime(textOf(value) ?? "");
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

/** What is wrong with the value, in words for the user. */
export function checkValue(field: FormField, value: FieldValue): string | undefined {
  if (field.kind === "unknown") return field.isRequired ? "The console cannot show this field." : undefined;
  if (field.kind === "boolean") return undefined;
  if (Array.isArray(value)) return checkCount(field, value.length);
  const text = String(value);
  if (text === "") return field.isRequired ? "A value is required." : undefined;
  switch (field.kind) {
    case "number":
    case "integer":
      return checkNumber(field, Number(text));
    case "email":
      return /^[^\s@]+@[^\s@]+$/.test(text) ? undefined : "This is not an e-mail address.";
    case "url":
      return URL.canParse(text) ? undefined : "This is not an address such as https://example.org.";
    case "date":
    case "date-time":
      return Number.isNaN(Date.parse(text)) ? "This is not a date." : undefined;
    case "choice":
      return field.choices.some((it) => it.value === text) ? undefined : "Choose one of the values.";
    default:
      return checkLength(field, [...text].length);
  }
}

function checkNumber({ kind, min, max }: FormField, value: number): string | undefined {
  if (!Number.isFinite(value)) return "This is not a number.";
  if (kind === "integer" && !Number.isSafeInteger(value)) return "This is not a whole number.";
  if (min !== undefined && value < min) return `The least value is ${min}.`;
  if (max !== undefined && max < value) return `The greatest value is ${max}.`;
  return undefined;
}

function checkLength({ min, max }: FormField, length: number): string | undefined {
  if (min !== undefined && length < min) return `At least ${min} characters are required.`;
  if (max !== undefined && max < length) return `At most ${max} characters are permitted.`;
  return undefined;
}

function checkCount({ isRequired, min, max }: FormField, count: number): string | undefined {
  const least = Math.max(min ?? 0, isRequired && min === undefined ? 1 : 0);
  if (count === 0 && !isRequired) return undefined;
  if (count < least) return `Choose at least ${least}.`;
  if (max !== undefined && max < count) return `Choose at most ${max}.`;
  return undefined;
}

/** The `content` of the answer. Fields without a value are left out. */
export function toContent(fields: FormField[], values: Record<string, FieldValue>): FormContent {
  const content: FormContent = {};
  for (const field of fields) {
    const value = values[field.name] ?? field.initial;
    if (field.kind === "unknown" || value === "" || (Array.isArray(value) && value.length === 0 && !field.isRequired)) continue;
    content[field.name] = toJson(field, value);
  }
  return content;
}

function toJson(field: FormField, value: FieldValue): string | number | boolean | string[] {
  if (field.kind === "number" || field.kind === "integer") return Number(value);
  if (field.kind === "date-time") return new Date(String(value)).toISOString();
  // The values of a store are proxies; the answer is plain.
  return Array.isArray(value) ? [...value] : value;
}

/** An RFC 3339 time as the value of an input for local times. */
function toLocalTime(text: string): string {
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) return "";
  const local = new Date(time.getTime() - time.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}
