// What is offered at the cursor, and what becomes of it. VS Code tells extensions of acceptances of whole items only;
// the keys for words, lines and dismissal therefore run commands of ours, which do the same and tell the server.

import { performance } from 'node:perf_hooks';
import * as vscode from 'vscode';
import type { Middleware } from 'vscode-languageclient/node';
import { timed } from './log';
import type { Server } from './server';
import type { Settings } from './settings';

/** A completion that was offered: its identifier, and its text behind the cursor with `\n` as line ends. */
interface Item {
  readonly id: string;
  readonly text: string;
}

type Provide = NonNullable<Middleware['provideInlineCompletionItems']>;

interface Offer {
  readonly document: vscode.TextDocument;
  readonly position: vscode.Position;
  readonly items: readonly Item[];
}

export class Completions {
  private offer: Offer | undefined;
  /** Milliseconds from the request to the last answer with a text. */
  tookMs: number | undefined;

  private readonly offered = new vscode.EventEmitter<void>();
  private readonly asked = new vscode.EventEmitter<vscode.InlineCompletionContext>();

  /** Completions have come in. */
  readonly onDidOffer = this.offered.event;

  /** VS Code asks for ghost text, of this extension and of others. */
  readonly onDidAsk = this.asked.event;

  constructor(private readonly settings: Settings) {}

  /** The middleware around the server's answers. */
  readonly provide: Provide = async (document, position, context, token, next) => {
    this.asked.fire(context);
    if (this.settings.paused || !this.settings.completes(document.languageId, document)) {
      return undefined;
    }
    const began = performance.now();
    const found = await next(document, position, context, token);
    if (!token.isCancellationRequested) {
      this.remember(document, position, found);
      if (this.offer !== undefined) {
        this.tookMs = performance.now() - began;
      }
      this.offered.fire();
    }
    return found;
  };

  private readonly remember = timed(
    'completions',
    (
      document: vscode.TextDocument,
      position: vscode.Position,
      found: vscode.InlineCompletionItem[] | vscode.InlineCompletionList | null | undefined,
    ) => {
      const list = Array.isArray(found) ? found : (found?.items ?? []);
      const items = list.flatMap((each) => itemOf(each, document) ?? []);
      this.offer = items.length > 0 ? { document, position, items } : undefined;
    },
  );

  /** Whether ghost text is at the cursor, as far as is known here; what is typed along counts as shown. */
  isShown(editor: vscode.TextEditor): boolean {
    const { offer } = this;
    const cursor = editor.selection.active;
    if (offer?.document !== editor.document || cursor.isBefore(offer.position)) {
      return false;
    }
    const typed = plain(editor.document.getText(new vscode.Range(offer.position, cursor)));
    return offer.items.some(({ text }) => text.length > typed.length && text.startsWith(typed));
  }

  /** Ghost text goes away when the cursor does. */
  moved(editor: vscode.TextEditor): void {
    if (this.offer?.document === editor.document && !this.isShown(editor)) {
      this.hide();
    }
  }

  /** Nothing is shown any more. */
  hide(): void {
    this.offer = undefined;
  }

  /** Takes a part of what is shown, by a command of VS Code's, and tells the server which. */
  async takePart(command: string, server: Server): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const offer = this.offer;
    await vscode.commands.executeCommand(command);
    if (editor === undefined || offer?.document !== editor.document) {
      return;
    }
    const taken = plain(editor.document.getText(new vscode.Range(offer.position, editor.selection.active)));
    const item = offer.items.find(({ text }) => text.startsWith(taken));
    // What is taken to its end VS Code has told of itself.
    if (taken !== '' && item !== undefined && taken !== item.text) {
      server.tell('codespec.acceptPartial', item.id, taken);
    }
  }

  /** Hides what is shown, and tells the server that it was not wanted. */
  async dismiss(server: Server): Promise<void> {
    const offer = this.offer;
    this.offer = undefined;
    await vscode.commands.executeCommand('editor.action.inlineSuggest.hide');
    const item = offer?.document === vscode.window.activeTextEditor?.document ? offer?.items[0] : undefined;
    if (item !== undefined) {
      server.tell('codespec.reject', item.id);
    }
  }
}

function itemOf(
  { insertText, range, command }: vscode.InlineCompletionItem,
  document: vscode.TextDocument,
): Item | undefined {
  const id: unknown = command?.arguments?.[0];
  if (typeof insertText !== 'string' || range === undefined || typeof id !== 'string') {
    return undefined;
  }
  // The item repeats the line up to the cursor.
  return { id, text: insertText.slice(document.getText(range).length) };
}

function plain(text: string): string {
  return text.replace(/\r\n/g, '\n');
}
