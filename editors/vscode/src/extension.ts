import { performance } from 'node:perf_hooks';
import * as vscode from 'vscode';
import { Completions } from './completions';
import { Panel } from './html';
import { Failure, install } from './install';
import { log, longestStep, messageOf, timed } from './log';
import { FileGrammars, Menu } from './menu';
import { NextEdits } from './nextEdits';
import { openSettings, Server } from './server';
import { SECTION, Settings } from './settings';
import { currentDocument, StatusBar } from './statusBar';
import { statisticsPage, type Figures } from './statistics';
import { NO_TRACE, tracePage, type Trace } from './trace';

declare const BUNDLE_BEGAN: number;

const INSTALL = 'Install codespec';

let server: Server | undefined;

/** What running the modules has taken; between that and `activate` VS Code reads what was stored. */
const LOADED_MS = performance.now() - BUNDLE_BEGAN;

export function activate(context: vscode.ExtensionContext): void {
  const began = performance.now();
  timed('activation', start)(context);
  const ms = performance.now() - began;
  log.info(`activated in ${(LOADED_MS + ms).toFixed(1)} ms, before the server is started`);
}

export function deactivate(): Promise<void> | undefined {
  return server?.stop();
}

function start(context: vscode.ExtensionContext): void {
  const settings = new Settings(context);
  const completions = new Completions(settings);
  const running = (server = new Server(context, settings, completions.provide));
  const edits = new NextEdits(running, settings, completions);
  const grammars = new FileGrammars(context, running);
  const menu = new Menu(running, settings, grammars);
  const bar = new StatusBar(running, settings, completions, (document) => grammars.get(document));
  const traces = new Traces(context, running);
  const statistics = new Panel(context, 'codespec.statistics', 'codespec: Statistics');
  const update = timed('status bar', () => bar.update());

  const commands: Record<string, () => unknown> = {
    install: () => installAndStart(context, settings, running),
    restartServer: () => running.restart(),
    showMenu: () => menu.show(),
    pickTarget: () => menu.pickTarget(),
    getAnotherModel: () => menu.getModel(),
    pickDraft: () => menu.pickDraft(),
    pickGrammar: () => menu.pickGrammar().then(update),
    togglePause: () => settings.pause(!settings.paused),
    snooze: () => menu.pickPause(),
    toggleLanguage: () => toggleLanguage(settings),
    showTrace: () => traces.show(),
    showStatistics: async () => statistics.show(statisticsPage(await running.ask<Figures>('codespec.status'))),
    showLog: () => {
      log.info(`the longest step on this thread so far: ${longestStep()}`);
      log.show();
    },
    openSettings: () => openSettings(),
    acceptWord: () => completions.takePart('editor.action.inlineSuggest.acceptNextWord', running),
    acceptLine: () => completions.takePart('editor.action.inlineSuggest.acceptNextLine', running),
    dismiss: () => completions.dismiss(running),
    trigger: () => trigger(settings),
    nextEdit: () => edits.next(),
    nextEditInSnippet: () => edits.refuse(),
    closeMenu: () => edits.closeMenu(),
    applyEdit: () => edits.jumpOrApply(),
    dropEdit: () => edits.drop(),
    next: () => vscode.commands.executeCommand('editor.action.inlineSuggest.showNext'),
    previous: () => vscode.commands.executeCommand('editor.action.inlineSuggest.showPrevious'),
  };
  for (const [name, action] of Object.entries(commands)) {
    const command = `${SECTION}.${name}`;
    const told = async () => {
      try {
        await action();
      } catch (error) {
        log.error(`${command}: ${messageOf(error)}`);
        void vscode.window.showErrorMessage(`codespec: ${messageOf(error)}`);
      }
    };
    context.subscriptions.push(vscode.commands.registerCommand(command, timed(command, told)));
  }

  let typedMeanwhile = false; // before the server could be asked
  let offeredInstallation = false;
  context.subscriptions.push(
    log,
    settings,
    running,
    edits,
    bar,
    traces,
    statistics,
    running.onDidStart(() => {
      grammars.tell();
      if (typedMeanwhile && vscode.workspace.getConfiguration('editor').get('inlineSuggest.enabled')) {
        void vscode.commands.executeCommand('editor.action.inlineSuggest.trigger');
      }
      typedMeanwhile = false;
    }),
    vscode.workspace.onDidChangeTextDocument(({ document }) => {
      typedMeanwhile ||= running.life.name !== 'running' && document === vscode.window.activeTextEditor?.document;
    }),
    running.onDidChange(() => {
      update();
      if (running.life.name === 'missing' && !offeredInstallation) {
        offeredInstallation = true;
        void offerInstallation();
      }
    }),
    completions.onDidOffer(() => {
      traces.refresh();
      update();
    }),
    settings.onDidPause(() => {
      update();
      running.settingsChanged();
      void vscode.commands.executeCommand('editor.action.inlineSuggest.hide');
    }),
    vscode.window.onDidChangeActiveTextEditor(update),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration(`${SECTION}.command`) || event.affectsConfiguration(`${SECTION}.python`)) {
        void running.restart();
      } else if (event.affectsConfiguration(SECTION)) {
        update();
      }
    }),
  );
  update();
  void running.restart();
}

async function offerInstallation(): Promise<void> {
  const settings = 'I Have It Already';
  const message =
    'codespec completes code with a model on this machine. Its server is not installed yet: install it into an environment of its own? Nothing else on this machine changes.';
  const choice = await vscode.window.showInformationMessage(message, INSTALL, settings);
  if (choice === INSTALL) {
    await vscode.commands.executeCommand('codespec.install');
  } else if (choice === settings) {
    openSettings('python');
  }
}

async function installAndStart(context: vscode.ExtensionContext, settings: Settings, running: Server): Promise<void> {
  try {
    await running.stop(); // a running server keeps its files from being replaced on Windows
    const done = await install(context, settings);
    await running.restart();
    if (done) {
      void vscode.window.showInformationMessage(
        'codespec is installed. Open a file and type: ghost text appears, Tab accepts it.',
      );
    }
  } catch (error) {
    await running.restart();
    const message = messageOf(error);
    log.error(message);
    const retry = 'Try Again';
    const show = 'Show Log';
    const choices = error instanceof Failure ? [retry, show] : [show];
    const choice = await vscode.window.showErrorMessage(`codespec: ${message}`, ...choices);
    if (choice === retry) {
      await vscode.commands.executeCommand('codespec.install');
    } else if (choice === show) {
      log.show();
    }
  }
}

/** Complete on demand; where completions are paused the key says so. */
async function trigger(settings: Settings): Promise<void> {
  const document = currentDocument();
  const off = document !== undefined && !settings.completes(document.languageId, document);
  if (!settings.paused && !off) {
    await vscode.commands.executeCommand('editor.action.inlineSuggest.trigger');
    return;
  }
  const why = settings.paused ? 'paused here' : `paused for ${document?.languageId}`;
  const chosen = await vscode.window.showInformationMessage(`codespec: Completions are ${why}.`, 'Resume');
  if (chosen === 'Resume') {
    await (settings.paused ? settings.pause(false) : settings.complete(document?.languageId ?? '*', true));
    // The notification, which was clicked on, would keep the focus.
    await vscode.commands.executeCommand('workbench.action.focusActiveEditorGroup');
    await vscode.commands.executeCommand('editor.action.inlineSuggest.trigger');
  }
}

async function toggleLanguage(settings: Settings): Promise<void> {
  const document = currentDocument();
  if (document !== undefined) {
    await settings.complete(document.languageId, !settings.completes(document.languageId, document));
  }
}

/** The trace of the last completion, kept up to date while it is visible. */
class Traces implements vscode.Disposable {
  private readonly panel: Panel;
  private asking = false;

  constructor(
    context: vscode.ExtensionContext,
    private readonly server: Server,
  ) {
    this.panel = new Panel(context, 'codespec.trace', 'codespec: Trace');
  }

  dispose(): void {
    this.panel.dispose();
  }

  async show(): Promise<void> {
    this.panel.show(await this.page());
  }

  refresh(): void {
    if (this.panel.visible && !this.asking) {
      this.asking = true;
      this.page()
        .then((page) => this.panel.update(page))
        .catch((error: unknown) => log.debug(`trace: ${messageOf(error)}`))
        .finally(() => (this.asking = false));
    }
  }

  private async page(): Promise<string> {
    const trace = await this.server.ask<Trace | null>('codespec.trace');
    return trace === null ? NO_TRACE : timed('trace page', tracePage)(trace);
  }
}
