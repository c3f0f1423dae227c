/** The page: rules on the left, tables on the right, below what happens. All answers come from the engine. */

import { fill, get, make } from "./dom";
import { RulesEditor } from "./editor";
import { Engine } from "./engine";
import { showGraph } from "./graph";
import { INVARIANTS } from "./incidents";
import { showPatterns } from "./patterns";
import type { Example, Explanation, Patterns, Problem, Raw, Recording, State } from "./protocol";
import { fromFragment, ownItems, toFragment, type Shared } from "./share";
import { showTables } from "./tables";
import { describe, describeFor, describeRequest, nameArrival, type Words } from "./words";

const CHECK_AFTER_MS = 80;
const APPLY_AFTER_MS = 500;
const OVERWRITTEN: { [type: string]: Raw } = { S: { S: "overwritten" }, N: { N: "999" } };

const APPLICATION: { [drift: string]: string } = {
  extra: "the application deleted it, and it is back",
  missing: "the application did not delete it",
  wrong: "the application wrote something else",
};

const engine = new Engine();
const editor = new RulesEditor(get("editor"), noteTyping);
let examples: Example[] = [];
let chosen: Example | null = null; // its scenario is what "next" plays
let state: State | null = null;
let off: string[] = [];
let opened = ""; // the rules that the engine has
let kept: Shared["items"] = {}; // the items at the last change of the rules, also of tables that rules no longer have
let isLive = false;
let typing = 0;

// ---------------------------------------------------------------- asking the engine
let queue: Promise<unknown> = Promise.resolve();
let pending = 0;

/** Do some work with the engine, after all other work. The page is busy from now on. A mistake is shown. */
function act(work: () => Promise<void>): Promise<void> {
  pending += 1;
  document.body.setAttribute("aria-busy", "true");
  const done = queue.then(async () => {
    try {
      await work();
    } catch (error) {
      refuse((error as Error).message);
    }
    if (--pending === 0) document.body.removeAttribute("aria-busy");
  });
  queue = done;
  return done;
}

/** The answer of the engine. Throws a mistake of the user. */
async function inquire<T extends object>(method: string, ...texts: string[]): Promise<T> {
  const answer = await engine.call<T & { mistake?: string }>(method, ...texts);
  if (answer.mistake) throw new Error(answer.mistake);
  return answer;
}

/** Ask without showing the answer. The log gets its events. */
async function ask(method: string, ...texts: string[]): Promise<State> {
  const answer = await inquire<State>(method, ...texts);
  get("mistake").hidden = true;
  if (method === "open") fill(get("log"));
  describeFor(answer);
  log(answer.events.map(describe));
  state = answer;
  return answer;
}

function press(method: string, ...texts: string[]): void {
  act(async () => {
    const before = state;
    await ask(method, ...texts);
    show(before);
  });
}

function refuse(mistake: string): void {
  const place = get("mistake");
  place.textContent = mistake;
  place.hidden = false;
}

/** Open rules with their data, or with items. */
async function open(rules: string, data: string, scenario: string, items = ""): Promise<void> {
  await ask("open", rules, data, scenario, items);
  opened = rules;
  if (off.length) await ask("switch", ...off);
  if (isLive) await updatePatterns();
}

async function updatePatterns(): Promise<void> {
  showPatterns(get("patterns"), await inquire<Patterns>("patterns"));
}

function openExample(example: Example): Promise<void> {
  chosen = example;
  kept = {};
  editor.text = example.rules;
  showProblems([]);
  get<HTMLSelectElement>("example").value = example.name;
  get("title").textContent = example.title;
  return open(example.rules, example.data, example.scenario);
}

// ---------------------------------------------------------------- the rules
function noteTyping(): void {
  clearTimeout(typing);
  typing = window.setTimeout(() => act(checkRules), CHECK_AFTER_MS);
}

async function checkRules(): Promise<void> {
  if (!isLive) return;
  const text = editor.text;
  const began = performance.now();
  const problems = await engine.call<Problem[]>("check", text);
  showProblems(problems, Math.round(performance.now() - began));
  if (problems.every((one) => one.severity === "warning") && text === editor.text)
    typing = window.setTimeout(() => act(() => applyRules(text)), APPLY_AFTER_MS);
}

/** The edited rules on the application's items. A scenario that does not fit them is left out. */
async function applyRules(text: string): Promise<void> {
  if (text === opened) get("mistake").hidden = true; // a refused change is undone
  if (text !== editor.text || text === opened) return;
  kept = listItems();
  const items = JSON.stringify(kept);
  try {
    await open(text, "", chosen?.scenario ?? "", items);
  } catch {
    await open(text, "", "", items);
  }
  show(null);
  await keepInLink();
}

function listItems(): Shared["items"] {
  return { ...kept, ...(state && ownItems(state)) };
}

function showProblems(problems: Problem[], tookMs?: number): void {
  editor.showProblems(problems);
  const rows = problems.map((one) => {
    const go = make("button", { class: "link", onclick: () => editor.goTo(one) }, `line ${one.line}`);
    const sign = one.severity === "error" ? "✗ error" : "! warning";
    return make("li", { class: one.severity }, make("b", {}, sign), " ", go, ` ${one.road}: ${one.message.replace(/[^.?]$/, "$&.")} `, make("i", {}, `Cure: ${one.cure}`));
  });
  fill(get("problems"), ...rows);
  const took = tookMs === undefined ? "" : ` (${tookMs} ms)`;
  get("checked").textContent = rows.length ? `check: ${rows.length} problem${rows.length === 1 ? "" : "s"}${took}` : `check: no problems${took}`;
}

// ---------------------------------------------------------------- what is shown
function show(before: State | null): void {
  if (!state) return;
  showTables(get("tables"), state, before, {
    edit: (table, id, path, value) => isReady() && press("edit", table, id, path, value ? JSON.stringify(value) : "", `${path} is edited`),
    put: (table, item) => isReady() && press("put", table, JSON.stringify(item), "an item is put"),
    remove: (table, id) => isReady() && press("delete", table, id, "an item is deleted"),
    refuse,
    explain,
  });
  showVerdict(state);
  showControls(state);
  showGraph(get("graph"), get("arrows"), state.graph);
}

async function explain(...texts: [table: string, id: string, name: string]): Promise<Explanation[] | null> {
  let found: Explanation[] | null = null;
  if (isReady()) await act(async () => void (found = await inquire<Explanation[]>("explain", ...texts)));
  return found;
}

function isReady(): boolean {
  if (!isLive) refuse("The engine is still starting: what you see is a recording.");
  return isLive;
}

function showVerdict({ wrong, stuck, idle }: State): void {
  const number = `${wrong.length} ${wrong.length === 1 ? "value is" : "values are"}`;
  const [look, sign, text] = !idle
    ? ["pending", "…", wrong.length ? `${number} not right yet, and work waits` : "right so far, and work waits"]
    : wrong.length
      ? ["wrong", "✗", `${number} not right, and no work is left`]
      : stuck.length
        ? ["stuck", "!", `${stuck.length} stuck: no write can make it right`]
        : ["right", "✓", "every copy is right"];
  const badge = get("badge");
  badge.className = look!;
  fill(badge, make("span", { "aria-hidden": "true" }, sign), ` ${text}`);
  const rows = wrong.map((one) => {
    const why = one.check === "application" ? APPLICATION[one.drift] ?? APPLICATION.wrong : `rule ${one.rule}`;
    const place = `${one.key} ${one.path.join(".")}`;
    return make("li", { class: look }, idle ? `✗ ${place} is ${one.drift}: ${why}` : `… ${place} is not right yet: ${why}`);
  });
  const others = stuck.map((one) => make("li", { class: "stuck" }, `! ${one.key} is stuck: rule ${one.rule}, ${one.reason}`));
  fill(get("wrong"), ...rows, ...others);
}

function showControls(now: State): void {
  const enable = (id: string, isOn: boolean) => (get<HTMLButtonElement>(id).disabled = !isOn);
  get("next").textContent = now.steps.length ? `Next: ${now.steps[0]}` : "The example has no more steps";
  enable("next", now.steps.length > 0);
  enable("step", !now.idle);
  enable("run", !now.idle);
  enable("twice", now.finished > 0);
  enable("late", now.waiting.length + now.finished > 0);
  enable("die", !now.idle);
  enable("throttle", !now.idle && !now.throttles);
  enable("lag", !now.lags && now.tables.some((table) => table.indexes.length > 0));
  enable("overwrite", findCopy(now) !== null);
  get<HTMLFieldSetElement>("controls").disabled = !isLive;
  const waiting = [
    ...now.waiting.map(nameArrival),
    now.flying ? `${now.flying} late write${now.flying > 1 ? "s" : ""} on the way` : "",
    now.lags ? "the indexes lag" : "",
    now.delayed ? `${now.delayed} message${now.delayed > 1 ? "s" : ""} for later` : "",
  ].filter(Boolean);
  fill(get("waiting"), ...(waiting.length ? waiting : ["nothing"]).map((one) => make("li", {}, one)));
  const next = get("upcoming");
  fill(next, ...(now.request ? showWords({ ...describeRequest(now.request), label: "next" }) : []));
  next.hidden = !now.request;
}

function findCopy(now: State): string[] | null {
  for (const table of now.tables)
    for (const row of table.items)
      for (const path of row.own ? row.copies : []) {
        const value = path.split(".").reduce<any>((at, name) => (at?.M ?? at)?.[name], row.item);
        if (value) return [table.name, row.id, path, JSON.stringify(OVERWRITTEN[Object.keys(value)[0]!] ?? "").replace('""', "")];
      }
  return null;
}

// ---------------------------------------------------------------- the log
function log(lines: Words[]): void {
  const place = get("log");
  const rows = lines.map((one) => make("li", { class: `event ${one.kind}` }, ...showWords(one)));
  place.append(...rows);
  const first = rows[lines.findIndex((one) => one.kind === "application")] ?? rows[0];
  if (first) place.parentElement!.scrollTop = first.offsetTop - place.offsetTop;
}

function showWords(one: Words): HTMLElement[] {
  const outcome = one.outcome && make("b", { class: `outcome ${one.outcome.split(/[:, ]/)[0]}` }, one.outcome);
  const lines = one.lines.map((line) => make("li", {}, line));
  return [
    make("span", { class: "label" }, one.label),
    make("div", {}, make("p", {}, one.text, outcome && " ", outcome || null), lines.length > 0 && make("ul", {}, ...lines)),
  ];
}

// ---------------------------------------------------------------- the controls
function showInvariants(): void {
  const rows = INVARIANTS.map((one) => {
    const box = make("input", { type: "checkbox", role: "switch", id: `on-${one.name}`, checked: true });
    box.addEventListener("change", () => {
      off = INVARIANTS.filter(({ name }) => !get<HTMLInputElement>(`on-${name}`).checked).map(({ name }) => name);
      press("switch", ...off);
    });
    const tryIt = make("button", { type: "button", id: `try-${one.name}`, title: one.story, "aria-label": `Try it: ${one.story}` }, "Try it");
    tryIt.addEventListener("click", () => act(async () => {
      await openExample(examples[0]!);
      fill(get("log"));
      const told = box.checked ? `${one.title} is on.` : `${one.title} is off.`;
      log([{ kind: "ready", label: "story", text: `${one.story} ${told}`, lines: [] }]);
      const before = state;
      await one.play(ask);
      show(before);
      get("log").parentElement!.scrollTop = 0;
    }));
    return make("li", {}, make("label", {}, box, make("b", {}, one.title), make("small", {}, one.says)), tryIt);
  });
  fill(get("invariants"), ...rows);
}

/** Put rules and items into the page's address, so that a reload keeps them. */
async function keepInLink(): Promise<void> {
  history.replaceState(null, "", await toFragment({ rules: editor.text, items: listItems(), off }));
}

async function share(): Promise<void> {
  if (!isReady()) return;
  await keepInLink();
  await navigator.clipboard?.writeText(location.href).catch(() => undefined);
  get("share").textContent = "Link is ready";
  window.setTimeout(() => (get("share").textContent = "Share"), 2000);
}

function connect(): void {
  const click = (id: string, method: string, ...texts: string[]) => get(id).addEventListener("click", () => press(method, ...texts));
  for (const id of ["next", "step", "run"]) click(id, id);
  click("twice", "fault", "repeat");
  click("late", "fault", "delay");
  click("die", "fault", "die");
  click("throttle", "fault", "throttle");
  click("lag", "fault", "lag");
  get("overwrite").addEventListener("click", () => press("edit", ...findCopy(state!)!, "a copy is overwritten by mistake"));
  get("share").addEventListener("click", share);
  window.addEventListener("hashchange", () => location.reload()); // another link in the same tab
  get<HTMLSelectElement>("example").addEventListener("change", (event) => {
    const name = (event.target as HTMLSelectElement).value;
    history.replaceState(null, "", `#${name}`);
    act(async () => {
      await openExample(examples.find((one) => one.name === name)!);
      show(null);
    });
  });
}

// ---------------------------------------------------------------- the start
async function begin(): Promise<void> {
  const began = performance.now();
  showInvariants();
  connect();
  const recording: Recording = await (await fetch("recording.json")).json();
  examples = recording.examples;
  fill(get("example"), ...examples.map((one) => make("option", { value: one.name }, one.name)));
  let shared: Shared | null = null;
  let damage = "";
  const named = examples.find((one) => `#${one.name}` === location.hash);
  try {
    shared = await fromFragment(location.hash);
    if (!named && !shared && location.hash) throw new Error(`There is no example ${location.hash.slice(1)}. You see the first one.`);
  } catch (error) {
    damage = (error as Error).message;
    refuse(damage);
  }
  const first = named ?? examples[0]!;
  editor.text = shared?.rules ?? first.rules;
  get("title").textContent = shared ? "Shared rules and items" : first.title;
  if (!shared && first === examples[0]) {
    state = recording.state;
    describeFor(state);
    log(state.events.map(describe));
    show(null);
    showPatterns(get("patterns"), recording.patterns);
  }
  const clock = window.setInterval(() => {
    get("engine").textContent = `the engine starts: ${Math.round((performance.now() - began) / 1000)} s.${state ? " You see a recording." : ""}`;
  }, 500);
  try {
    await engine.ready;
  } catch (error) {
    get("engine").textContent = "the engine did not start";
    throw error;
  } finally {
    clearInterval(clock);
  }
  const typed = editor.text;
  await act(async () => {
    if (shared) {
      kept = shared.items;
      off = INVARIANTS.map(({ name }) => name).filter((name) => shared.off.includes(name));
      for (const name of off) get<HTMLInputElement>(`on-${name}`).checked = false;
      await open(shared.rules, "", "", JSON.stringify(shared.items));
    } else {
      await openExample(first);
      if (first === examples[0]) for (const method of ["next", "run"]) await ask(method);
    }
    if (damage) refuse(damage);
  });
  await act(async () => {
    isLive = true; // also if the shared rules have errors: they can be repaired
    show(null);
    if (typed !== editor.text) editor.text = typed;
    noteTyping();
    editor.useSchema(await engine.call<any>("schema"));
  });
  get("engine").textContent = `the engine is ready, after ${((performance.now() - began) / 1000).toFixed(1)} s`;
  document.body.dataset.live = "true";
  if (opened && opened !== examples[0]!.rules) act(updatePatterns); // after the start: the first example's are recorded
}

begin().catch((error) => refuse(String(error)));
