/** The graph of the rules, drawn: the engine gives each box, name and line its place. */

import { fill, make } from "./dom";
import type { Graph } from "./protocol";

const SVG = "http://www.w3.org/2000/svg";
const INSIDE = 10; // from the edge of a box to its text

function draw(tag: string, properties: { [name: string]: string | number }, ...children: (Element | string)[]): Element {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** Draw a graph into its box, which scrolls, and list it as text. */
export function showGraph(place: HTMLElement, list: HTMLElement, graph: Graph): void {
  const head = draw("path", { d: "M0 0 8 4 0 8z" });
  const arrowhead = { id: "arrowhead", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto-start-reverse" };
  const lines = graph.lines.map(({ path, begins, ends }) => {
    const heads = { ...(begins && { "marker-start": "url(#arrowhead)" }), ...(ends && { "marker-end": "url(#arrowhead)" }) };
    return draw("path", { class: "line", d: path, ...heads });
  });
  const boxes = graph.boxes.map(({ x, y, width, height, name, within }) =>
    draw("g", { class: "box" },
      draw("rect", { x, y, width, height, rx: 6 }),
      draw("text", { x: x + INSIDE, y: y + height / 2 - 3 }, name),
      draw("text", { class: "within", x: x + INSIDE, y: y + height / 2 + 12 }, within)));
  const names = graph.names.map(({ x, y, name, keeps }) =>
    draw("text", { class: "rule", x: x + INSIDE, y: y + 4 }, draw("title", {}, keeps), name));
  const size = { viewBox: `-1 0 ${graph.width + 2} ${graph.height}`, width: graph.width + 2, height: graph.height };
  const picture = draw("svg", { ...size, role: "img", "aria-label": "Graph of the rules. A list follows." }, draw("defs", {}, draw("marker", arrowhead, head)), ...lines, ...boxes, ...names);
  fill(place, picture);
  fill(list, ...graph.names.map(({ name, keeps }) => make("li", {}, `${keeps} (${name})`)));
}
