// Starts `codespec serve` and lets vscode-languageclient do the rest.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const vscode = require('vscode');
const { CloseAction, ErrorAction, LanguageClient } = require('vscode-languageclient/node');

const SECTION = 'codespec';

// Settings that are the extension's own; all others are passed on to the server.
const OWN = new Set(['command', 'enabled']);

let log;
let client;
let turn = Promise.resolve(); // starts and stops happen one after the other

async function activate(context) {
  log = vscode.window.createOutputChannel('codespec', { log: true });
  context.subscriptions.push(
    log,
    vscode.commands.registerCommand('codespec.restartServer', restart),
    vscode.commands.registerCommand('codespec.showLog', () => log.show()),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration(`${SECTION}.command`)) {
        restart();
      }
    }),
  );
  await restart();
}

function deactivate() {
  return oneAfterTheOther(stop);
}

function restart() {
  return oneAfterTheOther(async () => {
    await stop();
    await start();
  });
}

function oneAfterTheOther(action) {
  turn = turn.then(action).catch((error) => log.error(error));
  return turn;
}

async function stop() {
  const old = client;
  client = undefined;
  if (old?.isRunning()) {
    await old.dispose();
  }
}

async function start() {
  const [name = '', ...args] = [].concat(vscode.workspace.getConfiguration(SECTION).get('command'));
  const command = findProgram(name);
  if (!command) {
    complain(`There is no program ${JSON.stringify(name)}. Install codespec, or name it in the setting codespec.command.`);
    return;
  }
  let standard; // how errors are dealt with once the server runs
  // Not the workspace: a program must not be found there, nor a Python module.
  const options = { cwd: os.homedir() };
  client = new LanguageClient(SECTION, 'codespec', { command, args, options }, {
    documentSelector: [{ scheme: 'file' }, { scheme: 'untitled' }],
    outputChannel: log,
    initializationFailedHandler: () => false,
    errorHandler: {
      // A server that ends before it has begun would do so again: no restart, and one message, below.
      error: (...args) => standard?.error(...args) ?? { action: ErrorAction.Continue, handled: true },
      closed: () => standard?.closed() ?? { action: CloseAction.DoNotRestart, handled: true },
    },
    middleware: {
      workspace: { configuration: ({ items }) => items.map(serverOptions) },
      provideInlineCompletionItems: (document, position, context, token, next) =>
        isEnabled(document) ? next(document, position, context, token) : undefined,
    },
  });
  try {
    await client.start();
    standard = client.createDefaultErrorHandler();
  } catch (error) {
    const line = [command, ...args].join(' ');
    complain(`The server did not start: ${error.message ?? error}. Run "${line}" in a terminal to see why.`);
  }
}

// Absolute path of a program, undefined where there is none.
function findProgram(name) {
  if (name.startsWith('~/')) {
    name = path.join(os.homedir(), name.slice(2));
  }
  const folders = path.isAbsolute(name)
    ? ['']
    : path.basename(name) === name
      ? [...(process.env.PATH ?? '').split(path.delimiter), path.join(os.homedir(), '.local', 'bin')]
      : [];
  const suffixes = process.platform === 'win32' && !path.extname(name) ? ['.exe'] : [''];
  return folders
    .filter((folder) => !folder || path.isAbsolute(folder))
    .flatMap((folder) => suffixes.map((suffix) => path.join(folder, name + suffix)))
    .find(isProgram);
}

function isProgram(file) {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return path.isAbsolute(file) && fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

// What the user has set. Defaults are left out: they must not take the place of what is in codespec.toml.
function serverOptions() {
  const configuration = vscode.workspace.getConfiguration(SECTION);
  const options = {};
  for (const key of serverKeys()) {
    const { globalValue, workspaceValue, workspaceFolderValue } = configuration.inspect(key) ?? {};
    if (globalValue === undefined && workspaceValue === undefined && workspaceFolderValue === undefined) {
      continue;
    }
    const [last, ...tables] = key.split('.').reverse();
    const table = tables.reverse().reduce((outer, name) => (outer[name] ??= {}), options);
    table[last] = configuration.get(key);
  }
  return options;
}

function serverKeys() {
  const { packageJSON } = vscode.extensions.getExtension('codespec.codespec');
  return Object.keys(packageJSON.contributes.configuration.properties)
    .map((name) => name.slice(SECTION.length + 1))
    .filter((key) => !OWN.has(key));
}

function isEnabled(document) {
  const enabled = vscode.workspace.getConfiguration(SECTION, document).get('enabled');
  return enabled[document.languageId] ?? enabled['*'] ?? true;
}

async function complain(message) {
  log.error(message);
  const settings = 'Open Settings';
  const show = 'Show Log';
  const choice = await vscode.window.showErrorMessage(`codespec: ${message}`, settings, show);
  if (choice === settings) {
    vscode.commands.executeCommand('workbench.action.openSettings', 'codespec.command');
  } else if (choice === show) {
    log.show();
  }
}

module.exports = { activate, deactivate };
