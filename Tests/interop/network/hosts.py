"""Hosts on one machine: network namespaces on a switch, and the programs and sockets in them.

Must be run in a network namespace of its own, see `in_namespaces` in behaviours.py. Only the main thread enters others. A
namespace lives as long as its descriptor here and the programs in it, and those die with this process: nothing stays."""
import ctypes
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time

NEW_NETWORK = 0x40000000  # CLONE_NEWNET
PREFIX = "10.77.0."
# For documentation (RFC 5737), and public to connectlive: how hosts on the Internet are addressed.
PUBLIC = "203.0.113."
# Linux gives no program that asks for any port this one or a higher one.
FIRST_RARE_PORT = 61000
# Without root's privileges, also those within a namespace: users of connectlive have none.
AS_A_USER = ["setpriv", "--pdeathsig", "KILL", "--bounding-set=-all", "--inh-caps=-all"]
libc = ctypes.CDLL(None, use_errno=True)


class Broken(Exception):
    """A behaviour that is not as it should be, in one sentence."""


def expect(condition, sentence):
    if not condition:
        raise Broken(sentence)


def wait_for(condition, seconds, what):
    """Returns the condition's value as soon as it holds."""
    deadline = time.monotonic() + seconds
    while True:
        if value := condition():
            return value
        expect(time.monotonic() < deadline, f"waited {seconds} s in vain for {what() if callable(what) else what}")
        time.sleep(0.02)


def run(*command, **options):
    """Returns what the command printed."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    expect(done.returncode == 0, f"'{' '.join(command)}' failed: {done.stderr.strip()}")
    return done.stdout


def ip(*words, keep=()):
    return run("ip", *words, pass_fds=keep)


def check(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def namespace():
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY)


class Network:
    """A switch with a cable to each host. Where it is made has no other network."""

    def __init__(self, folder, environment):
        self.folder, self.environment = folder, environment
        self.outside, self.hosts, self.programs, self.participants = namespace(), {}, [], []
        self.prefix, self.switches, self.ports = PREFIX, [], []
        self.add_switch("switch")

    def add_switch(self, name):
        ip("link", "add", name, "type", "bridge", "forward_delay", "0", "mcast_snooping", "0")
        ip("link", "set", name, "up")
        self.switches.append(name)

    def host(self, name, behind=None):
        """A host on the switch, or on the private network behind a router."""
        number = len(self.hosts) + 1
        if behind:
            host = Host(self, name, f"{behind.prefix}{number}", behind.switch)
            with host:
                ip("route", "add", "default", "via", f"{behind.prefix}254")
        else:
            host = Host(self, name, f"{self.prefix}{number}")
        self.hosts[name] = host
        return host

    def router(self, name):
        self.hosts[name] = router = Router(self, name, f"{self.prefix}{len(self.hosts) + 1}")
        return router

    def set_switch(self, is_on):
        """Off, everything between the hosts vanishes without a word to any of them."""
        ip("link", "set", "switch", "up" if is_on else "down")

    def close(self):
        for participant in self.participants:
            participant.close()
        for program in self.programs:
            program.kill()
        for host in self.hosts.values():
            os.close(host.namespace)
        for switch in self.switches:
            ip("link", "delete", switch)
        for port in self.ports:
            # A namespace disappears a little after its last program, and so does its end of the cable.
            subprocess.run(["ip", "link", "delete", port], capture_output=True)
        os.close(self.outside)


class Host:
    """`with host:` is in its namespace: programs started and sockets opened there stay there."""

    def __init__(self, network, name, address, switch="switch"):
        self.network, self.name, self.address, self.port = network, name, address, f"to-{name}"
        self.folder = os.path.join(network.folder, name)
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        check(libc.unshare(NEW_NETWORK))
        self.namespace = namespace()
        check(libc.setns(network.outside, NEW_NETWORK))
        with self:
            ip("link", "set", "lo", "up")
        self.plug("eth0", self.port, switch, address)

    def plug(self, device, port, switch, address):
        """Lays a cable from a device of the host to a port of the switch."""
        ip("link", "add", port, "type", "veth", "peer", "name", device, "netns", f"/proc/self/fd/{self.namespace}",
           keep=[self.namespace])
        ip("link", "set", port, "master", switch, "up")
        self.network.ports.append(port)
        with self:
            ip("address", "add", f"{address}/24", "dev", device)
            ip("link", "set", device, "up")

    def __enter__(self):
        check(libc.setns(self.namespace, NEW_NETWORK))
        return self

    def __exit__(self, *_):
        check(libc.setns(self.network.outside, NEW_NETWORK))

    def add_address(self, address):
        with self:
            ip("address", "add", f"{address}/24", "dev", "eth0")

    def change_address(self, address):
        """Moves the host to another address, without a word to its programs."""
        with self:
            ip("address", "flush", "dev", "eth0")
            ip("address", "add", f"{address}/24", "dev", "eth0")
        self.address = address

    def use_ipv6_alone(self):
        """Replaces the IPv4 address of the host. Returns the IPv6 address."""
        with self:
            ip("address", "flush", "dev", "eth0")
            address = f"fd77::{self.address.split('.')[-1]}"
            ip("address", "add", f"{address}/64", "dev", "eth0", "nodad")
        return address

    def block_udp_from(self, *others):
        """Drops the UDP of other hosts that arrives here, as a firewall of those hosts that lets TCP alone out."""
        with self:
            # Before the rule for the host's own addresses, which is the first one.
            ip("rule", "add", "preference", "10", "lookup", "local")
            ip("rule", "delete", "preference", "0", "lookup", "local")
            for other in others:
                ip("rule", "add", "preference", "5", "iif", "eth0", "from", other.address, "ipproto", "udp", "blackhole")

    def set_distance(self, milliseconds):
        """Makes TCP retransmit as late as on a path with this round trip. The path itself stays as fast as before."""
        with self:
            ip("route", "replace", f"{self.network.prefix}0/24", "dev", "eth0", "src", self.address, "rto_min",
               f"{200 + milliseconds}ms")

    def narrow(self, rate):
        """Delivers no more than this to the host, such as `350kbit`, with a queue of up to 0.4 s."""
        run("/usr/sbin/tc", "qdisc", "add", "dev", self.port, "root", "tbf", "rate", rate, "burst", "5kb", "latency", "400ms")

    def set_cable(self, is_plugged):
        ip("link", "set", self.port, "up" if is_plugged else "down")

    def bytes_received(self):
        """The bytes that the switch has delivered to this host."""
        with open("/proc/thread-self/net/dev", encoding="ascii") as table:
            line = next(line for line in table if line.split(":")[0].strip() == self.port)
        return int(line.split(":")[1].split()[8])

    def start_other(self, *command):
        """Runs another program than connectlive. It ends with the network."""
        with self:
            process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command], cwd=self.folder,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        program = OtherProgram(process)
        self.network.programs.append(program)
        return program

    def start(self, *arguments, **environment):
        """Runs connectlive in a folder of this host, without any server file of another."""
        program = Program(self, arguments, environment)
        self.network.programs.append(program)
        return program


class Router(Host):
    """Translates addresses (NAT): hosts behind it have private ones, and others see the router's own."""

    def __init__(self, network, name, address):
        super().__init__(network, name, address)
        self.switch, self.prefix, self.forwarded = f"behind-{name}", f"192.168.{len(network.switches)}.", []
        network.add_switch(self.switch)
        self.plug("eth1", f"in-{name}", self.switch, f"{self.prefix}254")
        with self, open("/proc/sys/net/ipv4/ip_forward", "w", encoding="ascii") as forwarding:
            forwarding.write("1")
        self.translate()

    def translate(self, udp="masquerade"):
        """Sets the rules for new connections. Existing ones keep their addresses and ports."""
        rules = f"""table ip nat
            delete table ip nat
            table ip nat {{
                chain leaving {{
                    type nat hook postrouting priority srcnat
                    oifname "eth0" meta l4proto udp {udp}
                    oifname "eth0" masquerade
                }}
                chain arriving {{
                    type nat hook prerouting priority dstnat
                    {"; ".join(self.forwarded)}
                }}
            }}"""
        with self:
            run("/usr/sbin/nft", "-f", "-", input=rules)

    def forward(self, host, *packets):
        """Passes packets from outside, such as `udp dport 7880`, on to a host behind the router."""
        self.forwarded += [f'iifname "eth0" {packet} dnat to {host.address}' for packet in packets]
        self.translate()

    def conntrack(self, *words):
        with self:
            return run("/usr/sbin/conntrack", *words)

    def forget_udp(self):
        """Translates the UDP that goes on from other ports, as after a time without packets. TCP keeps its own."""
        self.translate(f"masquerade to :{FIRST_RARE_PORT}-65535")
        self.conntrack("-D", "-p", "udp")

    def answered_udp(self):
        """Each translation that got an answer: the host behind the router, and the address and port outside."""
        found = re.findall(r"src=(\S+) dst=\S+ sport=\d+ dport=\d+ src=\S+ dst=(\S+) sport=\d+ dport=(\d+)",
                           self.conntrack("-L", "-p", "udp"))
        return [(inside, outside, int(port)) for inside, outside, port in found]


class OtherProgram:
    """A running program that is not connectlive."""

    def __init__(self, process):
        self.process = process

    def kill(self):
        self.process.kill()
        self.process.wait()


class Program:
    """A running connectlive, with what it says: lines on standard output, and standard error as on a terminal, where its
    status is there twice a second."""

    def __init__(self, host, arguments, environment):
        self.name = f"{arguments[0]} on {host.name}"
        ours, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 500, 0, 0))
        variables = {key: value for key, value in host.network.environment.items() if not key.startswith("CONNECTLIVE")}
        for key in ("DISPLAY", "WAYLAND_DISPLAY"):
            variables.pop(key, None)
        variables |= {"XDG_RUNTIME_DIR": host.folder} | environment
        with host:
            self.process = subprocess.Popen(
                [*AS_A_USER, host.network.environment["CONNECTLIVE"], *arguments],
                cwd=host.folder, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=terminal,
                start_new_session=True)
        os.close(terminal)
        self.said = []  # (when, line)
        self.reader = threading.Thread(target=self.read, args=(ours,), daemon=True)
        self.reader.start()

    def read(self, terminal):
        rest = {self.process.stdout.fileno(): b"", terminal: b""}
        while rest:
            for source in select.select(list(rest), [], [])[0]:
                try:
                    data = os.read(source, 65536)
                except OSError:  # how a terminal says that everybody has closed it
                    data = b""
                *lines, rest[source] = re.split(rb"[\r\n]+", rest[source] + data) if data else [rest[source], b""]
                if not data:
                    del rest[source]
                for line in lines:
                    if text := line.decode(errors="replace").replace("\x1b[K", "").strip():
                        self.said.append((time.monotonic(), text))
        os.close(terminal)

    def line(self, text, since=0):
        """The first line that holds the text, said since then."""
        return next((line for when, line in list(self.said) if when >= since and text in line), None)

    def wait_for_line(self, text, seconds=20):
        wait_for(lambda: self.line(text) or self.process.poll() is not None, seconds,
                 lambda: f"'{text}' from {self.name}; it said: {self.tail()}")
        line = self.line(text)
        expect(line, f"{self.name} ended with {self.process.returncode} before it said '{text}': {self.tail()}")
        return line

    def frame_rate(self, since):
        """The newest frames/s of a viewer's status said since then."""
        for when, line in reversed(list(self.said)):
            if when < since:
                break
            if found := re.search(r"([\d.]+) frames/s", line):
                return float(found[1])
        return 0.0

    def wait_for_pictures(self, rate, seconds=20):
        begun = time.monotonic()
        wait_for(lambda: self.process.poll() is not None or self.frame_rate(begun) >= rate, seconds,
                 lambda: f"{rate} frames/s at {self.name}; it said: {self.tail()}")
        self.expect_running()

    def expect_running(self):
        expect(self.process.poll() is None, f"{self.name} ended with {self.process.returncode}: {self.tail()}")

    def signal(self, number):
        self.process.send_signal(number)

    def end(self, seconds):
        """Waits for the end; returns the exit code, and how long it took."""
        begun = time.monotonic()
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Broken(f"{self.name} still ran after {seconds} s; it said: {self.tail()}") from None
        self.reader.join(2)
        return code, time.monotonic() - begun

    def interrupt(self):
        """Ctrl-C; it leaves at once and with 0."""
        self.signal(signal.SIGINT)
        code, _ = self.end(10)
        expect(code == 0, f"{self.name} exited with {code} at Ctrl-C: {self.tail()}")

    def sentences(self):
        """The failures that it told, besides that the host has no loudspeaker."""
        return [line for _, line in list(self.said)
                if line.startswith("connectlive: ") and not line.endswith("[speaker.absent]")]

    def expect_failure(self, code, seconds):
        """It ends with 1 and one sentence with the code, within the seconds; returns how long it took."""
        status, took = self.end(seconds)
        said = self.sentences()
        expect(status == 1, f"{self.name} exited with {status}, not 1: {self.tail()}")
        expect(len(said) == 1 and said[0].endswith(f"[{code}]"), f"{self.name} told no single sentence [{code}]: {said}")
        return took

    def tail(self):
        return " / ".join(line for _, line in list(self.said)[-6:]) or "nothing"

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.reader.join(2)
