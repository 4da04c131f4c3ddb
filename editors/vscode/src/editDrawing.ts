// How a next edit looks: what goes is struck out, what comes stands beside it, and where it is out of sight there is a
// hint behind the line with the cursor.

import * as vscode from 'vscode';
import { isIn, isNear, startOf, type Hunk, type Offer } from './editOffer';

/** Blanks at the start and end of what is drawn, which VS Code would swallow. */
const BLANK = '\u00a0';

/** Stands for a line's end: VS Code draws but one line. */
const BREAK = ' ⏎ ';

export class EditDrawing implements vscode.Disposable {
  private readonly removed = vscode.window.createTextEditorDecorationType({
    textDecoration: `line-through; ${background('diffEditor-removedText')}; ${outline('diffEditor-removedText')}`,
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
  });
  private readonly added = vscode.window.createTextEditorDecorationType({
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
  });
  private drawn: vscode.TextEditor | undefined;

  dispose(): void {
    for (const type of [this.removed, this.added]) {
      type.dispose();
    }
  }

  /** Draws an edit, or a hint at it, in an editor, and nothing anywhere else. */
  draw(offer: Offer | undefined, editor: vscode.TextEditor | undefined): void {
    if (this.drawn !== undefined && (this.drawn !== editor || offer === undefined)) {
      this.set(this.drawn, [], []);
      this.drawn = undefined;
    }
    if (offer === undefined || editor === undefined) {
      return;
    }
    this.drawn = editor;
    const here = isIn(offer, editor.document);
    const hunks = here ? offer.hunks : [];
    const gone = hunks.flatMap(({ range }) => removals(range, editor.document));
    const come = hunks.flatMap((hunk) => additions(hunk, editor.document));
    this.set(editor, gone, merged(come, hintAt(offer, editor)));
  }

  private set(
    editor: vscode.TextEditor,
    gone: readonly vscode.Range[],
    come: readonly vscode.DecorationOptions[],
  ): void {
    editor.setDecorations(this.removed, gone);
    editor.setDecorations(this.added, come);
  }
}

/**
 * A background of the letters alone. That of a decoration would reach to where the next letter begins, and so lie below
 * what is drawn in between.
 */
function background(name: string): string {
  return `background-color: var(--vscode-${name}Background)`;
}

/** What themes of high contrast have in place of a background; in others the variable is missing, and so the line. */
function outline(name: string): string {
  return `outline: 1px solid var(--vscode-${name}Border)`;
}

/** What goes, line by line, without the lines' ends: beside those stands what comes. */
function removals(range: vscode.Range, document: vscode.TextDocument): vscode.Range[] {
  const found: vscode.Range[] = [];
  for (let line = range.start.line; line <= range.end.line; line++) {
    const part = document.lineAt(line).range.intersection(range);
    if (part !== undefined && !part.isEmpty) {
      found.push(part);
    }
  }
  return found;
}

/** What comes: behind what goes or, where that is several lines, each line behind one of them. */
function additions({ range, text }: Hunk, document: vscode.TextDocument): vscode.DecorationOptions[] {
  if (text === '') {
    return [];
  }
  const lines = text.split('\n');
  const whole = range.end.character === 0 && lines.at(-1) === '';
  const last = whole && !range.isEmpty ? range.end.line - 1 : range.end.line;
  const rows = Math.min(last - range.start.line + 1, lines.length);
  if (rows <= 1) {
    return [addition(range.end, lines.join(BREAK))];
  }
  const kept = whole ? lines.slice(0, -1) : lines;
  const shown = [...kept.slice(0, rows - 1), kept.slice(rows - 1).join(BREAK)];
  return shown.map((line, index) => addition(document.lineAt(range.start.line + index).range.end, line));
}

function addition(at: vscode.Position, text: string): vscode.DecorationOptions {
  const before = {
    contentText: text.replace(/\t/g, '    ').replace(/ /g, BLANK) || BLANK,
    textDecoration: `none; ${background('diffEditor-insertedText')}; ${outline('diffEditor-insertedText')}`,
    color: new vscode.ThemeColor('editor.foreground'),
  };
  return { range: new vscode.Range(at, at), renderOptions: { before } };
}

/** A hint together with what comes at the same place: of two decorations VS Code would draw either first. */
function merged(come: vscode.DecorationOptions[], hint: vscode.DecorationOptions): vscode.DecorationOptions[] {
  const there = come.find(({ range }) => range.isEqual(hint.range));
  const both = { ...hint, renderOptions: { ...there?.renderOptions, ...hint.renderOptions } };
  return [...come.filter((each) => each !== there), both];
}

/** What the key does: behind the edit, or behind the line with the cursor where the edit is elsewhere. */
function hintAt(offer: Offer, editor: vscode.TextEditor): vscode.DecorationOptions {
  const near = isNear(offer, editor);
  const start = startOf(offer);
  const here = isIn(offer, editor.document);
  const place = `${here ? '' : `${offer.uri.path.split('/').at(-1)}, `}line ${start.line + 1}`;
  const text = near ? 'Tab: apply' : `Tab: jump to ${place}`;
  const { end } = editor.document.lineAt(near ? start.line : editor.selection.active.line).range;
  const after = {
    contentText: `${BLANK.repeat(3)}${text.replace(/ /g, BLANK)}`,
    color: new vscode.ThemeColor('editorCodeLens.foreground'),
    fontStyle: 'italic',
  };
  return { range: new vscode.Range(end, end), renderOptions: { after } };
}
