// Bundles the extension. It remembers the checkout that it was built in, so that its button installs codespec from
// there. For a release CODESPEC_WHEEL names the wheel: the button then fetches that very wheel from the package index.

import { build } from 'esbuild';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const wheel = process.env['CODESPEC_WHEEL'];
const checkout = wheel ? '' : fileURLToPath(new URL('../..', import.meta.url));

rmSync('dist', { recursive: true, force: true }); // whatever lies there would be packed
if (wheel) {
  const [name, version] = basename(wheel).split('-');
  const hash = createHash('sha256').update(readFileSync(wheel)).digest('hex');
  mkdirSync('dist');
  writeFileSync('dist/wheel.txt', `${name}==${version} --hash=sha256:${hash}\n`);
}

const options = {
  bundle: true,
  minify: true,
  metafile: true,
  platform: 'node',
  format: 'cjs',
  target: 'node20',
  external: ['vscode', './protocol.js', './client.js'],
};

/**
 * A bundle that exports `modules`, functions that run one module each, those that others need before them, and `whole`,
 * which gives what `entry` exports.
 */
async function buildInModules(entry, outfile, plugins = []) {
  const { metafile } = await build({ ...options, plugins, entryPoints: [entry], write: false });
  const [{ inputs }] = Object.values(metafile.outputs);
  const files = Object.keys(inputs).filter((file) => !file.startsWith('apart:'));
  const loads = files.map((file) => `() => require(${JSON.stringify(resolve(file))})`);
  const whole = `() => require(${JSON.stringify(resolve(entry))})`;
  const contents = `exports.modules = [${loads}]; exports.whole = ${whole};`;
  return build({ ...options, plugins, stdin: { contents, resolveDir: import.meta.dirname }, outfile });
}

// The language client is large, and so is the protocol below it. In bundles of their own they are loaded after activation,
// a few modules at a time, so that none holds the extension host's thread for long.
const PROTOCOL = 'vscode-languageserver-protocol/node';
const protocolApart = {
  name: 'protocol-apart',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^vscode-languageserver-protocol(\/node)?$/ }, () => ({ path: PROTOCOL, namespace: 'apart' }));
    onLoad({ filter: /.*/, namespace: 'apart' }, () => ({
      contents: "module.exports = require('./protocol.js').whole();",
    }));
  },
};
const outputs = [
  await buildInModules(fileURLToPath(import.meta.resolve(PROTOCOL)), 'dist/protocol.js'),
  await buildInModules('src/client.ts', 'dist/client.js', [protocolApart]),
];
outputs.push(
  await build({
    ...options,
    entryPoints: ['src/extension.ts'],
    outfile: 'dist/extension.js',
    banner: { js: 'const BUNDLE_BEGAN = performance.now();' },
    define: { CHECKOUT: JSON.stringify(checkout) },
  }),
);
for (const { metafile } of outputs) {
  for (const [name, { bytes }] of Object.entries(metafile.outputs)) {
    console.log(`${name} ${Math.ceil(bytes / 1000)} kB`);
  }
}
