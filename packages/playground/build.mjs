/**
 * Builds the static folder: node build.mjs WHEELS OUT. WHEELS has the wheel of sync-rules and those of the packages that
 * its rings import. The engine runs here once: it compiles its modules, and makes the recording that the page shows first.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadPyodide } from "pyodide";
import { rolldown } from "rolldown";

const here = import.meta.dirname;
const root = join(here, "../..");
const [wheels, out = join(here, "dist")] = process.argv.slice(2);
const RUNTIME = ["pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip"];
const FIRST = "authors-and-books";

process.on("uncaughtException", (error) => {
  console.error(error.message); // the trace would quote a line of a megabyte
  process.exit(1);
});

rmSync(out, { recursive: true, force: true });
mkdirSync(join(out, "pyodide"), { recursive: true });

// ---------------------------------------------------------------- the page
for (const [name, input] of [["page.js", "src/main.ts"], ["worker.js", "src/worker.ts"]]) {
  const bundle = await rolldown({ input: join(here, input), cwd: here, platform: "browser" });
  await bundle.write({ file: join(out, name), format: "esm", minify: true, codeSplitting: false });
}
cpSync(join(here, "page"), out, { recursive: true });

// ---------------------------------------------------------------- the runtime
for (const name of RUNTIME) cpSync(join(here, "node_modules/pyodide", name), join(out, "pyodide", name));
const { info } = JSON.parse(readFileSync(join(here, "node_modules/pyodide/pyodide-lock.json")));
writeFileSync(join(out, "pyodide/pyodide-lock.json"), JSON.stringify({ info, packages: {} }));

// ---------------------------------------------------------------- the library
const bytes = (path) => new Uint8Array(readFileSync(path));
const python = await loadPyodide({ stdout: () => {} });
python.FS.mkdirTree("/library/packages/playground/engine");
for (const name of readdirSync(wheels).filter((one) => one.endsWith(".whl")))
  python.unpackArchive(bytes(join(wheels, name)), "wheel", { extractDir: "/library" });
for (const name of readdirSync(join(here, "engine")).filter((one) => one.endsWith(".py")))
  python.FS.writeFile(`/library/packages/playground/engine/${name}`, bytes(join(here, "engine", name)));
python.runPython(`
import compileall, pathlib, shutil, sys
library = pathlib.Path("/library")
LEFT_OUT = ("*.dist-info", "sync_rules/extras/discover", "sync_rules/extras/proof", "sync_rules/functions", "sync_rules/deploy/[!_y]*", "sync_rules/cli/commands",
            "sync_rules/lab/demo", "pydantic/v1", "pydantic/mypy.py", "pydantic/_hypothesis_plugin.py",
            "**/__pycache__", "**/*.pyi", "**/py.typed")
for pattern in LEFT_OUT:
    for path in sorted(library.glob(pattern)):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
assert compileall.compile_dir(library, quiet=1, legacy=True, ddir="")
for path in library.rglob("*.py"):
    path.unlink()
shutil.make_archive("/library-archive", "zip", library)
sys.path.insert(0, "/library")
from packages.playground.engine import absent
absent.install()
from packages.playground.engine.session import Session
session = Session("/tmp/playground")
`);
writeFileSync(join(out, "library.zip"), python.FS.readFile("/library-archive.zip"));

// ---------------------------------------------------------------- the recording
const read = (name, file) => readFileSync(join(root, "examples", name, file), "utf8");
const names = readdirSync(join(root, "examples")).sort().filter((one) => existsSync(join(root, "examples", one, "scenario.yaml")));
const examples = [FIRST, ...names.filter((name) => name !== FIRST)].map((name) => ({
  name,
  title: /^# (.*)/.exec(read(name, "rules.yaml"))[1],
  rules: read(name, "rules.yaml"),
  data: read(name, "data.yaml"),
  scenario: read(name, "scenario.yaml"),
}));
const call = python.runPython("session.call");
const { rules, data, scenario } = examples[0];
const states = [["open", rules, data, scenario, ""], ["next"], ["run"]].map((given) => {
  const answer = JSON.parse(call(...given));
  if (answer.mistake) throw new Error(answer.mistake);
  return answer;
});
const patterns = JSON.parse(call("patterns"));
const state = { ...states.at(-1), events: states.flatMap((one) => one.events) };
writeFileSync(join(out, "recording.json"), JSON.stringify({ examples, state, patterns }));
process.exit(0);
