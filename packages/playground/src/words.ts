/** Words for the events of the engine: what each is, its details, and how it ended. */

import type { Event, Item, State } from "./protocol";
import { showItem, showValue } from "./values";

export interface Words {
  kind: string; // for the look
  label: string;
  text: string;
  lines: string[];
  outcome?: string;
}

let keys: { [table: string]: string[] } = {};
let isGuarded = true;

/** Describe events as a state has them: without key attributes after a key, and without guards that are off. */
export function describeFor(state: State): void {
  keys = Object.fromEntries(state.tables.map((table) => [table.name, table.key]));
  isGuarded = !state.off.includes("guard");
}

function withoutKey(key: string): string[] | undefined {
  return keys[key.slice(0, key.indexOf("["))];
}

export function showImage(key: string, item: Item | null): string {
  return `${key} ${showItem(item, withoutKey(key))}`;
}

const FAULTS: { [name: string]: string } = {
  twice: "It is delivered twice",
  late: "It is delivered again, long after",
  overtaken: "It is late: others overtake it",
};

export function describe([kind, ...values]: Event): Words {
  switch (kind) {
    case "ready":
      return words("ready", "ready", "The data is loaded, and every record of it is processed.", []);
    case "application":
      return words("application", "application", values[0], [showImage(values[1], values[2])]);
    case "record":
      return describeRecord(values[0]);
    case "message":
      return words("message", "message", nameArrival(values[0]), []);
    case "tasks":
      return describeTasks(values[0], values[1], values[2], values[3]);
    case "request":
      return describeRequest(values[0], values[1]);
    case "late":
      return { ...describeRequest(values[0], values[1]), label: "late write", text: "The write of the dead worker lands" };
    case "index":
      return words("message", "index", "The indexes catch up, and show every write", []);
    case "end":
      return values[0]
        ? words("end", "done", "Acknowledged", [])
        : words("end", "failed", "Not finished: it will be delivered again", [], "failed");
    case "death":
      return words("fault", "fault", "The worker dies. Its write may land late, and its input is delivered again", writeLines(values[0], []));
    case "fault":
      return words("fault", "fault", `${FAULTS[values[0]]}: ${nameArrival(values[1])}`, []);
    default:
      return words("end", kind, "", []);
  }
}

function words(kind: string, label: string, text: string, lines: string[], outcome?: string): Words {
  return { kind, label, text, lines, outcome };
}

export function nameArrival(arrival: any): string {
  if (arrival.message) return nameMessage(arrival.message);
  const { key, old, new: now } = arrival.changes[0];
  return `${now === null ? "REMOVE" : old === null ? "INSERT" : "MODIFY"} ${key}`;
}

function nameMessage(message: any): string {
  const again = message.delay_seconds ? "Second look at" : "Look at";
  switch (message.type) {
    case "PushMessage":
      return `${again} all items that ${message.source} lists`;
    case "ChunkMessage":
      return `Look at ${message.targets.length} items that ${message.source} lists`;
    case "CallMessage":
      return `Call the function of ${message.rule} again`;
    default:
      return `${again} ${message.target}`;
  }
}

function describeRecord(arrival: any): Words {
  const change = arrival.changes[0];
  const [old, now] = [change.old ?? {}, change.new ?? {}];
  const names = [...new Set([...Object.keys(old), ...Object.keys(now)])];
  const lines = names
    .filter((name) => JSON.stringify(old[name]) !== JSON.stringify(now[name]))
    .map((name) => `${name}: ${showValue(old[name])} → ${showValue(now[name])}`);
  const again = arrival.again || arrival.tries ? ", delivered again" : "";
  return words("record", "record", `${nameArrival(arrival)}${again}`, lines);
}

function describeTasks(pulls: any[], pushes: any[], parts: any[], effects: any[]): Words {
  const lines = [
    ...pulls.map((one) => `pull ${one.key}: compare its copies with their sources`),
    ...pushes.map((one) => `push ${one.source}: list its targets, for ${one.rules.join(", ")}`),
    ...parts.map((one) => `look at ${one.part.target}, for ${one.part.rule}`),
    ...effects.map(([, call]) => `call ${call.function}, for ${call.rule}`),
  ];
  const text = lines.length === 0 ? "No rule needs work" : lines.length === 1 ? "One task" : `${lines.length} tasks`;
  return words("tasks", "tasks", text, lines);
}

/** A request and its answer; without an answer it is still to come. */
export function describeRequest(request: any, answer?: any): Words {
  if (typeof answer === "string" && answer !== "dropped")
    return { ...describeRequest(request), outcome: `throttled: ${answer}` };
  switch (request.type) {
    case "Read":
      return words("read", "read", `${count(request.keys.length, "item")} by key, strongly consistent`,
        request.keys.map((key: string, at: number) => (answer ? showImage(key, answer[at]) : key)));
    case "List": {
      const where = request.conditions.equals.map(([name, value]: any) => `${name} = ${showValue(value)}`).join(", ");
      const rows = answer ? answer.items.map((row: any) => showItem(row)) : [];
      const note = request.index ? " (may lag, so only keys count)" : ", strongly consistent";
      const how = request.index ? `index ${request.index}` : request.table;
      return words("read", "read", `list ${how} where ${where}${note}`, answer && !rows.length ? ["no items"] : rows);
    }
    case "Apply":
      return { ...words("write", "write", count(request.writes.length, isGuarded ? "guarded write" : "write") + (isGuarded ? "" : " without guard"), writeLines(request, answer ?? [])),
        outcome: answer && outcomeOf(answer) };
    case "Later": {
      const when = request.delay_seconds ? ` in ${request.delay_seconds} s` : "";
      return words("message", "send", `${nameMessage(request.message)}${when}`, [],
        answer === "dropped" ? "not sent: second looks are off" : undefined);
    }
    case "Park":
      return words("fault", "set aside", `${request.failure.key}: ${request.failure.reason}`, [`rule ${request.failure.rule}`]);
    default:
      return words("message", "call", `function ${request.function ?? request.type}`, []);
  }
}

function outcomeOf(results: any[]): string {
  const found = [...new Set(results.map((one) => one.status))];
  return found.length === 1 ? `${found[0]}${results[0].reason ? `: ${results[0].reason}` : ""}` : found.join(", ");
}

function writeLines(request: any, results: any[]): string[] {
  return request.writes.flatMap((write: any, at: number) => {
    const actions = write.actions ?? [write];
    const status = new Set(results.map((one) => one.status)).size > 1 ? ` — ${results[at].status}` : "";
    return actions.map((action: any) => `${action.key} ${showAction(action)}${status}`);
  });
}

function showAction(action: any): string {
  const guard = (isGuarded ? action.guard : []).map(showCondition).filter(Boolean).join(" and ");
  return `${showChange(action)}${guard ? ` IF ${guard}` : ""}`;
}

function showChange(action: any): string {
  switch (action.type) {
    case "Put":
      return `PUT ${showItem(action.item, withoutKey(action.key))}`;
    case "Delete":
      return "DELETE";
    case "Check":
      return "CHECK";
    case "Increment":
      return `ADD ${action.amounts.map(([name, amount]: any) => `${amount} to ${name}`).join(", ")}`;
    default: {
      const sets = [...action.sets, ...action.adds].map(([path, value]: any) => `${path.join(".")} = ${showValue(value)}`);
      const removes = [...action.removes, ...action.discards.map((one: any) => one[0])].map((path: any) => path.join("."));
      return [sets.length && `SET ${sets.join(", ")}`, removes.length && `REMOVE ${removes.join(", ")}`].filter(Boolean).join(" ");
    }
  }
}

function showCondition(condition: any): string {
  const path = condition.path.join(".");
  if (condition.test === "=") return `${path} = ${showValue(condition.value)}`;
  return `${path} ${condition.test === "exists" ? "exists" : condition.test === "absent" ? "is absent" : "is a map"}`;
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
