#!/usr/bin/env bash
# Everything that is measured on a GPU, in one run of at most eight minutes: gk, hand-written kernels and other
# systems on the same machine, in turns; then the ratios against the targets as a table.
# Usage, from the root of the sources: bench/run_gpu.sh BUNDLE OUT PEERS
#   BUNDLE  an unpacked bundle: bin/gkrun, bin/gk_bench, lib/
#   OUT     gets results.json, table.txt, probes.txt and log.txt
#   PEERS   a folder with peers.py and *.cu programs to run beside (may be missing)
# A part that fails or takes too long is noted in log.txt and the rest goes on.
set -u
if [ $# -lt 2 ]; then
  sed -n '2,9p' "$0"
  exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bundle=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
peers=${3:-}
[ -z "$peers" ] || peers=$(cd "$peers" && pwd)
device=${GK_BENCH_DEVICE:-cuda}
total=${GK_BENCH_SECONDS:-470}
rounds=${GK_BENCH_ROUNDS:-3}
python=${PYTHON:-python3}
gkrun=$bundle/bin/gkrun
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=$out/log.txt
: >"$log"
: >"$out/probes.txt"
GK_COMMIT=${GK_COMMIT:-$(git -C "$here" rev-parse HEAD 2>/dev/null || echo unknown)}
export GK_COMMIT GK_CACHE_DIR=$work/cache PYTHONUNBUFFERED=1
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)

# part LIMIT FILE COMMAND...: runs a part with its output in FILE, at most LIMIT seconds and what is left of the total.
part() {
  local limit=$1 file=$2 left start=$SECONDS status
  shift 2
  left=$((total - SECONDS))
  [ "$limit" -le "$left" ] || limit=$left
  if [ "$limit" -lt 3 ]; then
    echo "skipped (no time left): $*" >>"$log"
    return 1
  fi
  timeout -k 5 "$limit" "$@" >"$work/$file" 2>"$work/$file.err"
  status=$?
  [ "$status" = 0 ] || {
    echo "status $status after $((SECONDS - start)) s: $*"
    tail -c 2000 "$work/$file.err"
  } >>"$log"
  echo "$((SECONDS - start)) s: $file" >>"$log"
  return $status
}

{
  nvidia-smi --format=csv \
    --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.mem,clocks.max.sm,power.limit,persistence_mode
  "$nvcc" --version | tail -2
  grep -m1 'model name' /proc/cpuinfo
  nproc
  uname -r
} >"$work/machine.txt" 2>&1

# Compile what is written by hand, all at once and before anything is timed.
# -fmad=false is how gk compiles arithmetic; the default is what nvcc's users get.
arch=$("$python" - 2>/dev/null <<'PY'
import subprocess
cap = subprocess.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], capture_output=True, text=True)
print("sm_" + cap.stdout.split()[0].replace(".", ""))
PY
)
arch=${arch:-sm_90}
compile() {
  timeout 60 "$nvcc" -O3 -std=c++17 -arch="$arch" "$@" >>"$work/nvcc.log" 2>&1 ||
    { echo "nvcc failed: $*"; tail -5 "$work/nvcc.log"; } >>"$log"
}
compile "$here/hand/ode.cu" -o "$work/ode" &
compile -fmad=false "$here/hand/ode.cu" -o "$work/ode_no_fmad" &
{
  compile "$here/hand/mlp.cu" -lcublasLt -o "$work/mlp"
  [ -x "$work/mlp" ] || compile -DNO_LT "$here/hand/mlp.cu" -o "$work/mlp"
} &
if [ -n "$peers" ]; then
  for probe in raw_probe rk4_probe; do
    [ ! -e "$peers/$probe.cu" ] || compile "$peers/$probe.cu" -lcuda -o "$work/$probe" &
  done
  [ ! -e "$peers/mlp_probe.cu" ] || compile "$peers/mlp_probe.cu" -lcublas -lcublasLt -o "$work/mlp_probe" &
fi
wait
echo "$SECONDS s: machine and nvcc" >>"$log"

bench() { part 40 "gk.$1.$2.json" "$gkrun" --device "$device" --bench --json "$here/$1.gk"; }

part 60 compile_time.json "$python" "$here/compile_time.py" "$gkrun" --device "$device"
for round in $(seq "$rounds"); do
  bench mlp "$round"
  [ ! -x "$work/mlp" ] || part 30 "hand.mlp.$round.jsonl" "$work/mlp"
  for name in rk4 lorenz; do bench "$name" "$round"; done
  [ ! -x "$work/ode" ] || part 20 "hand.ode.$round.jsonl" "$work/ode" fmad
  [ ! -x "$work/ode_no_fmad" ] || part 20 "hand.ode_no_fmad.$round.jsonl" "$work/ode_no_fmad" "no fmad"
done
for name in ten_kernels rk4_unfused lorenz_unfused chain chain_unfused cg cg_readback cg_readback16; do bench "$name" 1; done
part 150 gk_bench.json "$bundle/bin/gk_bench" --device "$device" --effort "${GK_BENCH_EFFORT:-1}"
if [ -n "$peers" ]; then
  for name in mlp rk4 lorenz; do part 100 "peers.$name.jsonl" "$python" "$peers/peers.py" "$name"; done
  for probe in raw_probe rk4_probe mlp_probe; do
    [ ! -x "$work/$probe" ] || part 25 "$probe.txt" "$work/$probe"
    { echo "== $probe"; cat "$work/$probe.txt"; } >>"$out/probes.txt" 2>/dev/null
  done
fi
"$python" "$here/collect.py" "$work" "$out" 2>>"$log"
cat "$out/table.txt"
echo "$SECONDS s in all; problems, if any:"
grep -E '^(status|skipped|nvcc failed)|Error|Traceback' "$log" || echo none
