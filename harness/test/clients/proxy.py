"""Passes requests of HTTP clients on to a server, and keeps the raw bytes of one request of each kind.

    python3 proxy.py PORT SERVER_PORT FOLDER NAME

A kind is a method, a path, and the names of the members of the body, with whether the answer is streamed. The
files are FOLDER/NAME-1.http, FOLDER/NAME-2.http and so on. The proxy ends after SIGTERM.
"""
import asyncio
import json
import os
import signal
import sys

PORT, SERVER, FOLDER, NAME = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
kinds = set()


async def read_request(reader):
    """The bytes of one request; empty at the end of the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b"", b""
    fields = dict(line.split(b":", 1) for line in head.lower().split(b"\r\n")[1:] if b":" in line)
    if b"transfer-encoding" in fields:
        sys.exit("a request with a chunked body: this proxy does not read it")
    return head, await reader.readexactly(int(fields.get(b"content-length", b"0")))


def keep(head, body):
    line = head.split(b"\r\n")[0]
    members = json.loads(body) if body else {}
    kind = (line, tuple(sorted(members)), members.get("stream"))
    if kind in kinds:
        return
    kinds.add(kind)
    with open(os.path.join(FOLDER, f"{NAME}-{len(kinds)}.http"), "wb") as f:
        f.write(head + body)


async def pass_on(reader, writer):
    try:
        while piece := await reader.read(1 << 16):
            writer.write(piece)
            await writer.drain()
    except ConnectionError:
        pass
    writer.close()


async def serve(reader, writer):
    from_server, to_server = await asyncio.open_connection("127.0.0.1", SERVER)
    answers = asyncio.create_task(pass_on(from_server, writer))
    try:
        while True:
            head, body = await read_request(reader)
            if not head:
                break
            keep(head, body)
            to_server.write(head + body)
            await to_server.drain()
    except ConnectionError:
        pass
    to_server.close()
    await answers


async def main():
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    server = await asyncio.start_server(serve, "127.0.0.1", PORT, limit=1 << 24, backlog=1024)
    async with server:
        await stop.wait()


asyncio.run(main())
