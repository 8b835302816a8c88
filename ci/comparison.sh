#!/bin/sh
# Makes the page in results/comparison that compares devices, from kept files, and removes the old one. Run it in the
# repository.
#   comparison.sh PROGRAM DATE     the names of the new files begin with DATE, such as 2026-12-01
# The list below has one line for each device: what the names of its kept files begin with.
set -eu
usage='usage: comparison.sh PROGRAM DATE'
snapmla=${1:?$usage}
date=${2:?$usage}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
to=results/comparison
devices='
results/nvidia-h200/2026-11-30-aebbce433e26-vendor
results/nvidia-h200/2026-12-01-a95954e79542-opencl-vendor
results/intel-xeon-16-threads/2026-12-01-98404811c8ad-vendor
results/amd-epyc-zen4-2-threads/2026-12-01-fde6c3f31fa5-vendor
results/amd-epyc-zen4-2-threads/2026-12-01-fde6c3f31fa5-pocl-vendor
results/amd-epyc-2-threads/2026-11-30-37d211d35c19-vendor
results/amd-epyc-zen4-2-threads/2026-11-30-ec16e57626cd-first-day
'
# shellcheck disable=SC2086 # one word for each device
"$snapmla" compare $devices --prices configs/prices.json --out "$out" >/dev/null
rm -f "$to"/*-devices.* "$to"/*-devices-*
for f in "$out"/*; do
    name=${f##*/}
    case $name in
        report.*) cp "$f" "$to/$date-devices.${name#report.}" ;;
        *) cp "$f" "$to/$date-devices-$name" ;;
    esac
done
