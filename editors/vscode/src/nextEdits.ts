// Next edits: what the server offers to change next, drawn where it would be, with a key to go there and one to apply
// it. Of the ways to draw that VS Code has, only decorations are open to extensions.

import * as vscode from 'vscode';
import type { Completions } from './completions';
import { EditDrawing } from './editDrawing';
import { endOf, isIn, isNear, read, startOf, type Answer, type Offer } from './editOffer';
import { log, messageOf, timed } from './log';
import { Precedence } from './precedence';
import type { Server } from './server';
import { SECTION, type Settings } from './settings';

const METHOD = 'codespec/inlineEdit';
const FOCUS = 'textDocument/didFocus';

/** Set while an edit is drawn, or a hint at one; the keys are bound to it. */
const SHOWN = `${SECTION}.editShown`;

/** Set while the menu of completions hides one. */
const WAITS = `${SECTION}.editWaits`;

/** How long the keyboard has to rest before an edit is asked for by itself: ghost text comes first. */
const PAUSE_MS = 350;

const INVOKED = 1;
const AUTOMATIC = 2;

export class NextEdits implements vscode.Disposable {
  private readonly drawing = new EditDrawing();
  private readonly others: Precedence;
  private readonly subscriptions: vscode.Disposable[];
  private offer: Offer | undefined;
  private askedIn: vscode.TextDocument | undefined;
  private asking: vscode.CancellationTokenSource | undefined;
  private pause: NodeJS.Timeout | undefined;
  private applying: vscode.TextDocument | undefined;

  constructor(
    private readonly server: Server,
    private readonly settings: Settings,
    private readonly completions: Completions,
  ) {
    const redraw = timed('next edit', () => this.draw());
    this.others = new Precedence(completions);
    this.subscriptions = [
      this.drawing,
      this.others,
      this.others.onDidChange(redraw),
      this.others.onDidAsk(() => this.forget()),
      completions.onDidOffer(redraw),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => {
        completions.moved(textEditor);
        redraw();
      }),
      vscode.window.onDidChangeTextEditorVisibleRanges(redraw),
      vscode.window.onDidChangeActiveTextEditor((editor) => this.focused(editor)),
      vscode.workspace.onDidChangeTextDocument((event) => this.changed(event)),
      server.onDidStart(() => this.focused(vscode.window.activeTextEditor)),
      server.onDidChange(() => {
        if (server.life.name !== 'running') {
          this.forget();
        }
      }),
      settings.onDidPause(() => this.forget()),
    ];
  }

  dispose(): void {
    this.forget();
    for (const each of this.subscriptions) {
      each.dispose();
    }
  }

  /** Asks for the next edit because the user wants it. */
  async next(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined) {
      return;
    }
    const obstacle = this.obstacle(editor);
    if (obstacle !== undefined) {
      say(obstacle);
      return;
    }
    this.completions.hide();
    await vscode.commands.executeCommand('editor.action.inlineSuggest.hide');
    await vscode.commands.executeCommand('hideSuggestWidget');
    this.others.menuClosed();
    const found = await this.ask(editor, INVOKED);
    if (found === false) {
      say('there is no next edit');
    } else if (found) {
      const { active } = editor.selection;
      editor.selection = new vscode.Selection(active, active); // beside selected text it would not be drawn
    }
  }

  /** Tells why there is no edit among the tab stops of a snippet: `Tab` is theirs. */
  refuse(): void {
    say('no next edit within a snippet; Escape leaves it');
  }

  /** Closes the menu of completions, which goes before an edit. */
  async closeMenu(): Promise<void> {
    await vscode.commands.executeCommand('hideSuggestWidget');
    this.others.menuClosed();
    this.draw();
  }

  /** Goes to the edit; where the cursor is there, applies it and asks for the one after it. */
  async jumpOrApply(): Promise<void> {
    const { offer } = this;
    const editor = vscode.window.activeTextEditor;
    if (offer === undefined || editor === undefined) {
      return;
    }
    if (isNear(offer, editor)) {
      await this.apply(offer, editor);
    } else {
      await this.jump(offer, editor);
    }
  }

  /** Hides the edit, and has it not offered again. */
  drop(): void {
    if (this.offer !== undefined) {
      this.server.tell('codespec.rejectEdit', this.offer.id);
    }
    this.forget();
  }

  /** Why no edit can be asked for. */
  private obstacle({ document }: vscode.TextEditor): string | undefined {
    const { life, status } = this.server;
    if (this.settings.paused) {
      return 'paused here';
    }
    if (life.name !== 'running') {
      return life.name === 'starting' ? 'the server is starting' : 'the server does not run';
    }
    if (status?.edits_mode === 'off') {
      return 'next edits are switched off (codespec.edits.mode)';
    }
    return this.settings.completes(document.languageId, document) ? undefined : `paused for ${document.languageId}`;
  }

  private async jump(offer: Offer, editor: vscode.TextEditor): Promise<void> {
    const start = startOf(offer);
    const target = isIn(offer, editor.document) ? editor : await vscode.window.showTextDocument(offer.uri);
    target.selection = new vscode.Selection(start, start);
    target.revealRange(new vscode.Range(start, start), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
    this.draw();
  }

  private async apply(offer: Offer, editor: vscode.TextEditor): Promise<void> {
    this.hide();
    if (editor.document.version !== offer.version) {
      return;
    }
    this.applying = editor.document;
    try {
      const done = await editor.edit((builder) => {
        for (const { range, text } of offer.hunks) {
          builder.replace(range, text);
        }
      });
      if (!done) {
        return;
      }
    } finally {
      this.applying = undefined;
    }
    this.server.tell('codespec.acceptEdit', offer.id);
    const end = endOf(offer);
    editor.selection = new vscode.Selection(end, end);
    await this.ask(editor, INVOKED);
  }

  /** Asks the server; whether there is an edit now. Undefined where that was not answered: the server has told why. */
  private async ask(editor: vscode.TextEditor, triggerKind: number): Promise<boolean | undefined> {
    const { document, selection } = editor;
    const version = document.version;
    this.forget();
    if (!this.settings.completes(document.languageId, document)) {
      return false;
    }
    const asking = (this.asking = new vscode.CancellationTokenSource());
    const params = {
      textDocument: { uri: document.uri.toString(), version },
      position: { line: selection.active.line, character: selection.active.character },
      context: { triggerKind },
    };
    try {
      const answer = await this.server.request<Answer | null>(METHOD, params, asking.token);
      if (answer === null || asking.token.isCancellationRequested || document.version !== version) {
        return undefined;
      }
      this.offer = read(answer);
      this.askedIn = document;
      this.draw();
      return this.offer !== undefined;
    } catch (error) {
      if (!asking.token.isCancellationRequested) {
        log.debug(`${METHOD}: ${messageOf(error)}`);
      }
      return undefined;
    } finally {
      if (this.asking === asking) {
        this.asking = undefined;
      }
      asking.dispose();
    }
  }

  private changed({ document, contentChanges }: vscode.TextDocumentChangeEvent): void {
    const editor = vscode.window.activeTextEditor;
    if (contentChanges.length === 0 || document === this.applying) {
      return;
    }
    if (document === editor?.document || (this.offer !== undefined && isIn(this.offer, document))) {
      this.forget();
    }
    if (editor === undefined || document !== editor.document || this.server.status?.edits_mode !== 'automatic') {
      return;
    }
    this.pause = setTimeout(() => {
      const free = !this.completions.isShown(editor) && !this.others.mayBeInSnippet(document);
      if (vscode.window.activeTextEditor === editor && !this.settings.paused && free) {
        void this.ask(editor, AUTOMATIC);
      }
    }, PAUSE_MS);
  }

  private focused(editor: vscode.TextEditor | undefined): void {
    if (editor !== undefined) {
      this.server.notify(FOCUS, { textDocument: { uri: editor.document.uri.toString() } });
    }
    this.draw();
  }

  /** Nobody wants the edit any more, nor the answer that is awaited. */
  private forget(): void {
    clearTimeout(this.pause);
    this.asking?.cancel();
    this.asking = undefined;
    this.hide();
  }

  private hide(): void {
    if (this.offer !== undefined) {
      this.offer = undefined;
      this.draw();
    }
  }

  /**
   * Draws the edit where it is and where it was asked for, but never beside ghost text or the menu of completions, nor
   * where text is selected or there are several cursors: the keys are for these. In any other document they are the user's.
   */
  private draw(): void {
    const editor = vscode.window.activeTextEditor;
    const { offer } = this;
    const has = editor !== undefined && offer !== undefined;
    const here = has && (editor.document === this.askedIn || isIn(offer, editor.document));
    const oneCursor = editor?.selections.length === 1 && editor.selection.isEmpty;
    const offered = here && oneCursor && !this.completions.isShown(editor);
    const shown = offered && !this.others.menuIsOpen;
    this.drawing.draw(shown ? offer : undefined, editor);
    void vscode.commands.executeCommand('setContext', SHOWN, shown);
    void vscode.commands.executeCommand('setContext', WAITS, offered && !shown);
  }
}

function say(text: string): void {
  vscode.window.setStatusBarMessage(`codespec: ${text}`, 3_000);
}
