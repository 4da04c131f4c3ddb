// Bundles the extension. It remembers the checkout that it was built in, so that its button installs codespec from
// there; `--release` leaves that out, and codespec then comes from the package index.

import { build } from 'esbuild';
import { fileURLToPath } from 'node:url';

const checkout = process.argv.includes('--release') ? '' : fileURLToPath(new URL('../..', import.meta.url));

const { metafile } = await build({
  entryPoints: ['src/extension.ts', 'src/client.ts'],
  outdir: 'dist',
  bundle: true,
  minify: true,
  metafile: true,
  platform: 'node',
  format: 'cjs',
  target: 'node20',
  external: ['vscode'],
  supported: { 'dynamic-import': false }, // it becomes a require, which gives the bundle the API of VS Code
  banner: { js: 'const BUNDLE_BEGAN = performance.now();' },
  define: { CHECKOUT: JSON.stringify(checkout) },
  plugins: [
    {
      name: 'client-on-its-own',
      setup: (own) => own.onResolve({ filter: /^\.\/client\.js$/ }, () => ({ path: './client.js', external: true })),
    },
  ],
});
for (const [name, { bytes }] of Object.entries(metafile.outputs)) {
  console.log(`${name} ${Math.ceil(bytes / 1000)} kB`);
}
