/** Elements, made of values: text is always text, never HTML. */

type Child = Node | string | null | undefined | false;
type Properties = { [name: string]: string | boolean | ((event: any) => void) | undefined };

/** An element with attributes, listeners (`onclick`) and children. An attribute that is false or undefined is left out. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Properties = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((one): one is Node | string => one !== null && one !== undefined && one !== false));
  return element;
}

/** The element of an id, which the page has. */
export function get<T extends HTMLElement = HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

/** Replace the children of an element. What had the focus has it afterwards, by its `data-focus`. */
export function fill(element: HTMLElement, ...children: Child[]): void {
  const focus = element.contains(document.activeElement) && (document.activeElement as HTMLElement).dataset.focus;
  element.replaceChildren(...children.filter((one): one is Node | string => !!one));
  if (focus) element.querySelector<HTMLElement>(`[data-focus="${CSS.escape(focus)}"]`)?.focus();
}
