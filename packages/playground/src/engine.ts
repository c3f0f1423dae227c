/** The page's end of the worker: calls with an answer, one after the other. */

import type { Problem, State } from "./protocol";

export class Engine {
  private worker = new Worker(new URL("worker.js", document.baseURI), { type: "module" });
  private waiting = new Map<number, [(answer: any) => void, (error: Error) => void]>();
  private last = 0;
  readonly ready: Promise<unknown>;

  constructor() {
    this.worker.onmessage = ({ data: { id, answer, error } }) => {
      const [resolve, reject] = this.waiting.get(id)!;
      this.waiting.delete(id);
      error === undefined ? resolve(JSON.parse(answer)) : reject(new Error(error));
    };
    this.ready = this.wait(0);
  }

  check(rules: string): Promise<Problem[]> {
    return this.call("check", rules);
  }

  schema(): Promise<any> {
    return this.call("schema");
  }

  /** A method of the session that answers with its state, or with a mistake. */
  ask(method: string, ...texts: string[]): Promise<State> {
    return this.call(method, ...texts);
  }

  private call(method: string, ...texts: string[]): Promise<any> {
    const id = ++this.last;
    this.worker.postMessage({ id, method, texts });
    return this.wait(id);
  }

  private wait(id: number): Promise<any> {
    return new Promise((resolve, reject) => this.waiting.set(id, [resolve, reject]));
  }
}
