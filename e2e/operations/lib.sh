# What the scripts beside this file share: a folder for the run, processes that end with it, and one way to fail.

set -euo pipefail
home=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$home/../.." && pwd)
proxy=${PROXY:-$root/target/release/toolsearch-proxy}
python=${PYTHON:-python3}
folder=$(mktemp -d)
pids=()

at_end() {
  local pid
  for pid in "${pids[@]}"; do kill "$pid" 2> /dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2> /dev/null || true; done
  rm -rf "$folder"
}
trap at_end EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

ok() {
  echo "ok: $*"
}

# free_port: a port that nobody listens on
free_port() {
  "$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# within SECONDS CMD...: tries until it works
within() {
  local left=$(($1 * 10))
  shift
  until "$@" > /dev/null 2>&1; do
    left=$((left - 1))
    [ "$left" -gt 0 ] || return 1
    sleep 0.1
  done
}

# start_upstream [OPTION...]: sets upstream_port
start_upstream() {
  "$python" "$home/upstream.py" "$@" > "$folder/upstream.port" &
  pids+=($!)
  within 10 test -s "$folder/upstream.port" || fail "the fixture did not start"
  upstream_port=$(cat "$folder/upstream.port")
}

# post URL TOOL ARGUMENTS: the answer's body
post() {
  curl --silent --show-error --max-time 20 "$1" \
    -H 'Authorization: Bearer somebody' -H 'Content-Type: application/json' \
    -d "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"$2\",\"arguments\":$3}}"
}

# need_root: some things only root may try
need_root() {
  [ "$(id -u)" = 0 ] || fail "this is tried as root only"
}
