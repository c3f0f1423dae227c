// Unpack the Chromium that the npm package @sparticuz/chromium brings along, with the libraries and fonts beside it that
// a bare machine lacks: node tests/unpack-chromium.mjs PACKAGE DIRECTORY. What is half done leaves no DIRECTORY.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { brotliDecompressSync } from "node:zlib";

const [from, to] = process.argv.slice(2);
const temporary = `${to}.new`;
const unpacked = (name) => brotliDecompressSync(readFileSync(`${from}/bin/${name}.br`));

rmSync(temporary, { recursive: true, force: true });
mkdirSync(temporary, { recursive: true });
writeFileSync(`${temporary}/chromium`, unpacked("chromium"), { mode: 0o755 });
for (const name of ["al2023.tar", "fonts.tar"]) {
  execFileSync("tar", ["-xf", "-", "-C", temporary], { input: unpacked(name) });
}
writeFileSync(
  `${temporary}/fonts.xml`,
  '<?xml version="1.0"?>\n<fontconfig><dir prefix="relative">fonts</dir><cachedir prefix="xdg">fontconfig</cachedir></fontconfig>\n',
);
rmSync(to, { recursive: true, force: true });
renameSync(temporary, to);
