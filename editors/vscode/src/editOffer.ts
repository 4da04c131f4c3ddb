// A next edit as the server answers it, and where it is.

import * as vscode from 'vscode';

/** Lines on each side of an edit from where it is applied at once. */
const NEAR = 2;

/** Columns to each side of the cursor that are surely on the screen; VS Code does not tell how far it is scrolled. */
const NEAR_COLUMNS = 80;

interface Range {
  readonly start: { readonly line: number; readonly character: number };
  readonly end: { readonly line: number; readonly character: number };
}

/** What the server answers. */
export interface Answer {
  readonly edits: readonly {
    readonly textDocument: { readonly uri: string; readonly version: number };
    readonly command: { readonly arguments: readonly [string] };
    readonly hunks: readonly { readonly range: Range; readonly text: string }[];
  }[];
}

export interface Hunk {
  readonly range: vscode.Range;
  readonly text: string;
}

/** An edit that is offered for one version of a document. */
export interface Offer {
  readonly id: string;
  readonly uri: vscode.Uri;
  readonly version: number;
  readonly hunks: readonly [Hunk, ...Hunk[]];
}

/** Where an edit begins. */
export function startOf(offer: Offer): vscode.Position {
  return offer.hunks[0].range.start;
}

/** Whether the cursor is so near to an edit, and its beginning on the screen, that the user sees what would change. */
export function isNear(offer: Offer, editor: vscode.TextEditor): boolean {
  const { line: first, character } = startOf(offer);
  const last = (offer.hunks.at(-1) as Hunk).range.end.line;
  const { active: cursor } = editor.selection;
  const near = isIn(offer, editor.document) && cursor.line >= first - NEAR && cursor.line <= last + NEAR;
  const wraps = vscode.workspace.getConfiguration('editor', editor.document).get('wordWrap') !== 'off';
  const beside = wraps || Math.abs(cursor.character - character) <= NEAR_COLUMNS;
  return near && beside && editor.visibleRanges.some(({ start, end }) => first >= start.line && first <= end.line);
}

export function isIn(offer: Offer, document: vscode.TextDocument): boolean {
  return offer.uri.toString() === document.uri.toString();
}

export function read(answer: Answer | null): Offer | undefined {
  const edit = answer?.edits[0];
  const [first, ...others] = (edit?.hunks ?? []).map(({ range: { start, end }, text }) => ({
    range: new vscode.Range(start.line, start.character, end.line, end.character),
    text,
  }));
  if (edit === undefined || first === undefined) {
    return undefined;
  }
  const { uri, version } = edit.textDocument;
  return { id: edit.command.arguments[0], uri: vscode.Uri.parse(uri), version, hunks: [first, ...others] };
}

/** Where the last hunk ends once all are applied. */
export function endOf({ hunks }: Offer): vscode.Position {
  let [line, character, lastOld] = [0, 0, new vscode.Position(0, 0)];
  let moved = 0; // lines so far
  for (const { range, text } of hunks) {
    const lines = text.split('\n');
    const sameLine = range.start.line === lastOld.line && (line > 0 || character > 0);
    const start = sameLine ? character + range.start.character - lastOld.character : range.start.character;
    line = range.start.line + moved + lines.length - 1;
    character = (lines.length === 1 ? start : 0) + (lines.at(-1) as string).length;
    moved += lines.length - 1 - (range.end.line - range.start.line);
    lastOld = range.end;
  }
  return new vscode.Position(line, character);
}
