/** The access patterns: a table with the requests and the price of each, or with the reason why none serves it. */

import { fill, make } from "./dom";
import type { Patterns } from "./protocol";

type Row = Patterns["rows"][number];

export function showPatterns(place: HTMLElement, { rows, remarks, prices }: Patterns): void {
  if (!rows.length) {
    fill(place, make("p", {}, "The rules declare no access patterns. Declare some, such as patterns: {orders-of-user: {get: order, by: [user_id]}}"));
    return;
  }
  const body = rows.map((row) => make("tr", {}, make("th", { scope: "row" }, row.name, make("small", {}, row.finds)), ...(row.problem.length ? showProblem(row) : showServed(row))));
  const head = ["Pattern", "Request", "Price"].map((one) => make("th", { scope: "col" }, one));
  fill(
    place,
    make("table", {}, make("caption", {}, `Price: ${prices}. Sizes of items are measured on the tables.`), make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body)),
    remarks.length > 0 && make("ul", {}, ...remarks.map((one) => make("li", {}, `! ${one}`))),
  );
}

function showServed({ requests, price: [units, money] }: Row): HTMLElement[] {
  return [make("td", {}, ...requests.map((one) => make("code", {}, one))), make("td", {}, money && make("b", {}, money), make("small", {}, units!))];
}

function showProblem({ problem: [reason, ...cures] }: Row): HTMLElement[] {
  return [make("td", { class: "unserved", colspan: "2" }, make("b", {}, "✗ not served"), make("p", {}, reason!), make("pre", {}, cures.join("\n")))];
}
