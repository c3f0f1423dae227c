/** The web worker: Python in WebAssembly, with the rings of sync-rules in it. One message in, one answer out. */

import type { PyodideInterface } from "pyodide";

const here = new URL(".", self.location.href).href;

async function start(): Promise<(method: string, ...texts: string[]) => string> {
  const runtime: string = `${here}pyodide/pyodide.mjs`; // not bundled: it finds its files beside itself
  const library = fetch(`${here}library.zip`).then((answer) => answer.arrayBuffer());
  const { loadPyodide } = await import(runtime);
  const python: PyodideInterface = await loadPyodide({ indexURL: `${here}pyodide/` });
  const packages = python.runPython("import site; site.getsitepackages()[0]");
  python.unpackArchive(await library, "zip", { extractDir: packages });
  python.runPython("from packages.playground.engine import absent; absent.install()");
  return python.runPython("from packages.playground.engine.session import Session; Session('/tmp/playground').call");
}

const ready = start();
ready.then(
  () => self.postMessage({ id: 0, answer: "true" }),
  (error) => self.postMessage({ id: 0, error: String(error) }),
);

self.onmessage = async ({ data: { id, method, texts } }) => {
  try {
    self.postMessage({ id, answer: (await ready)(method, ...texts) });
  } catch (error) {
    self.postMessage({ id, error: String(error) });
  }
};
