# Checks the isolation: tries to reach what a judged program must not reach. Sends the first thing
# that it can reach, or "isolated", through the channel. After "isolated" come the packages of the
# request that are installed. The request is the caller's process and the names of packages.
import os
import site
import socket


def refused(action, *args):
    try:
        action(*args)
    except OSError:
        return True
    return False


def status(key):
    with open("/proc/self/status") as f:
        return next(line.split()[1:] for line in f if line.startswith(key + ":"))


def connect():
    with socket.socket(socket.AF_INET) as s:
        s.settimeout(1)
        s.connect(("127.0.0.1", 9))


def installed(package):
    return any(os.path.isdir(os.path.join(folder, package)) for folder in site.getsitepackages())


def first_leak(outside):
    visible = {name for name in os.listdir("/proc") if name.isdigit()}
    checks = {
        "it runs as root": os.getuid() != 0 and os.geteuid() != 0,
        "it holds capabilities": all(int(status(k)[0], 16) == 0 for k in ("CapEff", "CapPrm", "CapBnd")),
        "it may gain privileges": status("NoNewPrivs") == ["1"],
        "system calls are not filtered": status("Seccomp") == ["2"],
        "other processes are visible": len(visible) < 5 and (outside in ("1", "2", "3", "4") or outside not in visible),
        "files of this machine are visible": not any(
            os.path.exists(p) for p in ("/etc/passwd", "/root", "/home", "/var", "/usr/share", "/usr/local", "/sys")
        ),
        "the environment leaks": set(os.environ) <= {
            "PATH", "LANG", "PWD", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "OMP_NUM_THREADS",
            "OPENBLAS_NUM_THREADS", "LC_CTYPE",
        },
        "the network is reachable": refused(connect) and not refused(socket.socketpair),
        "files can be written": all(
            refused(open, p, "w") for p in ("/x", "/dev/x", "/dev/shm/x", "/usr/lib/x", "/box/x", "/box/driver.py")
        ),
        "processes can be started": refused(os.fork),
    }
    return next((text for text, fine in checks.items() if not fine), "isolated")


try:
    outside, *packages = os.read(4, 200).decode().split()
    found = first_leak(outside)
    if found == "isolated":
        found = " ".join([found, *filter(installed, packages)])
except Exception as e:
    found = repr(e)
os.write(3, (found + "\n").encode())
