/** What is shared by a link: rules, the application's items, and the invariants that are off, in the URL's fragment. */

import type { Item, State } from "./protocol";

export interface Shared {
  rules: string;
  items: { [table: string]: Item[] };
  off: string[];
}

/** The application's items: what rules made is left out, because they make it again. */
export function ownItems(state: State): { [table: string]: Item[] } {
  return Object.fromEntries(
    state.tables.map((table) => [table.name, table.items.flatMap((row) => (row.own ? [row.own] : []))]),
  );
}

export async function toFragment(shared: Shared): Promise<string> {
  const stream = new Blob([JSON.stringify(shared)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return `#s=${btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

/** What a fragment shares; null if it is not that of a link. Throws a mistake if the link is damaged. */
export async function fromFragment(fragment: string): Promise<Shared | null> {
  if (!fragment.startsWith("#s=")) return null;
  try {
    const text = atob(fragment.slice(3).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    const { rules, items, off } = JSON.parse(await new Response(stream).text());
    if (typeof rules === "string" && items && Array.isArray(off)) return { rules, items, off };
  } catch {
    // the text was cut or changed
  }
  throw new Error("This link is damaged: a part of it is missing or changed. You see the first example.");
}
