#!/usr/bin/env python3
"""Makes a Python wheel that carries the relocatable program, so that `pip install` puts `snapmla` on the PATH.

    python3 ci/package/wheel.py BUNDLE VERSION OUT

BUNDLE is the folder that ci/dist.sh made. The wheel holds the whole bundle as the package `snapmla`, and one script,
which replaces itself with the program: the program stays free of Python. The platform tag names the newest glibc symbol
version that the program and its libraries need. Files are dated by SOURCE_DATE_EPOCH, so that equal input gives equal
bytes. Only Python's own library is used."""
import base64
import hashlib
import os
import platform
import re
import subprocess
import sys
import time
import zipfile

LAUNCHER = '''#!python
import os
import sys
import sysconfig

program = os.path.join(sysconfig.get_path("purelib"), "snapmla", "bin", "snapmla")
if not os.path.exists(program):  # installed with --user or --target
    import snapmla
    program = os.path.join(snapmla.__path__[0], "bin", "snapmla")
os.execv(program, ["snapmla", *sys.argv[1:]])
'''

METADATA = '''Metadata-Version: 2.1
Name: snapmla
Version: {version}
Summary: Measures FP8 Multi-head Latent Attention decoding against a BF16 baseline, in speed and in quality
License: MIT
Requires-Python: >=3.8
Classifier: Environment :: Console
Classifier: License :: OSI Approved :: MIT License
Classifier: Operating System :: POSIX :: Linux
Description-Content-Type: text/markdown

{readme}'''


def newest_glibc(paths):
    """The highest GLIBC_x.y that any of these files asks for, as (major, minor)."""
    text = subprocess.check_output(["objdump", "-T", *paths], text=True, stderr=subprocess.DEVNULL)
    return max(tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_(\d+\.\d+)\b", text))


def bundle_files(bundle):
    for folder, _, names in os.walk(bundle):
        for name in names:
            path = os.path.join(folder, name)
            yield path, os.path.relpath(path, bundle)


class Wheel:
    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6)
        self.date = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())), 315532800))[:6]
        self.records = []

    def add(self, name, data, mode=0o644):
        info = zipfile.ZipInfo(name, self.date)
        info.external_attr = (0o100000 | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.records.append(f"{name},sha256={digest},{len(data)}\n")

    def close(self, record):
        self.records.append(f"{record},,\n")
        info = zipfile.ZipInfo(record, self.date)
        info.external_attr = 0o100644 << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, "".join(self.records))
        self.zip.close()


def main(bundle, version, out):
    files = sorted(bundle_files(bundle), key=lambda f: f[1])
    binaries = [path for path, name in files if name.startswith(("libexec/", "lib/"))]
    major, minor = newest_glibc(binaries)
    tag = f"py3-none-manylinux_{major}_{minor}_{platform.machine()}"
    path = os.path.join(out, f"snapmla-{version}-{tag}.whl")
    info = f"snapmla-{version}.dist-info"
    wheel = Wheel(path)
    for source, name in files:
        with open(source, "rb") as file:
            wheel.add(f"snapmla/{name}", file.read(), os.stat(source).st_mode & 0o755 | 0o644)
    with open("README.md", encoding="utf-8") as file:
        metadata = METADATA.format(version=version, readme=file.read())
    data = f"snapmla-{version}.data"
    wheel.add(f"{data}/scripts/snapmla", LAUNCHER.encode(), 0o755)
    for page in ("share/man/man1/snapmla.1", "share/bash-completion/completions/snapmla",
                 "share/zsh/site-functions/_snapmla", "share/fish/vendor_completions.d/snapmla.fish"):
        with open(os.path.join(bundle, page), "rb") as file:
            wheel.add(f"{data}/data/{page}", file.read())
    with open("LICENSE", "rb") as file:
        wheel.add(f"{info}/LICENSE", file.read())
    wheel.add(f"{info}/METADATA", metadata.encode())
    wheel.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: snapmla\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
    wheel.close(f"{info}/RECORD")
    print(path)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
