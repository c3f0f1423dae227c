/** The types of what the engine answers: the state of engine/session.py as JSON. */

export type Raw = { [type: string]: any }; // a value as DynamoDB's JSON has it: {"S": "text"}
export type Item = { [name: string]: Raw };

export interface Row {
  id: string;
  entity: string;
  item: Item;
  own: Item | null; // what the application wrote; null: rules made the whole item
  copies: string[]; // paths that rules keep
  wrong: string[];
}

export interface Table {
  name: string;
  key: string[];
  indexes: string[];
  items: Row[];
}

export interface Wrong {
  rule: string;
  drift: string;
  key: string;
  path: string[];
  check: string;
}

export type Event = [kind: string, ...values: any[]];

export interface State {
  tables: Table[];
  wrong: Wrong[];
  stuck: { rule: string; key: string; reason: string }[]; // at rest: what no write can make right
  waiting: any[];
  request: any;
  delayed: number;
  flying: number;
  finished: number;
  lags: boolean;
  throttles: boolean;
  idle: boolean;
  off: string[];
  steps: string[];
  graph: Graph;
  events: Event[];
}

/** A drawing of the rules, in pixels. A line is a path of SVG; an arrowhead is where it `begins` or `ends`. */
export interface Graph {
  width: number;
  height: number;
  boxes: { x: number; y: number; width: number; height: number; name: string; within: string }[];
  names: { x: number; y: number; name: string; keeps: string }[];
  lines: { path: string; begins: boolean; ends: boolean }[];
}

export interface Patterns {
  rows: { name: string; finds: string; requests: string[]; price: string[]; problem: string[] }[];
  remarks: string[];
  prices: string;
}

/** What a rule says of a value: its line, why it is not right, and what it reads of each source. */
export interface Explanation {
  line: string;
  why: string;
  sources: { key: string; item: Item | null }[];
}

export interface Problem {
  code: string;
  severity: "error" | "warning";
  line: number;
  column: number;
  road: string;
  message: string;
  why: string;
  cure: string;
}

export interface Example {
  name: string;
  title: string;
  rules: string;
  data: string;
  scenario: string;
}

export interface Recording {
  examples: Example[];
  state: State;
  patterns: Patterns;
}
