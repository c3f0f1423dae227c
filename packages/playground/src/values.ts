/** DynamoDB's values: as short text to read, and as text to edit. Numbers keep every digit. */

import type { Item, Raw } from "./protocol";

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const SHOWN_MAX_LETTERS = 1000; // a browser lays out a text of 400 KB in many seconds
const SET = /^!set\s*(\[.*\])$/s;

/** A value as text on one line; with `quotes`, texts have them. Long texts are cut. */
export function showValue(raw: Raw | null | undefined, quotes = true): string {
  if (!raw) return "absent";
  const [type, value] = Object.entries(raw)[0]!;
  switch (type) {
    case "S":
      if (value.length > SHOWN_MAX_LETTERS) return `${value.slice(0, SHOWN_MAX_LETTERS)}… (${value.length} letters)`;
      return quotes ? JSON.stringify(value) : value;
    case "N":
      return value;
    case "BOOL":
      return String(value);
    case "NULL":
      return "null";
    case "L":
      return `[${value.map((one: Raw) => showValue(one)).join(", ")}]`;
    case "M":
      return showItem(value);
    case "B":
      return "binary";
    default: // a set
      return `set [${value.map((one: any) => (type === "NS" ? one : JSON.stringify(one))).join(", ")}]`;
  }
}

export function showItem(item: Item | null, without: string[] = []): string {
  if (!item) return "no item";
  const pairs = Object.entries(item).filter(([name]) => !without.includes(name));
  return `{${pairs.map(([name, value]) => `${name}: ${showValue(value)}`).join(", ")}}`;
}

/** The text that `parseValue` reads back. */
export function editText(raw: Raw | undefined): string {
  if (!raw) return "";
  const [type, value] = Object.entries(raw)[0]!;
  if (type === "S") return value;
  return type.length === 2 && type.endsWith("S") ? `!set ${JSON.stringify(plain(raw))}` : JSON.stringify(plain(raw));
}

/** The value of a text: JSON, a set as `!set [...]`, or plain text. What was text stays text. */
export function parseValue(text: string, before?: Raw): Raw {
  if (before && "S" in before) return { S: text };
  const trimmed = text.trim();
  if (NUMBER.test(trimmed)) return { N: trimmed };
  const set = SET.exec(trimmed);
  if (set) {
    const values = rawOf(JSON.parse(set[1]!, exact)).L;
    const type = values.every((one: Raw) => "S" in one) ? "S" : "N";
    if (!values.every((one: Raw) => type in one)) throw new Error("a set has texts alone, or numbers alone");
    return { [`${type}S`]: values.map((one: Raw) => one[type]) };
  }
  if (/^(true|false|null)$|^["[{]/.test(trimmed)) return rawOf(JSON.parse(trimmed, exact));
  return { S: text };
}

/** An item from the text of a map: JSON, or names and values such as `id: 7, name: Ada`. */
export function parseItem(text: string): Item {
  const trimmed = text.trim();
  if (trimmed.startsWith("{")) return rawOf(JSON.parse(trimmed, exact)).M!;
  const item: Item = {};
  for (const part of trimmed.split(/,\s*(?=[\p{L}\p{N}_.-]+\s*:)/u)) {
    const [, name, value] = /^([\p{L}\p{N}_.-]+)\s*:\s*(.*)$/su.exec(part) ?? [];
    if (!name) throw new Error(`expected name: value, found ${part}`);
    item[name] = parseValue(value!);
  }
  return item;
}

class Numeral {
  constructor(readonly text: string) {}
}

/** Numbers keep their spelling where the browser shows it. */
function exact(_key: string, value: any, context?: { source?: string }): any {
  return typeof value === "number" ? new Numeral(context?.source ?? String(value)) : value;
}

function rawOf(value: any): Raw {
  if (value === null) return { NULL: true };
  if (typeof value === "string") return { S: value };
  if (typeof value === "boolean") return { BOOL: value };
  if (Array.isArray(value)) return { L: value.map(rawOf) };
  if (value instanceof Numeral) return { N: value.text };
  return { M: Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, rawOf(inner)])) };
}

function plain(raw: Raw): any {
  const [type, value] = Object.entries(raw)[0]!;
  switch (type) {
    case "N":
      return Number(value);
    case "NULL":
      return null;
    case "L":
      return value.map(plain);
    case "NS":
      return value.map(Number);
    case "M":
      return Object.fromEntries(Object.entries(value as Item).map(([name, inner]) => [name, plain(inner)]));
    default:
      return value;
  }
}
