import * as vscode from 'vscode';
import type { Completions } from './completions';
import type { Server } from './server';
import type { Settings } from './settings';

const ERROR = new vscode.ThemeColor('statusBarItem.errorBackground');
const WARNING = new vscode.ThemeColor('statusBarItem.warningBackground');

interface Shown {
  readonly text: string;
  readonly details: readonly string[];
  readonly background?: vscode.ThemeColor;
  readonly command?: string;
}

/** Model, draft, acceptance rate and state; a click opens the menu. */
export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem('codespec.status', vscode.StatusBarAlignment.Right, 100);

  constructor(
    private readonly server: Server,
    private readonly settings: Settings,
    private readonly completions: Completions,
    private readonly grammarOf: (document: vscode.TextDocument) => string | undefined,
  ) {
    this.item.name = 'codespec';
  }

  dispose(): void {
    this.item.dispose();
  }

  update(): void {
    if (!this.settings.get<boolean>('statusBar')) {
      this.item.hide();
      return;
    }
    const { text, details, background, command } = this.shown();
    const label = `codespec: ${details.join('. ')}`;
    if (this.item.text !== text || this.item.accessibilityInformation?.label !== label) {
      this.item.text = text;
      this.item.accessibilityInformation = { label, role: 'button' };
    }
    this.item.tooltip = new vscode.MarkdownString(['**codespec**', ...details, '_Click for the menu_'].join('\n\n'));
    this.item.backgroundColor = background;
    this.item.command = command ?? 'codespec.showMenu';
    this.item.show();
  }

  private shown(): Shown {
    const life = this.server.life;
    switch (life.name) {
      case 'missing':
        return {
          text: '$(warning) codespec: not installed',
          details: ['codespec is not installed; click to install it'],
          background: WARNING,
          command: 'codespec.install',
        };
      case 'failed':
        return { text: '$(error) codespec', details: [life.why], background: ERROR };
      case 'waiting':
        return {
          text: '$(sync~spin) codespec: restarting',
          details: [`The server has ended; it starts again in ${life.seconds} s`],
          background: WARNING,
        };
      case 'starting':
        return { text: '$(loading~spin) codespec: starting', details: ['The server is starting'] };
      case 'stopped':
        return { text: '$(circle-slash) codespec', details: ['The server is stopped'] };
      case 'running':
        return this.running();
    }
  }

  private running(): Shown {
    const status = this.server.status;
    if (status === undefined || status.state === 'loading') {
      return {
        text: '$(loading~spin) codespec: loading',
        details: ['The model is loading; completions start when it is ready'],
      };
    }
    if (status.state === 'failed') {
      return {
        text: '$(error) codespec',
        details: ['The model could not be loaded; the log says why'],
        background: ERROR,
      };
    }
    const document = currentDocument();
    const draft = draftName((document && status.drafts?.[document.languageId]) ?? status.draft);
    const rate = typeof status.acceptance === 'number' ? `, ${Math.round(status.acceptance * 100)} % of its tokens accepted` : '';
    const grammar = (document && this.grammarOf(document)) ?? status.grammar;
    const ms = this.completions.tookMs;
    const took = ms === undefined ? undefined : `${Math.round(ms)} ms`;
    const details = [
      `Target: ${modelName(status.target)}`,
      `Draft: ${draft}${rate}`,
      `Grammar: ${grammar ?? 'none'}`,
      ...(took === undefined ? [] : [`Last completion: ${took}`]),
      ...(status.tokens_per_second ? [`${Math.round(status.tokens_per_second)} tokens per second`] : []),
    ];
    if (this.settings.paused) {
      const until = this.settings.snoozedUntil?.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
      const how = until === undefined ? 'Paused in this workspace' : `Paused until ${until}`;
      return { text: '$(debug-pause) codespec', details: [how, ...details] };
    }
    if (document !== undefined && !this.settings.completes(document.languageId, document)) {
      return { text: '$(debug-pause) codespec', details: [`Paused for ${document.languageId}`, ...details] };
    }
    if (status.state === 'off') {
      return { text: '$(circle-slash) codespec', details: ['Switched off by codespec.toml', ...details] };
    }
    if (typeof status.reading === 'number') {
      return {
        text: `$(loading~spin) ${modelName(status.target)} · reading ${status.reading} %`,
        details: ['The model reads the text around the cursor before it can write', ...details],
      };
    }
    if (status.state === 'busy') {
      return { text: `$(loading~spin) ${modelName(status.target)} · writing`, details: ['Completing', ...details] };
    }
    if (status.nothing) {
      return {
        text: `$(circle-slash) ${modelName(status.target)} · ${status.nothing.short}`,
        details: [`Nothing shown: ${status.nothing.why}`, ...details],
      };
    }
    const ready = (this.settings.get<boolean>('showLatency') ? took : undefined) ?? 'ready';
    return { text: `$(zap) ${modelName(status.target)} · ${ready}`, details: ['Ready', ...details] };
  }
}

/** The document that the user works in, also while a page of ours or the log has the focus. */
export function currentDocument(): vscode.TextDocument | undefined {
  const { activeTextEditor, visibleTextEditors } = vscode.window;
  const shown = activeTextEditor === undefined ? visibleTextEditors : [activeTextEditor, ...visibleTextEditors];
  return shown.find(({ document }) => document.uri.scheme !== 'output')?.document;
}

/** The embedded target is called `target`, which says nothing here. */
export function modelName(name: string | undefined): string {
  return name === undefined || name === 'target' ? 'embedded' : name;
}

/** N-grams draft without any model, too. */
function draftName(name: string | undefined): string {
  return name === undefined || name === 'none' ? 'n-grams' : name.replace(/^draft-/, '');
}
