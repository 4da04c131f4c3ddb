#!/usr/bin/env bash
# Fetches the files that `python -m benchmarks gate` completes in: packages that training and development have not used, and
# puts them under FOLDER/LANGUAGE. Needs pip, npm, and apt with its sources (deb-src).
#
#     tests/benchmarks/gate_corpus.sh FOLDER
set -euo pipefail
mkdir -p "$1" && cd "$1"

python=(beets==2.14.1 pelican==4.12.0 mitmproxy==11.0.2 radicale==3.9.0 khal==0.14.1 glances==4.5.8)
javascript=(hexo@8.1.2 nodemon@3.1.14 karma@6.4.4 restify@11.1.0 jsdoc@4.0.5 sails@1.5.18 pm2@7.0.4 bull@4.16.5 mineflayer@4.25.0 nunjucks@3.2.4)
typescript=(@grpc/grpc-js@1.14.7 bson@7.3.4 langium@4.4.0 graphql-request@7.4.0 @apollo/server@5.5.1 @trpc/server@11.25.2 abitype@1.3.0 chevrotain@11.2.0)
go=(golang-github-spf13-viper-dev golang-github-gin-gonic-gin-dev golang-github-labstack-echo-dev golang-github-go-chi-chi-dev)
rust=(librust-tokio-dev librust-serde-json-dev librust-hyper-dev librust-indexmap-dev librust-nix-dev librust-petgraph-dev)
json=(mdn-data@2.23.0 cldr-core@48.2.0 i18n-iso-countries@7.14.0 emojibase-data@17.0.0 moment-timezone@0.6.6 world-atlas@2.0.2)
c=(tcc nano less htop figlet bc mawk pv ed sl)

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
# What a compiler writes is no ordinary code.
find typescript -type f \( -name '*.d.*ts' -o -name '*.js' -o -name '*.cjs' -o -name '*.mjs' -o -name '*.map' \) -delete
for language in go rust; do
  declare -n packages=$language
  (cd $language && apt-get download "${packages[@]}" && for each in *.deb; do dpkg -x "$each" . && rm "$each"; done)
done
(cd c && apt-get source --download-only "${c[@]}" && for each in *.dsc; do dpkg-source --no-check -x "$each"; done) >/dev/null
# What a compiler is tested with is no ordinary C, and what stands in for system functions elsewhere is compiled nowhere.
rm -rf c/tcc*/tests c/nano*/lib
mkdir -p data && for package in "${json[@]}"; do (cd data && npm pack --silent "$package" >/dev/null); done
for each in data/*.tgz; do tar xzf "$each" -C data --one-top-level; done
find data javascript typescript -name '*.json' -size +1k -size -60k | while read -r file; do
  cp "$file" "json/$(echo "$file" | tr / _)"
done
