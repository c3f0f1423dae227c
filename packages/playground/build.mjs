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

// ---------------------------------------------------------------- the licences
const LICENCES = ["MIT", "Apache-2.0", "MPL-2.0", "PSF-2.0"]; // another one stops the build: read it, and add it
const SPELLINGS = { "MIT License": "MIT", "Apache 2.0": "Apache-2.0" };
const parts = new Map(); // the text about each package, by its name

/** Note a package that the folder has, with the text of its licence. */
function addPart(name, version, given, text) {
  const licence = SPELLINGS[given] ?? given;
  if (!LICENCES.includes(licence) || !text) throw new Error(`${name} ${version}: licence ${given}, ${text ? "not one of " + LICENCES : "without its text"}`);
  parts.set(name, `${name} ${version} (${licence})\n\n${text.trim()}\n`);
}

/** Note the package of npm that has a file. */
function addPartOfFile(file) {
  const [folder] = /^.*node_modules\/(@[^/]+\/)?[^/]+/.exec(file) ?? [];
  if (!folder) return;
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json")));
  const text = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
  addPart(name, version, license, text && readFileSync(join(folder, text), "utf8"));
}

// ---------------------------------------------------------------- the page
for (const [name, input] of [["page.js", "src/main.ts"], ["worker.js", "src/worker.ts"]]) {
  const bundle = await rolldown({ input: join(here, input), cwd: here, platform: "browser" });
  const { output } = await bundle.write({ file: join(out, name), format: "esm", minify: true, codeSplitting: false });
  for (const file of output.flatMap((chunk) => chunk.moduleIds)) addPartOfFile(file);
}
cpSync(join(here, "page"), out, { recursive: true });

// ---------------------------------------------------------------- the runtime
for (const name of RUNTIME) cpSync(join(here, "node_modules/pyodide", name), join(out, "pyodide", name));
const { info } = JSON.parse(readFileSync(join(here, "node_modules/pyodide/pyodide-lock.json")));
writeFileSync(join(out, "pyodide/pyodide-lock.json"), JSON.stringify({ info, packages: {} }));
const pyodide = JSON.parse(readFileSync(join(here, "node_modules/pyodide/package.json")));
addPart("pyodide", pyodide.version, pyodide.license, "https://www.mozilla.org/en-US/MPL/2.0/, source: https://github.com/pyodide/pyodide");

// ---------------------------------------------------------------- the library
const bytes = (path) => new Uint8Array(readFileSync(path));
const python = await loadPyodide({ stdout: () => {} });
python.FS.mkdirTree("/library/packages/playground/engine");
for (const name of readdirSync(wheels).filter((one) => one.endsWith(".whl")))
  python.unpackArchive(bytes(join(wheels, name)), "wheel", { extractDir: "/library" });
for (const name of readdirSync(join(here, "engine")).filter((one) => one.endsWith(".py")))
  python.FS.writeFile(`/library/packages/playground/engine/${name}`, bytes(join(here, "engine", name)));
python.runPython(`
import compileall, importlib.metadata, json, pathlib, shutil, sys
library = pathlib.Path("/library")
def describe_part(one):
    classes = [text.rpartition(" :: ")[2] for text in one.metadata.get_all("Classifier", []) if text.startswith("License")]
    licence = one.metadata.get("License-Expression") or one.metadata.get("License") or " ".join(classes)
    texts = [path.locate().read_text() for path in one.files or () if "licen" in path.name.lower() and ".dist-info" in str(path)]
    return [one.name, one.version, licence, "\\n\\n".join(texts)]
described = json.dumps([describe_part(one) for one in importlib.metadata.distributions(path=[str(library)])])
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
for (const part of JSON.parse(python.globals.get("described"))) addPart(...part);
writeFileSync(join(out, "library.zip"), python.FS.readFile("/library-archive.zip"));
addPart("CPython", python.runPython("sys.version.split()[0]"), "PSF-2.0", `${python.runPython("sys.copyright")}\n\nhttps://docs.python.org/3/license.html`);
const rule = "-".repeat(80);
writeFileSync(join(out, "licences.txt"), `The packages in this folder, with their licences.\n\n${[...parts].sort().map(([, text]) => `${rule}\n${text}`).join("\n")}`);

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
