"""Room servers to measure: ours, and Debian's Janus with a configuration for this purpose."""
import contextlib
import os
import subprocess
import tempfile
import time

from figures import Failure
from joined_namespaces import JoinedNamespaces

SERVER_CORE, LOAD_CORE = 0, 1
# The best configuration of Janus 1.1.2 for one core. By default each subscriber has a thread.
BEST = "event_loops = 2"
MANY_PARTICIPANTS = ("--participants", "4000")
JANUS_PORT = 8188

# Only the WebSocket interface and the VideoRoom plugin. Sessions do not expire, so that clients send no keepalives.
JANUS = """general: {{
    configs_folder = "{folder}"
    plugins_folder = "{libraries}/plugins"
    transports_folder = "{libraries}/transports"
    events_folder = "{libraries}/events"
    loggers_folder = "{libraries}/loggers"
    interface = "{address}"
    debug_level = 1
    session_timeout = 0
    {general}
}}
media: {{ rtp_port_range = "20000-40000" }}
nat: {{ {nat} }}
plugins: {{ disable = "{plugins}" }}
transports: {{ disable = "{transports}" }}
"""
WEB_SOCKETS = 'general: {{ json = "compact" ws = true ws_ip = "{address}" ws_port = {port} wss = false }}\n'


class OurServer:
    """`benchmarks serve`, stopped by the end of its input."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.access = self.process.stdout.readline().strip()
        if not self.access:
            raise Failure("Our server ended before it was up.")

    def load_options(self):
        return ["--ours", self.access]

    def stop(self):
        self.process.stdin.close()
        finish(self.process)


class Janus:
    """Debian's Janus. `general` and `nat` are lines of its configuration."""

    def __init__(self, inside, address, general="", nat=""):
        self.address = address
        self.folder = tempfile.TemporaryDirectory(prefix="janus-")
        libraries = janus_libraries()
        with open(os.path.join(self.folder.name, "janus.jcfg"), "w") as file:
            file.write(
                JANUS.format(
                    folder=self.folder.name, libraries=libraries, address=address, general=general, nat=nat,
                    plugins=others(libraries, "plugins", "videoroom"),
                    transports=others(libraries, "transports", "websockets")))
        with open(os.path.join(self.folder.name, "janus.transport.websockets.jcfg"), "w") as file:
            file.write(WEB_SOCKETS.format(address=address, port=JANUS_PORT))
        self.log = open(os.path.join(self.folder.name, "log"), "w+")
        command = inside("janus", "--configs-folder", self.folder.name, "--config", file_of(self.folder, "janus.jcfg"))
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT, text=True)
        if not self._is_up(inside):
            self.log.seek(0)
            text = self.log.read()[-400:]
            self.stop()
            raise Failure(f"Janus did not start: {text}")

    def _is_up(self, inside):
        program = f"import socket; socket.create_connection(('{self.address}', {JANUS_PORT}), 1)"
        for _ in range(50):
            if self.process.poll() is not None:
                return False
            if subprocess.run(inside("python3", "-c", program), stderr=subprocess.DEVNULL).returncode == 0:
                return True
            time.sleep(0.1)
        return False

    def load_options(self):
        return ["--janus", f"{self.address}:{JANUS_PORT}"]

    def stop(self):
        self.process.terminate()
        finish(self.process)
        self.log.close()
        self.folder.cleanup()


@contextlib.contextmanager
def serving(kind, program, options=MANY_PARTICIPANTS):
    """Runs a server alone on its core. Gives the server and the namespaces, for a load on the other core.

    `program` is the path of ours, or a command that runs it, and has the options."""
    with JoinedNamespaces(load_core=LOAD_CORE) as joined:
        def inside(*command):
            return joined.inside(joined.server, *command, core=SERVER_CORE)

        if kind == "ours":
            command = [program] if isinstance(program, str) else program
            server = OurServer(inside(*command, "serve", "--host", joined.server_address, *options))
        else:
            server = Janus(inside, joined.server_address, general=BEST if kind == "best" else "")
        try:
            yield server, joined
        finally:
            server.stop()


def finish(process):
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def file_of(folder, name):
    return os.path.join(folder.name, name)


def janus_version():
    """Of the Debian package."""
    query = ["dpkg-query", "--show", "--showformat=${db:Status-Status} ${Version}", "janus"]
    status, _, version = subprocess.run(query, capture_output=True, text=True).stdout.partition(" ")
    if status != "installed":
        raise Failure("This benchmark needs Debian's janus: apt-get install --no-install-recommends janus.")
    return version


def janus_libraries():
    listed = subprocess.run(["dpkg", "--listfiles", "janus"], capture_output=True, text=True).stdout.splitlines()
    return next(line for line in listed if line.endswith("/janus") and "/lib/" in line)


def others(libraries, kind, used):
    """The libraries of Janus of one kind, without the one that is used."""
    names = sorted(name for name in os.listdir(os.path.join(libraries, kind)) if name.endswith(".so"))
    return ",".join(name for name in names if used not in name)
