/** The history that each invariant is for, on the first example. It ends right if all invariants are on. */

import type { State } from "./protocol";

type Ask = (method: string, ...texts: string[]) => Promise<State>;

export interface Invariant {
  name: string;
  title: string;
  says: string;
  story: string;
  play(ask: Ask): Promise<void>;
}

const text = (value: string) => JSON.stringify({ S: value });
const book = (id: string) => JSON.stringify({ book_id: { S: id }, author_id: { S: "a1" }, title: { S: "Estuary" } });

async function stepUntil(ask: Ask, isThere: (state: State) => boolean): Promise<void> {
  for (let tries = 0; tries < 500; tries++) if (isThere(await ask("step"))) return;
}

export const INVARIANTS: Invariant[] = [
  {
    name: "guard",
    title: "Guard",
    says: "A write holds only if its target is still as it was read.",
    story: "A book comes, and a worker dies with its write on the way. The book is deleted. Then the write lands.",
    async play(ask) {
      await ask("put", "books", book("b8"), "a book comes");
      await ask("fault", "die");
      await ask("delete", "books", "books[b8]", "the book is deleted");
      await ask("run");
    },
  },
  {
    name: "second-look",
    title: "Second look",
    says: "A listing by an index is repeated once the index has caught up.",
    story: "The index lags. A book comes, then its author takes another name: the listing misses the book.",
    async play(ask) {
      await ask("fault", "lag");
      await ask("put", "books", book("b9"), "a book comes, and the index does not show it yet");
      await stepUntil(ask, (state) => !state.request && state.waiting.length === 0);
      await ask("edit", "authors", "authors[a1]", "name", text("Maren Vogt-Lind"), "its author takes another name");
      await ask("run");
    },
  },
  {
    name: "re-check",
    title: "Re-check",
    says: "Each record of an item compares its copies again, whichever program wrote the item.",
    story: "The application puts an old name over a copy.",
    async play(ask) {
      await ask("edit", "books", "books[b3]", "author.name", text("T. Quill"), "a copy is overwritten with an old name");
      await ask("run");
    },
  },
];
