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

/** What a fragment shares; null for none, or one that cannot be read. */
export async function fromFragment(fragment: string): Promise<Shared | null> {
  if (!fragment.startsWith("#s=")) return null;
  try {
    const text = atob(fragment.slice(3).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return JSON.parse(await new Response(stream).text());
  } catch {
    return null;
  }
}
