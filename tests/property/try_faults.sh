#!/usr/bin/env bash
# tests/property/try_faults.sh SCRATCH [COUNT]: does the generator find faults that are put in by hand?
# Copies the tracked files to the folder SCRATCH, applies every patch of tests/property/faults to the copy, builds
# gk_property_tests there once, and runs at most COUNT programs (400) with each fault switched on in turn:
# GK_FAULT=n switches the fault of patch n on, and without it the copy has none. Prints one line a fault, with the
# first seed that finds it. The status is 0 where no more than a tenth are missed and the copy without faults is clean.
set -euo pipefail
scratch=${1:?where to: a folder for the copy}
count=${2:-400}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
mkdir -p "$scratch"
git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$scratch"
cd "$scratch"
for patch in tests/property/faults/*.patch; do
  patch -p1 -s <"$patch" || { echo "$patch does not apply any more"; exit 2; }
done
cmake --preset dev >/dev/null
ninja -C build/dev --quiet gk_property_tests
tests=build/dev/bin/gk_property_tests
if ! GK_FAULT=0 "$tests" --seed=1 --count="$count" --failures=1 >clean.log; then
  echo "without a fault something is found already:"
  tail -3 clean.log
  exit 1
fi
found=0 all=0
for patch in tests/property/faults/*.patch; do
  name=$(basename "$patch" .patch)
  all=$((all + 1))
  if GK_FAULT=$((10#${name%%_*})) "$tests" --seed=1 --count="$count" --failures=1 >"$name.log" 2>&1; then
    echo "missed  $name: $(head -1 "$patch")"
  else
    found=$((found + 1))
    echo "found   $name by $(sed -n 's/^==== //p' "$name.log" | head -1)"
  fi
done
echo "$found of $all found"
[ $((found * 10)) -ge $((all * 9)) ]
