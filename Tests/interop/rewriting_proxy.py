#!/usr/bin/python3
"""A proxy for tests that forwards to a server on this machine under another Host, as nginx does by default.

    rewriting_proxy.py --port 7880 [--header 'X-Forwarded-Host: 127.0.0.1:8080'] [--no-upgrade]

Prints "listening on PORT". "PORT" in a header means the proxy's own port. Runs until it is ended.
"""
import argparse
import re
import socket
import threading


def copy(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def forward(client, options):
    head = b""
    while b"\r\n\r\n" not in head:
        data = client.recv(65536)
        if not data:
            return client.close()
        head += data
    lines, rest = head.split(b"\r\n\r\n", 1)
    lines = re.sub(rb"(?mi)^host:.*?$", b"Host: 127.0.0.1:%d" % options.port, lines.replace(b"\r\n", b"\n"))
    is_upgrade = re.search(rb"(?mi)^upgrade:", lines) and not options.no_upgrade
    if not is_upgrade:
        # One request for each connection, so that each head is rewritten.
        lines = re.sub(rb"(?mi)^(upgrade|connection):.*?$\n?", b"", lines).rstrip(b"\n") + b"\nConnection: close"
    for header in options.header:
        lines += b"\n" + header.encode()
    server = socket.create_connection(("127.0.0.1", options.port))
    server.sendall(lines.replace(b"\n", b"\r\n") + b"\r\n\r\n" + rest)
    threading.Thread(target=copy, args=(client, server), daemon=True).start()
    copy(server, client)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True, help="the server's port")
    parser.add_argument("--header", action="append", default=[], help="one more header of each request")
    parser.add_argument("--no-upgrade", action="store_true", help="forward no WebSocket")
    options = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    options.header = [header.replace("PORT", str(port)) for header in options.header]
    print(f"listening on {port}", flush=True)
    while True:
        client, _ = listener.accept()
        threading.Thread(target=forward, args=(client, options), daemon=True).start()


main()
