// Bundles the extension. It remembers the checkout that it was built in, so that its button installs codespec from
// there; `--release` leaves that out, and codespec then comes from the package index.

import { build } from 'esbuild';
import { fileURLToPath } from 'node:url';

const checkout = process.argv.includes('--release') ? '' : fileURLToPath(new URL('../..', import.meta.url));

// The language client and the protocol below it are large. In bundles of their own they are loaded after activation, one
// after the other, so that neither holds the extension host's thread for long.
const apart = {
  name: 'apart',
  setup({ onResolve }) {
    onResolve({ filter: /^\.\/(client|protocol)\.js$/ }, ({ path }) => ({ path, external: true }));
    onResolve({ filter: /^vscode-languageserver-protocol(\/node)?$/ }, ({ kind }) =>
      kind === 'entry-point' ? undefined : { path: './protocol.js', external: true },
    );
  },
};

const { metafile } = await build({
  entryPoints: {
    extension: 'src/extension.ts',
    client: 'src/client.ts',
    protocol: 'vscode-languageserver-protocol/node',
  },
  outdir: 'dist',
  bundle: true,
  minify: true,
  metafile: true,
  platform: 'node',
  format: 'cjs',
  target: 'node20',
  external: ['vscode'],
  banner: { js: 'const BUNDLE_BEGAN = performance.now();' },
  define: { CHECKOUT: JSON.stringify(checkout) },
  plugins: [apart],
});
for (const [name, { bytes }] of Object.entries(metafile.outputs)) {
  console.log(`${name} ${Math.ceil(bytes / 1000)} kB`);
}
