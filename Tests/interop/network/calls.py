"""The programs of a call on hosts of a network, and what is expected of them."""
import json
import os

from hosts import expect, wait_for
from room import PORT, Participant, is_reachable, sign_in

SERVICE, SECRET = "service-of-the-test", "secret-of-the-test"
KEY = {"CONNECTLIVE_SERVICE_ID": SERVICE, "CONNECTLIVE_SERVICE_SECRET": SECRET}
# Small enough for a shared machine to keep up.
PATTERN = ("--room", "r", "--test-pattern", "--size", "320x240", "--fps", "15")
RATE = 15
# The time within which a silent participant or server is given up.
NOTICED = 10.0
# The least of it: before that, the other end may only be slow.
SILENCE = 9.0


def serve(host, *flags, **environment):
    server = host.start("serve", *flags, **KEY | environment)
    server.wait_for_line("Serving rooms at ws://")
    return server


def publish(host, server, *flags):
    """By flags, as `view` below does it by the environment."""
    return host.start("publish", *PATTERN, "--server", f"ws://{server.address}:{PORT}", "--service-id", SERVICE,
                      "--service-secret", SECRET, *flags)


def view(host, server, *flags):
    return host.start("view", "--room", "r", "--no-window", "--report", "report.json", *flags,
                      **KEY | {"CONNECTLIVE_SERVER": f"ws://{server.address}:{PORT}"})


def watcher(host, address):
    """Sees on the server's own host, where nothing is cut, what others would be told."""
    return Participant(host, address, sign_in(host, address, SERVICE, SECRET), "r")


def start_call(server, publisher, viewer, *flags):
    """A call in which pictures flow, and a watcher. The flags are for `publish`."""
    seen = watcher(server, "127.0.0.1")
    publishing = publish(publisher, server, *flags)
    seen.wait_for_publisher(0)
    viewing = view(viewer, server)
    viewing.wait_for_pictures(RATE * 0.8)
    return seen, publishing, viewing


def read_report(host):
    with open(os.path.join(host.folder, "report.json"), encoding="utf-8") as file:
        return json.load(file)


def rendered_videos(host):
    return [stream for stream in read_report(host)["streams"] if stream["media"] == "video"]


def three_hosts(network):
    return network.host("server"), network.host("publisher"), network.host("viewer")


def turn_server(host):
    """coturn at the address of a host, with `SECRET` for credentials that expire."""
    program = host.start_other("turnserver", "-n", "--listening-ip", host.address, "--relay-ip", host.address, "--no-cli",
                               "--no-tls", "--no-dtls", "--realm", "test", "--use-auth-secret",
                               "--static-auth-secret", SECRET, "--pidfile", os.path.join(host.folder, "pid"),
                               "--db", os.path.join(host.folder, "db"), "--log-file", os.path.join(host.folder, "log"))
    wait_for(lambda: is_reachable(host, host.address, 3478), 20, "turnserver")
    return program


def expect_nobody_left(seen):
    left = [message for _, message in seen.messages if message["type"] == "participantLeft"]
    expect(not left, f"the others saw {left}")
