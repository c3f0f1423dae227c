/** The tables: a grid for each entity. Cells can be edited, copies and wrong values are marked by signs. */

import { fill, make } from "./dom";
import type { Explanation, Item, Raw, Row, State, Table } from "./protocol";
import { editText, parseItem, parseValue, showValue } from "./values";
import { showImage } from "./words";

export interface Changes {
  edit(table: string, id: string, path: string, value: Raw | null): void;
  put(table: string, item: Item): void;
  remove(table: string, id: string): void;
  refuse(mistake: string): void;
  explain(table: string, id: string, name: string): Promise<Explanation[] | null>;
}

/** The tables of a state. Values that differ from `before` are marked as changed. */
export function showTables(place: HTMLElement, state: State, before: State | null, changes: Changes): void {
  const old = new Map(before?.tables.flatMap((table) => table.items.map((row) => [row.id, row.item])));
  place.classList.toggle("waits", !state.idle); // what is not right may become so
  fill(place, ...state.tables.map((table) => showTable(table, old, before !== null, changes)));
}

function showTable(table: Table, old: Map<string, Item>, compares: boolean, changes: Changes): HTMLElement {
  const entities = [...new Set(table.items.map((row) => row.entity))];
  const grids = entities.map((entity) => {
    const rows = table.items.filter((row) => row.entity === entity);
    const grid = showGrid(table, entity, rows, old, compares, changes);
    const made = rows.every((row) => row.own === null) && /\./.test(entity);
    const wrong = rows.some((row) => row.wrong.length > 0);
    return made ? make("details", { class: "books", open: wrong }, make("summary", {}, `${entity}, items of the pipeline: ${rows.length}`), grid) : grid;
  });
  const index = table.indexes.length ? ` · index ${table.indexes.join(", ")}` : "";
  return make(
    "section",
    { class: "table" },
    make("h3", {}, table.name, make("small", {}, ` key ${table.key.join(", ")}${index}`)),
    ...grids,
    showNewItem(table, changes),
  );
}

function showGrid(table: Table, entity: string, rows: Row[], old: Map<string, Item>, compares: boolean, changes: Changes): HTMLElement {
  const names = [...new Set([...table.key, ...rows.flatMap((row) => Object.keys(row.item))])];
  const head = names.map((name) => make("th", { scope: "col" }, name));
  const body = rows.map((row) => {
    const isNew = compares && !old.has(row.id);
    const cells = names.map((name) => {
      const isChanged = compares && JSON.stringify(old.get(row.id)?.[name]) !== JSON.stringify(row.item[name]);
      return showCell(table, row, name, isChanged && !isNew, changes);
    });
    const title = `delete ${row.id}`;
    const onclick = (event: MouseEvent) => {
      if (event.detail === 0) remove.closest("section")!.querySelector<HTMLElement>(".new input")!.focus(); // by keyboard
      changes.remove(table.name, row.id);
    };
    const remove = make("button", { class: "quiet", title, "aria-label": title, onclick }, "×");
    const whole = row.wrong.includes("");
    return make("tr", { class: [isNew && "changed", whole && "wrong"].filter(Boolean).join(" ") }, ...cells, make("td", { class: "tool" }, remove));
  });
  return make(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": `${entity || "other"} items of ${table.name}` },
    make("table", {}, make("caption", {}, entity || "other items"), make("thead", {}, make("tr", {}, ...head, make("td", {}))), make("tbody", {}, ...body)),
  );
}

function showCell(table: Table, row: Row, name: string, changed: boolean, changes: Changes): HTMLElement {
  const raw = row.item[name];
  const copy = row.own === null ? !table.key.includes(name) : row.copies.some((path) => isAt(path, name));
  const wrong = row.wrong.some((path) => isAt(path, name));
  const missing = row.wrong.filter((path) => isAt(path, name)).join(", ");
  const marks = wrong ? "" : copy && raw ? "⤶" : "";
  const title = wrong ? `not right: ${missing}` : copy ? "kept by a rule" : "written by the application";
  const look = [copy && "copy", wrong && "wrong", changed && "changed"].filter(Boolean).join(" ");
  if (table.key.includes(name)) {
    const sign = row.wrong.includes("") && table.key[0] === name ? "✗ " : "";
    return make("th", { scope: "row", class: look, title: sign ? "this item is not right" : title }, sign + showValue(raw, false));
  }
  const asks = copy && !row.entity.includes("."); // not on items of the pipeline
  if (!raw && !wrong) return make("td", { class: look }, editor(table, row, name, raw, changes, make("span", { class: "absent" }, "·")));
  return make("td", { class: look, title }, editor(table, row, name, raw, changes, marks || wrong ? make("span", { class: "mark", "aria-hidden": "true" }, marks) : null, make("span", {}, ...value(raw))), asks && asker(table, row, name, changes));
}

function value(raw: Raw | undefined): (HTMLElement | string)[] {
  if (!raw) return ["missing"];
  if (!("M" in raw) || Object.keys(raw.M).length === 0) return [showValue(raw, false)];
  return Object.entries(raw.M as Item).map(([name, inner]) =>
    make("span", { class: "entry" }, make("i", {}, name), ` ${showValue(inner, false)}`));
}

/** A cell as a button: pressed, it becomes a field. Enter saves, an empty field removes the attribute, Escape leaves. */
function editor(table: Table, row: Row, name: string, raw: Raw | undefined, changes: Changes, ...children: (HTMLElement | string | null)[]): HTMLElement {
  const label = `edit ${name} of ${row.id}`;
  const button = make("button", { class: "cell", "data-focus": `${row.id} ${name}`, "aria-label": `${label}: ${showValue(raw, false)}` }, ...children);
  button.addEventListener("click", () => {
    let open = true;
    const field = make("input", { value: editText(raw), "aria-label": label });
    const close = (saves: boolean) => {
      if (!open) return;
      open = false;
      const text = field.value;
      field.replaceWith(button);
      button.focus();
      if (!saves || text === editText(raw)) return;
      try {
        changes.edit(table.name, row.id, name, text === "" ? null : parseValue(text, raw));
      } catch (error) {
        changes.refuse(`${name}: ${(error as Error).message}`);
      }
    };
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === "Escape") close(event.key === "Enter");
    });
    field.addEventListener("blur", () => close(true));
    button.replaceWith(field);
    field.select();
  });
  return button;
}

/** A button that explains a copy, in a row below its item. Pressed again, it closes this row. */
function asker(table: Table, row: Row, name: string, changes: Changes): HTMLElement {
  const label = `explain ${name} of ${row.id}`;
  const button = make("button", { class: "why", "data-focus": label, "aria-label": label, "aria-expanded": "false", title: "Why is this value here?" }, "?");
  button.addEventListener("click", async () => {
    const closes = button.getAttribute("aria-expanded") === "true";
    const grid = button.closest("tbody")!;
    grid.querySelector("tr.answer")?.remove();
    for (const one of grid.querySelectorAll(".why")) one.setAttribute("aria-expanded", "false");
    const found = closes ? null : await changes.explain(table.name, row.id, name);
    if (!found) return;
    button.setAttribute("aria-expanded", "true");
    const lines = found.map(({ line, why, sources }) =>
      make("li", {}, line, why && make("p", { class: "reason" }, `Not right: ${why}.`), ...sources.map(({ key, item }) => make("code", {}, showImage(key, item)))));
    const answer = make("div", { role: "status" }, make("b", {}, `${name} of ${row.id}`), make("ul", {}, ...(lines.length ? lines : ["No rule gives this attribute a value now."])));
    button.closest("tr")!.after(make("tr", { class: "answer" }, make("td", { colspan: "99" }, answer)));
  });
  return button;
}

function showNewItem(table: Table, changes: Changes): HTMLElement {
  const example = table.key.map((name) => `${name}: …`).join(", ");
  const field = make("input", { placeholder: `${example}, name: …`, "aria-label": `new item of ${table.name}`, "data-focus": `new ${table.name}` });
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    try {
      changes.put(table.name, parseItem(field.value));
    } catch (error) {
      changes.refuse((error as Error).message);
    }
  };
  return make("form", { class: "new", onsubmit: submit }, field, make("button", {}, "Put item"));
}

function isAt(path: string, name: string): boolean {
  return path === name || path.startsWith(`${name}.`);
}
