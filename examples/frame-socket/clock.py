"""Sends moving frames to a graph. Each shows its number as a bar code, which the graph's tests read."""
import contextlib, fcntl, mmap, os, signal, socket, struct, sys, time

SLOTS, F_ADD_SEALS, F_SEAL_SHRINK = 6, 1033, 2


def bar_code(number):
    check = 0x5A
    for byte in struct.pack(">I", number):
        check ^= byte
        for _ in range(8):
            check = (check << 1 ^ 0x07 if check & 0x80 else check << 1) & 0xFF
    return f"{number:032b}{check:08b}"


def draw(frame, width, height, number):
    frame[: width * height] = bytes([60 + number % 120]) * (width * height)
    frame[width * height : width * height * 3 // 2] = b"\x80" * (width * height // 2)
    block = 16 if width >= 640 else 8
    columns = min(width // block, 40)
    bits = bar_code(number)
    for row in range(-(-40 // columns)):
        line = b"".join((b"\xeb" if bit == "1" else b"\x10") * block for bit in bits[row * columns :][:columns])
        for y in range(row * block, (row + 1) * block):
            frame[y * width : y * width + len(line)] = line


name = os.environ["CONNECTLIVE_FRAME_SOCKET"]
graph = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, fileno=int(name) if name.isdigit() else None)
if not name.isdigit():
    graph.connect(name)
greeting = graph.recv(512)
if struct.unpack("<I", greeting[:4])[0] == 0x18:  # another feeder is connected, for example
    raise SystemExit(greeting[4:].decode(errors="replace"))
kind, magic, version, code, width, height, rate, per = struct.unpack("<I4sI4sIIII", greeting[:32])
assert (kind, magic, version, code) == (0x10, b"CLFS", 1, b"I420"), "this program speaks version 1 and draws I420"
size = width * height * 3 // 2
memory = os.memfd_create("clock", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
os.ftruncate(memory, SLOTS * size)
fcntl.fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK)
frames = memoryview(mmap.mmap(memory, SLOTS * size))
hello = struct.pack("<I4sI4sIIII", 0x01, b"CLFS", 1, b"I420", width, height, SLOTS, size) + b"clock.py"
socket.send_fds(graph, [hello], [memory])
free, number, due = [], 0, time.monotonic()
signal.signal(signal.SIGINT, lambda *_: (graph.send(struct.pack("<I", 0x06) + b"interrupted"), sys.exit()))
with contextlib.suppress(ConnectionError):  # the graph has ended
    while True:
        graph.settimeout(max(due - time.monotonic(), 0.0001) if free else None)
        try:
            message = graph.recv(512)
            kind = struct.unpack("<I", message[:4])[0] if message else 0
            if kind == 0x11:
                free, due = list(range(SLOTS)), time.monotonic()
            elif kind == 0x12:
                free.append(struct.unpack("<II", message[4:12])[1])
            elif kind in (0, 0x16, 0x18):
                raise SystemExit(message[4:].decode(errors="replace") if kind == 0x18 else 0)
            continue
        except TimeoutError:
            slot, due = free.pop(0), due + per / rate
        draw(frames[slot * size : (slot + 1) * size], width, height, number)
        graph.send(struct.pack("<IIQIII", 0x02, slot, time.monotonic_ns(), 1, 0, size))
        number += 1
