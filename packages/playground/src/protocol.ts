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
  arrows: string[];
  events: Event[];
  mistake?: string;
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
}
