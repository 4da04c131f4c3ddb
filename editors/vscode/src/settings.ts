import * as vscode from 'vscode';

export const SECTION = 'codespec';

/** Settings that are the extension's own; all others are passed on to the server. */
const OWN = new Set(['command', 'python', 'installFrom', 'pipArguments', 'enabled', 'statusBar', 'showLatency']);

const PAUSED = 'paused';

export type Languages = Record<string, { draft?: string; grammar?: string; enabled?: boolean }>;

type Tree = Readonly<Record<string, unknown>>;

function valueAt(values: unknown, key: string): unknown {
  return key.split('.').reduce((inner, name) => (inner as Tree | undefined)?.[name], values);
}

/** What the user has set, and what was paused. */
export class Settings implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly keys: string[];
  private snooze: NodeJS.Timeout | undefined;
  readonly onDidPause = this.changed.event;
  /** When the pause of this window ends by itself. */
  snoozedUntil: Date | undefined;

  constructor(private readonly context: vscode.ExtensionContext) {
    const groups: { properties: object }[] = context.extension.packageJSON.contributes.configuration;
    const names = groups.flatMap(({ properties }) => Object.keys(properties));
    this.keys = names.map((name) => name.slice(SECTION.length + 1)).filter((key) => !OWN.has(key));
  }

  dispose(): void {
    clearTimeout(this.snooze);
    this.changed.dispose();
  }

  get<T>(key: string, scope?: vscode.ConfigurationScope): T {
    return vscode.workspace.getConfiguration(SECTION, scope).get(key) as T;
  }

  async set(key: string, value: unknown): Promise<void> {
    await vscode.workspace.getConfiguration(SECTION).update(key, value, vscode.ConfigurationTarget.Global);
  }

  /** Whether completions are paused in this workspace, or for a while in this window. */
  get paused(): boolean {
    return this.snoozedUntil !== undefined || this.context.workspaceState.get(PAUSED, false);
  }

  /** Pause in this window for some minutes; 0 ends that. */
  sleep(minutes: number): void {
    const ms = minutes * 60_000;
    clearTimeout(this.snooze);
    this.snoozedUntil = ms > 0 ? new Date(Date.now() + ms) : undefined;
    this.snooze = ms > 0 ? setTimeout(() => this.sleep(0), ms) : undefined;
    this.changed.fire();
  }

  async pause(paused: boolean): Promise<void> {
    this.sleep(0);
    await this.context.workspaceState.update(PAUSED, paused || undefined);
    this.changed.fire();
  }

  /** Whether a language is completed where nothing is paused. */
  completes(language: string, scope?: vscode.ConfigurationScope): boolean {
    const enabled = this.get<Record<string, boolean>>('enabled', scope);
    return enabled[language] ?? enabled['*'] ?? true;
  }

  async complete(language: string, on: boolean): Promise<void> {
    const enabled = vscode.workspace.getConfiguration(SECTION).inspect<Record<string, boolean>>('enabled')?.globalValue;
    await this.set('enabled', { ...enabled, [language]: on });
  }

  /** Choose a draft or a grammar for a language; undefined goes back to what holds for all. */
  async chooseFor(language: string, key: 'draft' | 'grammar', value: string | undefined): Promise<void> {
    const languages = this.get<Languages>('language');
    const { [key]: _, ...others } = languages[language] ?? {};
    await this.set('language', {
      ...languages,
      [language]: value === undefined ? others : { ...others, [key]: value },
    });
  }

  /** What the server is to know. Defaults are left out: they must not take the place of what is in codespec.toml. */
  forServer(): Record<string, unknown> {
    const configuration = vscode.workspace.getConfiguration(SECTION);
    // To inspect every key takes a hundred times as long as the section as a whole.
    const { globalValue, workspaceValue, workspaceFolderValue } =
      vscode.workspace.getConfiguration().inspect<Tree>(SECTION) ?? {};
    const options: Record<string, unknown> = {};
    for (const key of this.keys) {
      if ([globalValue, workspaceValue, workspaceFolderValue].every((values) => valueAt(values, key) === undefined)) {
        continue;
      }
      const path = key.split('.');
      const last = path.pop() as string;
      const table = path.reduce((outer, name) => (outer[name] ??= {}) as Record<string, unknown>, options);
      table[last] = configuration.get(key);
    }
    // What is not completed is not worked on ahead either.
    if (this.paused) {
      options['enabled'] = false;
    }
    const off = Object.entries(this.get<Record<string, boolean>>('enabled')).filter(
      ([name, on]) => name !== '*' && !on,
    );
    if (off.length > 0) {
      const languages: Languages = { ...(options['language'] as Languages | undefined) };
      for (const [name] of off) {
        languages[name] = { ...languages[name], enabled: false };
      }
      options['language'] = languages;
    }
    return options;
  }
}
