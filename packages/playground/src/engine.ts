/** The page's end of the worker: calls with an answer, one after the other. */

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

  /** The answer of a method of the session. */
  call<T>(method: string, ...texts: string[]): Promise<T> {
    const id = ++this.last;
    this.worker.postMessage({ id, method, texts });
    return this.wait(id);
  }

  private wait(id: number): Promise<any> {
    return new Promise((resolve, reject) => this.waiting.set(id, [resolve, reject]));
  }
}
