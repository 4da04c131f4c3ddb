// What goes before next edits: the menu of completions, and the tab stops of a snippet. VS Code tells extensions of
// neither; both are told here from what it asks for, and from changes and selections.

import * as vscode from 'vscode';
import type { Completions } from './completions';

/** A part of a document, by offsets. */
interface Part {
  readonly document: vscode.TextDocument;
  readonly start: number;
  readonly end: number;
}

export class Precedence implements vscode.Disposable {
  private readonly subscriptions: vscode.Disposable[];
  private readonly asked = new vscode.EventEmitter<void>();
  private menu = false;
  private latest: (Part & { readonly version: number }) | undefined; // what the latest change put in
  private snippet: Part | undefined;

  /** The user asks for ghost text by a key. */
  readonly onDidAsk = this.asked.event;

  /** The menu may have opened or closed. */
  readonly onDidChange: vscode.Event<void>;

  constructor(completions: Completions) {
    const changed = new vscode.EventEmitter<void>();
    this.onDidChange = changed.event;
    this.subscriptions = [
      this.asked,
      changed,
      completions.onDidAsk(({ triggerKind, selectedCompletionInfo }) => {
        this.menu = selectedCompletionInfo !== undefined;
        if (triggerKind === vscode.InlineCompletionTriggerKind.Invoke) {
          this.asked.fire();
        }
        changed.fire();
      }),
      vscode.workspace.onDidChangeTextDocument((event) => this.changed(event)),
      vscode.window.onDidChangeTextEditorSelection((event) => this.selected(event)),
    ];
  }

  dispose(): void {
    for (const each of this.subscriptions) {
      each.dispose();
    }
  }

  /** Whether the menu of completions is open, with an entry chosen: then VS Code says so whenever it asks. */
  get menuIsOpen(): boolean {
    return this.menu;
  }

  menuClosed(): void {
    this.menu = false;
  }

  /** Whether the cursor is, or may be, among the tab stops of a snippet; where the user has left it by a key, too. */
  mayBeInSnippet(document: vscode.TextDocument): boolean {
    return this.snippet?.document === document;
  }

  private changed({ document, contentChanges, reason }: vscode.TextDocumentChangeEvent): void {
    for (const { rangeOffset, rangeLength, text } of contentChanges) {
      if (this.snippet?.document === document) {
        this.snippet = moved(this.snippet, rangeOffset, rangeLength, text.length);
      }
    }
    const [only, ...others] = contentChanges;
    if (only !== undefined && others.length === 0 && reason === undefined) {
      const { rangeOffset: start, text } = only;
      this.latest = { document, start, end: start + inDocument(text, document), version: document.version };
    }
  }

  /** A snippet leaves the cursor within what it has put in, as nothing else does that the user has not typed. */
  private selected({ textEditor, selections, kind }: vscode.TextEditorSelectionChangeEvent): void {
    const { document } = textEditor;
    this.menu = false; // where it stays open VS Code asks again
    const [{ start: from, end: to }] = selections as [vscode.Selection];
    const [start, end] = [document.offsetAt(from), document.offsetAt(to)];
    const isLast = (part: Part) => start === end && end === part.end;
    const within = (part: Part) => part.document === document && start >= part.start && end <= part.end;
    const byKey = kind === vscode.TextEditorSelectionChangeKind.Keyboard;
    const { latest } = this;
    if (kind === undefined && latest?.version === document.version && within(latest) && !isLast(latest)) {
      this.snippet = latest;
    } else if (this.snippet !== undefined && (!within(this.snippet) || (!byKey && isLast(this.snippet)))) {
      this.snippet = undefined;
    }
  }
}

/** Where a part is after a change; undefined where both overlap. */
function moved(part: Part, offset: number, gone: number, come: number): Part | undefined {
  if (offset >= part.start && offset + gone <= part.end) {
    return { ...part, end: part.end + come - gone };
  }
  if (offset + gone <= part.start) {
    return { ...part, start: part.start + come - gone, end: part.end + come - gone };
  }
  return offset >= part.end ? part : undefined;
}

/** The length of a text that was put into a document, which has its own line ends. */
function inDocument(text: string, document: vscode.TextDocument): number {
  const plain = text.replace(/\r\n/g, '\n');
  return document.eol === vscode.EndOfLine.CRLF ? plain.replace(/\n/g, '\r\n').length : plain.length;
}
