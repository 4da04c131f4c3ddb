// Bundles the extension. It remembers the checkout that it was built in, so that its button installs codespec from
// there; `--release` leaves that out, and codespec then comes from the package index.

import { build } from 'esbuild';
import { fileURLToPath } from 'node:url';

const checkout = process.argv.includes('--release') ? '' : fileURLToPath(new URL('../..', import.meta.url));

await build({
  entryPoints: ['src/extension.ts'],
  outfile: 'dist/extension.js',
  bundle: true,
  minify: true,
  platform: 'node',
  format: 'cjs',
  target: 'node20',
  mainFields: ['module', 'main'],
  external: ['vscode'],
  define: { CHECKOUT: JSON.stringify(checkout) },
});
