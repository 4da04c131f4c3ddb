#!/usr/bin/env bash
# Fetches the files that `codespec bench gate` completes in: packages that training and development have not used, and
# puts them under FOLDER/LANGUAGE. Needs pip, npm, and apt with its sources (deb-src).
#
#     tests/gate_corpus.sh FOLDER
set -euo pipefail
mkdir -p "$1" && cd "$1"

python=(beets==2.14.1 pelican==4.12.0 mitmproxy==11.0.2 radicale==3.9.0 khal==0.14.1 glances==4.5.8)
javascript=(hexo@8.1.2 nodemon@3.1.14 kafkajs@2.2.4 mocha@12.0.3 karma@6.4.4 knex@3.3.0 mongoose@9.12.1 winston@3.19.0 objection@3.1.5)
typescript=(@grpc/grpc-js@1.14.7 bson@7.3.4 mongodb@7.9.0 fp-ts@2.16.11 langium@4.4.0 effect@4.1.0)
go=(golang-github-spf13-viper-dev golang-github-gin-gonic-gin-dev golang-github-labstack-echo-dev golang-github-go-chi-chi-dev)
rust=(librust-tokio-dev librust-serde-json-dev librust-hyper-dev librust-ignore-dev librust-nom-dev librust-petgraph-dev)
json=(mdn-data@2.23.0 cldr-core@48.2.0 i18n-iso-countries@7.14.0 emojibase-data@17.0.0 moment-timezone@0.6.6 world-atlas@2.0.2)
c=(tcc nano less tmux figlet bc mawk pv calcurse sl)

mkdir -p python javascript typescript go rust c json
python3 -m pip download --quiet --no-deps --no-binary :none: -d wheels "${python[@]}"
for wheel in wheels/*; do
  case $wheel in *.whl) python3 -m zipfile -e "$wheel" "python/$(basename "$wheel" .whl)" ;; *) tar xf "$wheel" -C python ;; esac
done
for language in javascript typescript; do
  declare -n packages=$language
  for package in "${packages[@]}"; do
    folder=$language/$(echo "$package" | tr '/@' '--')
    mkdir -p "$folder" && npm pack --silent "$package" --pack-destination "$folder" >/dev/null
    tar xzf "$folder"/*.tgz -C "$folder" && rm "$folder"/*.tgz
  done
done
find typescript \( -name '*.d.ts' -o -name '*.d.mts' \) -delete
for language in go rust; do
  declare -n packages=$language
  (cd $language && apt-get download "${packages[@]}" && for each in *.deb; do dpkg -x "$each" . && rm "$each"; done)
done
(cd c && apt-get source --download-only "${c[@]}" && for each in *.dsc; do dpkg-source --no-check -x "$each"; done) >/dev/null
rm -rf c/tcc*/tests # what a compiler is tested with is no ordinary C
mkdir -p data && for package in "${json[@]}"; do (cd data && npm pack --silent "$package" >/dev/null); done
for each in data/*.tgz; do tar xzf "$each" -C data --one-top-level; done
find data javascript typescript -name '*.json' -size +1k -size -60k | while read -r file; do
  cp "$file" "json/$(echo "$file" | tr / _)"
done
