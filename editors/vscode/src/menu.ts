// What a click on the status bar opens, and the lists behind it.

import * as path from 'node:path';
import * as vscode from 'vscode';
import { messageOf } from './log';
import type { Server } from './server';
import type { Settings } from './settings';
import { currentDocument, modelName } from './statusBar';

interface Model {
  readonly path: string;
  readonly value: string;
  readonly role: 'target' | 'draft' | 'edit';
  readonly parameters: number;
  readonly quantization: string;
  readonly size: number;
  readonly licence: string;
  readonly vocabulary: string;
}

interface Choices {
  readonly models: readonly Model[];
  readonly grammars: readonly string[];
}

interface Entry<T> extends vscode.QuickPickItem {
  readonly value?: T;
}

const GRAMMARS = 'grammars';

/** Grammars that were chosen for single files, kept for the workspace. */
export class FileGrammars {
  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly server: Server,
  ) {}

  get(document: vscode.TextDocument): string | undefined {
    return this.all()[document.uri.toString()];
  }

  /** @throws what the server has against the grammar */
  async choose(document: vscode.TextDocument, grammar: string | undefined): Promise<void> {
    const uri = document.uri.toString();
    await this.server.ask('codespec.setGrammar', grammar ?? 'inherit', null, uri);
    const { [uri]: _, ...others } = this.all();
    await this.context.workspaceState.update(GRAMMARS, grammar === undefined ? others : { ...others, [uri]: grammar });
  }

  /** Tells a server that was just started. */
  tell(): void {
    for (const [uri, grammar] of Object.entries(this.all())) {
      this.server.tell('codespec.setGrammar', grammar, null, uri);
    }
  }

  private all(): Record<string, string> {
    return this.context.workspaceState.get(GRAMMARS, {});
  }
}

export class Menu {
  constructor(
    private readonly server: Server,
    private readonly settings: Settings,
    private readonly grammars: FileGrammars,
  ) {}

  async show(): Promise<void> {
    const document = currentDocument();
    const language = document?.languageId;
    const status = this.server.status;
    const entries: Entry<string>[] = [];
    const add = (label: string, command: string, description = '') =>
      entries.push({ label, description, value: command });
    const group = (label: string) => entries.push({ label, kind: vscode.QuickPickItemKind.Separator });
    if (status !== undefined) {
      group('models');
      add('$(server) Target…', 'codespec.pickTarget', modelName(status.target));
      if (document !== undefined && language !== undefined) {
        const languages = this.settings.get<Record<string, { draft?: string }>>('language');
        add(
          `$(rocket) Draft for ${language}…`,
          'codespec.pickDraft',
          languages[language]?.draft ?? this.settings.get('draft'),
        );
        add(
          '$(bracket) Grammar for This File…',
          'codespec.pickGrammar',
          this.grammars.get(document) ?? 'as for the language',
        );
      }
    }
    group('completions');
    const here = this.settings.paused ? '$(play) Resume Here' : '$(debug-pause) Pause Here';
    add(here, 'codespec.togglePause', 'this workspace');
    if (!this.settings.paused) {
      add('$(clock) Pause for a While…', 'codespec.snooze', '5 minutes, an hour, or everywhere');
    }
    if (document !== undefined && language !== undefined) {
      const on = this.settings.completes(language, document);
      add(
        on ? `$(debug-pause) Pause for ${language}` : `$(play) Resume for ${language}`,
        'codespec.toggleLanguage',
        'everywhere',
      );
    }
    group('look');
    add('$(list-flat) Trace of the Last Completion', 'codespec.showTrace', status?.nothing ? `empty: ${status.nothing.why}` : '');
    add('$(graph) Statistics', 'codespec.showStatistics');
    add('$(output) Log', 'codespec.showLog');
    add('$(gear) Settings', 'codespec.openSettings');
    add('$(refresh) Restart the Server', 'codespec.restartServer');
    const chosen = await vscode.window.showQuickPick(entries, { title: 'codespec' });
    if (chosen?.value !== undefined) {
      await vscode.commands.executeCommand(chosen.value);
      if (/pick|toggle|snooze/.test(chosen.value)) {
        // Back to the code: the status bar, which was clicked on, would keep the focus.
        await vscode.commands.executeCommand('workbench.action.focusActiveEditorGroup');
      }
    }
  }

  async pickPause(): Promise<void> {
    const everywhere = this.settings.completes('*');
    const entries = [
      { label: '5 Minutes', description: 'this window', minutes: 5 },
      { label: 'An Hour', description: 'this window', minutes: 60 },
      everywhere
        ? { label: 'Everywhere, Until I Resume', description: 'codespec.enabled', minutes: 0 }
        : { label: 'Resume Everywhere', description: 'codespec.enabled', minutes: 0 },
    ];
    const chosen = await vscode.window.showQuickPick(entries, { title: 'codespec: pause for a while' });
    if (chosen?.minutes === 0) {
      await this.settings.complete('*', !everywhere);
    } else if (chosen !== undefined) {
      this.settings.sleep(chosen.minutes);
    }
  }

  async pickTarget(): Promise<void> {
    const current = this.settings.get<string>('target.path');
    const value = await this.pick('codespec: the model that completes', ({ models }) => [
      ...models
        .filter(({ role }) => role === 'target')
        .map((each) => modelEntry(each, each.value === '' ? 'embedded' : each.value, each.value, current)),
      { label: '$(file) Choose a GGUF File…', value: FILE },
      { label: '$(cloud-download) Get Another Model…', value: ANOTHER },
    ]);
    if (value === ANOTHER) {
      return this.getModel();
    }
    const target = value === FILE ? await chooseFile('GGUF models', 'gguf') : value;
    if (target !== undefined) {
      await this.settings.set('target.path', target || undefined);
    }
  }

  /** Fetches a model that this machine can run, and completes with it. */
  async getModel(): Promise<void> {
    const title = 'codespec: get another model';
    const found = vscode.window
      .withProgress({ location: vscode.ProgressLocation.Window, title: 'codespec: measuring this machine' }, () =>
        this.server.ask<Suggested[]>('codespec.suggestModels'),
      )
      .then((models) => models.map(suggestedEntry));
    const chosen = await vscode.window.showQuickPick(found, {
      title,
      placeHolder: 'Models that fit into the memory, with the size of the download',
      matchOnDescription: true,
    });
    // An answer of no says why in a message of its own.
    if (chosen !== undefined && (await this.server.ask<boolean>('codespec.getModel', chosen.value, false))) {
      await this.settings.set('target.path', chosen.value);
    }
  }

  async pickDraft(): Promise<void> {
    const language = currentDocument()?.languageId;
    if (language === undefined) {
      void vscode.window.showInformationMessage('codespec: Open a file of the language that the draft is for.');
      return;
    }
    const languages = this.settings.get<Record<string, { draft?: string }>>('language');
    const current = languages[language]?.draft ?? 'auto';
    const value = await this.pick(
      `codespec: the draft for ${language}; it changes how fast completions come, not what they say`,
      ({ models }) => {
        const vocabulary = models.find((each) => each.value === this.settings.get<string>('target.path'))?.vocabulary;
        const fits = (each: Model) => Number(each.vocabulary === vocabulary);
        return [
          entry('auto', "the language's own", 'auto', current),
          entry('none', 'no draft model', 'none', current),
          ...[...models]
            .filter((each) => each.value !== '' && each.value !== this.settings.get<string>('target.path'))
            .sort((a, b) => fits(b) - fits(a))
            .map((each) =>
              modelEntry(
                each,
                each.value,
                each.value,
                current,
                vocabulary !== undefined && !fits(each) ? 'another vocabulary: slower' : '',
              ),
            ),
          { label: '$(file) Choose a GGUF File…', value: FILE },
        ];
      },
    );
    const draft = value === FILE ? await chooseFile('GGUF models', 'gguf') : value;
    if (draft !== undefined) {
      await this.settings.chooseFor(language, 'draft', draft === 'auto' ? undefined : draft);
    }
  }

  async pickGrammar(): Promise<void> {
    const document = currentDocument();
    if (document === undefined) {
      void vscode.window.showInformationMessage('codespec: Open the file that the grammar is for.');
      return;
    }
    const current = this.grammars.get(document) ?? INHERIT;
    const name = path.basename(document.uri.path);
    const value = await this.pick(`codespec: the grammar that completions in ${name} keep to`, ({ grammars }) => [
      entry('as for the language', 'as the settings say', INHERIT, current),
      entry('auto', `that of ${document.languageId}, if there is one`, 'auto', current),
      entry('none', 'no grammar', 'none', current),
      ...grammars.map((each) => entry(each, '', each, current)),
      { label: '$(file) Choose a Grammar File…', description: '.gbnf, .lark, .json (a JSON Schema)', value: FILE },
    ]);
    const grammar = value === FILE ? await chooseFile('Grammars', 'gbnf', 'lark', 'json') : value;
    if (grammar === undefined) {
      return;
    }
    try {
      await this.grammars.choose(document, grammar === INHERIT ? undefined : grammar);
    } catch (error) {
      void vscode.window.showErrorMessage(`codespec: ${messageOf(error)}`);
    }
  }

  /** Asks for one of the server's choices; the list opens at once and fills when they come. */
  private pick(title: string, entries: (choices: Choices) => Entry<string>[]): Promise<string | undefined> {
    const list = vscode.window.createQuickPick<Entry<string>>();
    list.title = title;
    list.busy = true;
    list.placeholder = 'Looking for what there is…';
    list.matchOnDescription = true;
    list.show();
    this.server.ask<Choices>('codespec.choices').then(
      (choices) => {
        list.busy = false;
        list.placeholder = '';
        list.items = entries(choices);
      },
      (error: unknown) => {
        list.hide();
        void vscode.window.showErrorMessage(`codespec: ${messageOf(error)}`);
      },
    );
    return new Promise((resolve) => {
      list.onDidAccept(() => {
        resolve(list.selectedItems[0]?.value);
        list.hide();
      });
      list.onDidHide(() => {
        resolve(undefined);
        list.dispose();
      });
    });
  }
}

const FILE = '\0file';
const ANOTHER = '\0another';

/** A model that could be fetched, as the server has it. */
interface Suggested {
  model: string;
  licence: string;
  download: number;
  tokens_per_second: number;
  on_gpu: boolean;
}

function suggestedEntry(each: Suggested, index: number): vscode.QuickPickItem & { value: string } {
  const megabytes = each.download / 1e6;
  const size = megabytes >= 1000 ? `${(megabytes / 1000).toFixed(1)} GB` : `${Math.round(megabytes)} MB`;
  const speed = each.on_gpu ? 'fits the GPU' : `about ${Math.max(1, Math.round(each.tokens_per_second))} tokens/s`;
  return {
    label: index === 0 ? `$(star) ${each.model}` : each.model,
    description: `${size} · ${speed} · ${each.licence}`,
    value: each.model,
  };
}
const INHERIT = '\0inherit';

function entry(label: string, description: string, value: string, current: string): Entry<string> {
  return { label: value === current ? `$(check) ${label}` : label, description, value };
}

function modelEntry(model: Model, label: string, value: string, current: string, more = ''): Entry<string> {
  const facts = [
    `${(model.parameters / 1e6).toPrecision(3)} M parameters`,
    model.quantization,
    `${Math.ceil(model.size / 1e6)} MB`,
    model.licence,
    more,
  ];
  return entry(label, facts.filter(Boolean).join(' · '), value, current);
}

async function chooseFile(what: string, ...suffixes: string[]): Promise<string | undefined> {
  const [file] = (await vscode.window.showOpenDialog({ filters: { [what]: suffixes } })) ?? [];
  return file?.fsPath;
}
