#!/bin/sh
# A newer Neovim than the system's, from another suite of Debian, unpacked into a folder with its libraries and nothing
# installed: neovim_from_debian.sh SUITE FOLDER; the program is then FOLDER/nvim. In 2026 trixie has 0.10, sid 0.12.
set -eu

suite=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
state=$folder/.apt
mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$state/debs"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main" > "$state/sources.list"
: > "$state/status"
apt() {
    program=$1
    shift
    "$program" -qq -o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$state/lists" \
        -o Dir::Cache="$state/cache" -o Dir::State::status="$state/status" -o APT::Sandbox::User=root "$@"
}
apt apt-get update
packages=$(apt apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances \
    neovim | grep -E '^(neovim|neovim-runtime|lua-[a-z]+|lib[a-z0-9.+-]*)$' | grep -vE 'perl|debconf|selinux|systemd' | sort -u)
(cd "$state/debs" && apt apt-get download $packages)
for package in "$state/debs"/*.deb; do
    dpkg -x "$package" "$folder"
done
rm -r "$state"

libraries=$(dirname "$(find "$folder" -name 'ld-linux-*' -path '*/lib/*' | head -n 1)")
cat > "$folder/nvim" <<END
#!/bin/sh
export VIM=$folder/usr/share/nvim VIMRUNTIME=$folder/usr/share/nvim/runtime
exec $libraries/$(basename "$libraries"/ld-linux-*) --library-path $libraries $folder/usr/bin/nvim "\$@"
END
chmod +x "$folder/nvim"
"$folder/nvim" --version | head -n 1
