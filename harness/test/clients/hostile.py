"""Sends hostile requests to `snapmla serve` at full size, while the stream of another client goes on, and prints what
the server did and how much memory it has. The test serve_hostile does the same at a small size.

    python3 hostile.py PORT PID [IDLE]

PORT and PID are those of a server that only this program uses. Each attack is made three times. IDLE connections are
opened at once (default: 10000; `ulimit -n` must allow them). Exits with 1 if the text of the stream differs from its
text without hostile clients.
"""
import http.client
import json
import os
import resource
import socket
import struct
import sys
import threading
import time

PORT, PID = int(sys.argv[1]), int(sys.argv[2])
IDLE = int(sys.argv[3]) if len(sys.argv) > 3 else 10000
STREAM = {"messages": [{"role": "user", "content": "Count to 900."}], "seed": 11, "ignore_eos": True,
          "max_tokens": 1500, "stream": True}


def memory():
    """The server's memory in MiB: now, and the most so far."""
    lines = open(f"/proc/{PID}/status").read().split("\n")
    kb = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith("Vm")}
    return f"{int(kb['VmRSS']) / 1024:.0f} MiB (most so far {int(kb['VmHWM']) / 1024:.0f})"


def ask(body, path="/v1/chat/completions"):
    c = http.client.HTTPConnection("127.0.0.1", PORT, timeout=600)
    c.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    return c.getresponse()


def read_stream():
    text = ""
    for line in ask(STREAM):
        if line.startswith(b"data: {"):
            for choice in json.loads(line[6:])["choices"]:
                text += choice["delta"].get("content") or ""
    return text


def metric(name):
    c = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
    c.request("GET", "/metrics")
    for line in c.getresponse().read().decode().split("\n"):
        if line.startswith(name):
            return float(line.split()[-1])
    return None


def beside_stream(what, attack):
    """Runs an attack while a stream is read, and compares the stream's text."""
    result = []
    neighbour = threading.Thread(target=lambda: result.append(read_stream()))
    neighbour.start()
    while metric("vllm:num_requests_running") < 1:
        time.sleep(0.01)
    before, begin = memory(), time.time()
    said = attack()
    took, during = time.time() - begin, neighbour.is_alive()
    print(f"{what}: {said}; {took:.2f} s; memory before: {before}, after: {memory()}")
    neighbour.join()
    if result[0] != ALONE:
        sys.exit(f"{what}: the stream beside it has another text")
    print(f"    the stream beside it {'went on and' if during else 'had ended before, and'} has the same text")


def connect():
    s = socket.socket()
    s.settimeout(60)
    s.connect(("127.0.0.1", PORT))
    return s


def send_gigabyte(head, piece):
    s, sent, status = connect(), 0, "no answer"
    s.sendall(head)
    try:
        while sent < 1_000_000_000:
            sent += s.send(piece)
    except OSError:
        pass
    try:
        answer = s.recv(4096)
        status = answer.split(b"\r\n")[0].decode() if answer else "end of the connection"
    except OSError as e:
        status = str(e)
    return f"{sent / 1e6:.1f} MB were sent; {status}"


def announced():
    return send_gigabyte(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n",
                         b" " * 65536)


def chunked():
    return send_gigabyte(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
                         b"10000\r\n" + b" " * 65536 + b"\r\n")


def idle():
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(IDLE + 500, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    sockets = []
    for i in range(IDLE):
        sockets.append(connect())
        if i % 2:
            sockets[-1].send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Le")
    open_now = metric("snapmla:connections")
    begin = time.time()
    status = ask({"messages": [{"role": "user", "content": "x"}], "max_tokens": 1}).status
    took = time.time() - begin
    said = f"{IDLE} connections were opened, {open_now:.0f} are open; another request: {status} after {took:.2f} s"
    return said + f"; memory with them: {memory()}", [s.close() for s in sockets]


def stopping():
    """Clients that send most of a body, and then nothing."""
    sockets, sent = [connect() for _ in range(500)], 0
    for s in sockets:
        s.settimeout(5)
        try:
            s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 4100000\r\n\r\n")
            s.sendall(b" " * 4_000_000)
            sent += 1
        except OSError:  # the server closed the connection, or does not read any more
            pass
    status = ask({"messages": [{"role": "user", "content": "x"}], "max_tokens": 1}).status
    return f"{sent} of 500 clients sent 4 MB of 4.1 MB; another request: {status}; memory with them: {memory()}", \
        [s.close() for s in sockets]


def long_prompts():
    said = []
    for body, path in (({"messages": [{"role": "user", "content": "7919 " * 100000}]}, "/v1/chat/completions"),
                       ({"prompt": "7919 " * 100000, "max_tokens": 1}, "/v1/completions"),
                       ({"prompt": [5] * 500000, "max_tokens": 1}, "/v1/completions")):
        r = ask(body, path)
        said.append(f"{r.status} {json.loads(r.read())['error']['code']}")
    return ", ".join(said)


def vanish():
    for i in range(200):
        s = connect()
        body = json.dumps(dict(STREAM, seed=i, max_tokens=1900)).encode()
        s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        got = b""
        while i % 4 == 1 and got.count(b"data:") < 3:  # in the middle of its answer
            got += s.recv(4096)
        if i % 3 == 0:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
        s.close()
    while metric("vllm:num_requests_waiting") > 0 or metric("vllm:num_requests_running") > 1:
        time.sleep(0.02)
    return "200 clients left; no sequence of theirs is left"


def main():
    global ALONE
    ALONE = read_stream()
    print(f"server of process {PID}: memory {memory()}; {os.cpu_count()} processors")
    for turn in range(1, 4):
        beside_stream("a body of 1 GB, announced", announced)
        beside_stream("a body of 1 GB, chunked", chunked)
        beside_stream("idle connections", lambda: idle()[0])
        beside_stream("bodies that stop before their end", lambda: stopping()[0])
        beside_stream("prompts longer than the context", long_prompts)
        beside_stream("clients that vanish", vanish)
        while metric("snapmla:connections") > 1:
            time.sleep(0.1)
        print(f"after round {turn}: memory {memory()}")


main()
