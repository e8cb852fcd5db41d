"""Two network namespaces joined by a cable: a server in one, its load in the other. Needs root."""
import os
import shutil
import subprocess
import time

from figures import Failure


def check_machine():
    """Fails where namespaces cannot be made, or a server and its load cannot have a core each."""
    if os.geteuid() != 0 or os.cpu_count() < 2 or shutil.which("ip") is None:
        raise Failure("This benchmark needs root, two cores, and ip.")


class JoinedNamespaces:
    """With each end's name and address. The kernel delivers datagrams to the load on the load's core, as a network card
    would on another machine."""

    def __init__(self, load_core=None):
        self.server, self.load = (f"room-{end}-{os.getpid()}" for end in ("server", "load"))
        self.server_address, self.load_address = "10.201.7.1", "10.201.7.2"
        # More addresses of the load. ICE does not offer them, as they are on its loopback device.
        self.client_addresses = [f"10.201.8.{number}" for number in range(1, 5)]
        self.load_core = load_core

    def __enter__(self):
        try:
            for name in (self.server, self.load):
                self._ip("netns", "add", name)
            self._ip("link", "add", "cable", "netns", self.server, "type", "veth", "peer", "cable", "netns", self.load)
            for name, address in ((self.server, self.server_address), (self.load, self.load_address)):
                self._ip("-n", name, "address", "add", f"{address}/24", "dev", "cable")
                self._ip("-n", name, "link", "set", "cable", "up")
                self._ip("-n", name, "link", "set", "lo", "up")
            for address in self.client_addresses:
                self._ip("-n", self.load, "address", "add", f"{address}/32", "dev", "lo")
            self._ip("-n", self.server, "route", "add", "10.201.8.0/24", "via", self.load_address)
            if self.load_core is not None:
                mask = f"echo {1 << self.load_core:x} > /sys/class/net/cable/queues/rx-0/rps_cpus"
                subprocess.run(self.inside(self.load, "sh", "-c", mask), check=True)
            for name in (self.server, self.load):
                self._await_carrier(name)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in (self.server, self.load):
            subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL)

    def inside(self, name, *command, core=None):
        """The command as it runs in a namespace, on one core if given. Keeps its process id."""
        pinned = ["taskset", "--cpu-list", str(core)] if core is not None else []
        return ["ip", "netns", "exec", name, *pinned, *command]

    def _await_carrier(self, name):
        command = self.inside(name, "cat", "/sys/class/net/cable/operstate")
        for _ in range(100):
            if subprocess.run(command, capture_output=True, text=True).stdout.strip() == "up":
                return
            time.sleep(0.1)
        raise RuntimeError("The link between the network namespaces did not come up.")

    @staticmethod
    def _ip(*arguments):
        subprocess.run(["ip", *arguments], check=True)
