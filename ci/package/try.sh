#!/bin/sh
# Installs each package of FOLDER where nothing else is installed, and runs it there: the Debian package in a fresh
# Debian root that debootstrap makes, the wheel in a fresh virtual environment, the bundle with an empty environment.
# Needs root, debootstrap, a Debian mirror and python3-venv. Takes some minutes.
#   try.sh FOLDER
set -eu
folder=$(realpath "$1")
dir=$(mktemp -d)
trap 'umount "$dir/root/proc" 2>/dev/null || true; rm -rf "$dir"' EXIT

# What a newcomer does first, small: bench, and the embedded model in both precisions.
cat >"$dir/first_steps.sh" <<'END'
set -eu
program=$1
work=$2
mkdir -p "$work/data"
"$program" --version
"$program" bench --backend cpu --heads 16 --batch 2 --context 1024 --min-time 0.05 --quiet --out "$work/bench"
"$program" synth --style aime --level 1 --count 8 --out "$work/data/synth_aime.jsonl"
"$program" eval --suite synth_aime --data "$work/data" --samples 1 --quiet --out "$work/run" \
    --arm bf16=local:models/snapmla-10m --arm fp8=local:models/snapmla-10m,precision=fp8
"$program" report "$work/bench" "$work/run" --out "$work/page"
END

echo '== bundle'
mkdir "$dir/bundle"
tar -C "$dir/bundle" -xzf "$folder"/snapmla-*.tar.gz
(cd / && env -i PATH=/usr/bin:/bin sh "$dir/first_steps.sh" "$dir"/bundle/*/bin/snapmla "$dir/work-bundle")

echo '== wheel'
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check "$folder"/snapmla-*.whl
(cd / && env -i PATH=/usr/bin:/bin sh "$dir/first_steps.sh" "$dir/venv/bin/snapmla" "$dir/work-wheel")
"$dir/venv/bin/pip" uninstall --quiet --yes snapmla
[ -z "$(find "$dir/venv" -name '*snapmla*')" ] || { echo 'try: the wheel leaves files' >&2; exit 1; }

echo '== deb'
debootstrap --variant=minbase bookworm "$dir/root" >"$dir/debootstrap.log" || { tail "$dir/debootstrap.log"; exit 1; }
mkdir "$dir/root/packages"
cp "$folder"/snapmla_*.deb "$dir/first_steps.sh" "$dir/root/packages/"
mount -t proc proc "$dir/root/proc"
in_root() {
    chroot "$dir/root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"
}
rm -f "$dir/root/etc/apt/sources.list"
for f in /etc/apt/apt.conf.d /etc/apt/sources.list /etc/apt/sources.list.d /etc/resolv.conf /etc/hosts; do
    [ ! -e "$f" ] || cp -r "$f" "$dir/root$(dirname "$f")/" # the host's own way to its mirror
done
in_root apt-get update -qq
in_root sh -c 'apt-get install -y -qq --no-install-recommends /packages/*.deb' >"$dir/apt.log" 2>&1 || { tail "$dir/apt.log"; exit 1; }
in_root sh /packages/first_steps.sh snapmla /tmp/first
in_root test -s /usr/share/bash-completion/completions/snapmla
in_root apt-get purge -y -qq snapmla >"$dir/apt.log" 2>&1
left=$(find "$dir/root/usr" -name '*snapmla*')
[ -z "$left" ] || { echo "try: the package leaves $left" >&2; exit 1; }
echo 'packages: bundle, wheel and Debian package install, run and go'
