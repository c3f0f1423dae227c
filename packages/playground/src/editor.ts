/** The editor of the rules: YAML, the problems that `check` finds, and completion by the JSON Schema. */

import { autocompletion, completionKeymap, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

import type { Problem } from "./protocol";

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--code-key)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-text)" },
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
  { tag: [tags.punctuation, tags.separator, tags.brace, tags.squareBracket], color: "var(--muted)" },
]);

export class RulesEditor {
  private view: EditorView;
  private schema: any = null;
  private setting = false;

  constructor(parent: HTMLElement, onChange: (text: string) => void) {
    this.view = new EditorView({
      parent,
      state: EditorState.create({
        extensions: [
          lineNumbers(),
          history(),
          highlightActiveLine(),
          indentOnInput(),
          lintGutter(),
          yaml(),
          syntaxHighlighting(colours),
          autocompletion({ override: [(context) => this.complete(context)], icons: false }),
          keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap]), // Tab leaves the editor
          EditorView.contentAttributes.of({ "aria-label": "rules.yaml" }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged && !this.setting) onChange(this.text);
          }),
        ],
      }),
    });
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  set text(text: string) {
    this.setting = true; // not typed: nothing asks for a check
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text }, selection: { anchor: 0 } });
    this.view.scrollDOM.scrollTo(0, 0);
    this.setting = false;
  }

  useSchema(schema: any): void {
    this.schema = schema;
  }

  showProblems(problems: Problem[]): void {
    const doc = this.view.state.doc;
    const diagnostics = problems.map((one) => {
      const line = doc.line(Math.min(Math.max(one.line, 1), doc.lines));
      const from = Math.min(line.from + one.column - 1, line.to);
      const word = /^[^\s,:\]}]+/.exec(doc.sliceString(from, line.to))?.[0] ?? "";
      return { from, to: from + word.length, severity: one.severity, message: `${one.message} [${one.code}]\n${one.cure}` };
    });
    this.view.dispatch(setDiagnostics(this.view.state, diagnostics));
  }

  goTo(problem: Problem): void {
    const line = this.view.state.doc.line(Math.min(problem.line, this.view.state.doc.lines));
    this.view.dispatch({ selection: { anchor: Math.min(line.from + problem.column - 1, line.to) }, scrollIntoView: true });
    this.view.focus();
  }

  // ---------------------------------------------------------------- completion
  private complete(context: CompletionContext): CompletionResult | null {
    const line = context.state.doc.lineAt(context.pos);
    const before = line.text.slice(0, context.pos - line.from);
    const typed = /^(\s*(?:-\s+)?)([\w-]*)$/.exec(before);
    if (!this.schema || !typed || (!typed[2] && !context.explicit)) return null;
    const names = this.names(this.path(line.number, typed[1]!.length), this.siblings(line.number, typed[1]!.length));
    return names.length ? { from: context.pos - typed[2]!.length, options: names, validFor: /^[\w-]*$/ } : null;
  }

  private key(number: number): { indent: number; name: string } | null {
    const found = /^(\s*(?:-\s+)?)"?([\w.-]+)"?:/.exec(this.view.state.doc.line(number).text);
    return found && { indent: found[1]!.length, name: found[2]! };
  }

  /** The other keys of the map that a line is in. */
  private siblings(number: number, indent: number): string[] {
    const found: string[] = [];
    for (const direction of [-1, 1])
      for (let at = number + direction; at > 0 && at <= this.view.state.doc.lines; at += direction) {
        const key = this.key(at);
        if (key && key.indent < indent) break;
        if (key?.indent === indent) found.push(key.name);
      }
    return found;
  }

  /** The keys above a line, by their indentation. */
  private path(number: number, indent: number): string[] {
    const path: string[] = [];
    for (let at = number - 1; at > 0 && indent > 0; at--) {
      const key = this.key(at);
      if (key && key.indent < indent) {
        path.unshift(key.name);
        indent = key.indent;
      }
    }
    return path;
  }

  /** The names that fit: of the forms that have all siblings, if there are such. */
  private names(path: string[], siblings: string[]): { label: string; info?: string; apply: string }[] {
    let places = this.alternatives(this.schema);
    for (const key of path) {
      const inner = (one: any) => one.properties?.[key] ?? Object.values(one.patternProperties ?? {})[0] ?? one.additionalProperties;
      places = places.flatMap((one) => this.alternatives(inner(one)));
    }
    const fitting = places.filter((one) => one.properties && siblings.every((name) => name in one.properties));
    const found = (fitting.length ? fitting : places).flatMap((one) => Object.entries<any>(one.properties ?? {}));
    const free = [...new Map(found)].filter(([label]) => !siblings.includes(label));
    return free.map(([label, one]) => ({ label, info: one.description, apply: `${label}: ` }));
  }

  private alternatives(place: any): any[] {
    if (!place || typeof place !== "object") return [];
    if (place.$ref) return this.alternatives(place.$ref.slice(2).split("/").reduce((at: any, key: string) => at?.[key], this.schema));
    const nested = [...(place.anyOf ?? []), ...(place.oneOf ?? []), ...(place.allOf ?? [])];
    return [place, ...nested.flatMap((one: any) => this.alternatives(one))];
  }
}
