// The server's process and the language client that speaks with it.

import { spawn, type ChildProcess } from 'node:child_process';
import * as fs from 'node:fs/promises';
import { performance } from 'node:perf_hooks';
import * as vscode from 'vscode';
import type { LanguageClient, Middleware } from 'vscode-languageclient/node';
import { BadSetting, findServer, type Program } from './environment';
import { ownPython } from './install';
import { log, messageOf, timed } from './log';
import { SECTION, type Settings } from './settings';

/** What the server tells of itself (`codespec/status`). */
export interface Status {
  readonly state: 'loading' | 'ready' | 'busy' | 'failed' | 'off';
  readonly target?: string;
  readonly draft?: string;
  /** By language. */
  readonly drafts?: Readonly<Record<string, string>>;
  readonly grammar?: string;
  readonly language?: string;
  readonly acceptance?: number | null;
  readonly tokens_per_second?: number;
  /** Whether next edits are offered. */
  readonly edits_mode?: 'automatic' | 'manual' | 'off';
  /** Per cent of the prompt that is read, while one is. */
  readonly reading?: number | null;
  /** Why the latest answer was empty. */
  readonly nothing?: Nothing | null;
}

export interface Nothing {
  readonly short: string;
  readonly why: string;
}

/** What has become of the process. */
export type Life =
  | { readonly name: 'stopped' | 'starting' | 'running' | 'missing' }
  | { readonly name: 'waiting'; readonly seconds: number }
  | { readonly name: 'failed'; readonly why: string };

/** Seconds before a server that has died is started again; after as many deaths in a row it is not. */
const BACK_OFF_S = [1, 2, 5, 10, 30];

/** How long a server may take to end. */
const END_MS = 5_000;

/** A server that has run this long has not died of what the one before it died of. */
const HEALTHY_MS = 180_000;

/** How long modules are loaded at a time. */
const SLICE_MS = 4;

/** What build.mjs makes of a library: functions that load its modules one by one, and the last of them. */
interface Bundle<T> {
  readonly modules: readonly (() => unknown)[];
  readonly whole: () => T;
}

export class Server implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly started = new vscode.EventEmitter<void>();
  private client: LanguageClient | undefined;
  private child: ChildProcess | undefined;
  private turn: Promise<unknown> = Promise.resolve(); // starts and stops happen one after the other
  private deaths = 0;
  private timer: NodeJS.Timeout | undefined;
  private lifeNow: Life = { name: 'stopped' };
  private statusNow: Status | undefined;

  readonly onDidChange = this.changed.event;
  readonly onDidStart = this.started.event;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly settings: Settings,
    private readonly complete: NonNullable<Middleware['provideInlineCompletionItems']>,
  ) {}

  get life(): Life {
    return this.lifeNow;
  }

  /** The latest news of the models; undefined before the first. */
  get status(): Status | undefined {
    return this.statusNow;
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.changed.dispose();
    this.started.dispose();
  }

  /** Starts the server anew, whatever it is doing. */
  restart(): Promise<void> {
    this.deaths = 0;
    return this.inTurn(async () => {
      await this.end();
      await this.begin();
    });
  }

  stop(): Promise<void> {
    return this.inTurn(() => this.end());
  }

  /** Runs a command of the server's. */
  async ask<T>(command: string, ...args: unknown[]): Promise<T> {
    if (!this.client?.isRunning()) {
      throw new Error('The server does not run.');
    }
    return (await this.client.sendRequest('workspace/executeCommand', { command, arguments: args })) as T;
  }

  /** Asks what is in no version of the protocol. */
  async request<T>(method: string, params: object, token: vscode.CancellationToken): Promise<T> {
    if (!this.client?.isRunning()) {
      throw new Error('The server does not run.');
    }
    return this.client.sendRequest<T>(method, params, token);
  }

  /** Tells what is in no version of the protocol. */
  notify(method: string, params: object): void {
    if (this.client?.isRunning()) {
      this.client
        .sendNotification(method, params)
        .catch((error: unknown) => log.debug(`${method}: ${messageOf(error)}`));
    }
  }

  /** Runs a command whose result nobody waits for. */
  tell(command: string, ...args: unknown[]): void {
    this.ask(command, ...args).catch((error: unknown) => log.warn(`${command}: ${messageOf(error)}`));
  }

  /** Lets the server ask for the settings again. */
  settingsChanged(): void {
    if (this.client?.isRunning()) {
      void this.client.sendNotification('workspace/didChangeConfiguration', { settings: null });
    }
  }

  private inTurn(action: () => Promise<void>): Promise<void> {
    const next = this.turn.then(action);
    this.turn = next.catch((error: unknown) => log.error(messageOf(error)));
    return next;
  }

  private live(life: Life): void {
    this.lifeNow = life;
    if (life.name !== 'running') {
      this.statusNow = undefined;
    }
    this.changed.fire();
  }

  private async end(): Promise<void> {
    clearTimeout(this.timer);
    const { client, child } = this;
    this.client = this.child = undefined;
    this.live({ name: 'stopped' });
    if (client?.isRunning()) {
      setTimeout(() => child?.kill('SIGKILL'), END_MS);
      await client
        .dispose()
        .catch((error: unknown) => log.warn(`the server did not end in good order: ${messageOf(error)}`));
    } else {
      child?.kill('SIGKILL'); // it has not answered yet, and perhaps never will
    }
  }

  private async begin(): Promise<void> {
    this.live({ name: 'starting' });
    let program;
    try {
      program = await findServer(this.settings, ownPython(this.context));
    } catch (error) {
      this.live({ name: 'failed', why: messageOf(error) });
      if (error instanceof BadSetting) {
        this.complain(error.message, ['Open Settings', () => openSettings(error.setting)]);
      } else {
        this.complain(messageOf(error));
      }
      return;
    }
    if (program === undefined) {
      this.live({ name: 'missing' });
      return;
    }
    const line = [program.command, ...program.args].join(' ');
    log.info(`starting ${line}, from ${program.origin}`);
    // Not the workspace: a program must not be found there, nor a Python module.
    const cwd = this.context.globalStorageUri.fsPath;
    await fs.mkdir(cwd, { recursive: true });
    const { createClient } = await loadClient();
    const configuration = timed('configuration', () => this.settings.forServer());
    const launch = () => this.launch(program, cwd);
    const client = timed('making the client', createClient)(launch, log, configuration, this.complete);
    this.client = client;
    client.onNotification(
      'codespec/status',
      timed('status', (status: Status) => this.heard(client, status)),
    );
    void this.greet(client, line); // not awaited: a server that never answers can be replaced
  }

  private launch({ command, args }: Program, cwd: string): Promise<ChildProcess> {
    const child = (this.child = spawn(command, args, { cwd, stdio: 'pipe', windowsHide: true }));
    child.on('error', (error) => log.error(messageOf(error)));
    return Promise.resolve(child);
  }

  private async greet(client: LanguageClient, line: string): Promise<void> {
    try {
      await timed('starting the client', () => client.start())();
    } catch (error) {
      if (this.client === client) {
        this.live({ name: 'failed', why: messageOf(error) });
        this.complain(`The server did not start: ${messageOf(error)}. Run "${line}" in a terminal to see why.`, [
          'Open Settings',
          () => openSettings('command'),
        ]);
      }
      return;
    }
    if (this.client === client && client.isRunning()) {
      const began = Date.now();
      client.onDidChangeState(() => {
        if (!client.isRunning() && this.client === client) {
          this.died(Date.now() - began);
        }
      });
      this.live({ name: 'running' });
      this.started.fire();
    }
  }

  private heard(client: LanguageClient, status: Status): void {
    if (client === this.client) {
      this.statusNow = status;
      this.changed.fire();
    }
  }

  private died(afterMs: number): void {
    this.client = undefined;
    this.deaths = afterMs > HEALTHY_MS ? 1 : this.deaths + 1;
    const seconds = BACK_OFF_S[this.deaths - 1];
    if (seconds === undefined) {
      this.live({ name: 'failed', why: `The server has ended ${this.deaths} times in a row.` });
      this.complain(
        `The server has ended ${this.deaths} times in a row and is not started again. The log may say why.`,
        ['Restart', () => void this.restart()],
      );
      return;
    }
    log.warn(`the server has ended; it is started again in ${seconds} s`);
    this.live({ name: 'waiting', seconds });
    this.timer = setTimeout(() => void this.inTurn(() => this.begin()), seconds * 1_000);
    const show = 'Show Log';
    const message = 'codespec: The server has ended unexpectedly and is being restarted.';
    void vscode.window.showWarningMessage(message, show).then((choice) => {
      if (choice === show) {
        log.show();
      }
    });
  }

  private complain(message: string, ...actions: [string, () => void][]): void {
    log.error(message);
    const all: [string, () => void][] = [...actions, ['Show Log', () => log.show()]];
    void vscode.window.showErrorMessage(`codespec: ${message}`, ...all.map(([title]) => title)).then((choice) => {
      all.find(([title]) => title === choice)?.[1]();
    });
  }
}

/** Loads the language client, and the protocol below it, a few modules at a time; between them others have their turn. */
async function loadClient(): Promise<typeof import('./client')> {
  await loadModules('the protocol', () => require('./protocol.js') as Bundle<unknown>);
  return loadModules('the client', () => require('./client.js') as Bundle<typeof import('./client')>);
}

async function loadModules<T>(name: string, read: () => Bundle<T>): Promise<T> {
  const bundle = timed(`reading ${name}`, read)();
  const modules = bundle.modules.values();
  const loadSome = timed(`loading ${name}`, () => {
    const end = performance.now() + SLICE_MS;
    for (const load of modules) {
      load();
      if (performance.now() > end) {
        return true;
      }
    }
    return false;
  });
  do {
    await new Promise(setImmediate);
  } while (loadSome());
  return bundle.whole();
}

export function openSettings(key = ''): void {
  void vscode.commands.executeCommand(
    'workbench.action.openSettings',
    key ? `${SECTION}.${key}` : `@ext:codespec.${SECTION}`,
  );
}
