#!/usr/bin/python3
"""What connectlive does between machines: a server, who publishes and who watches, each in a network namespace.

    behaviours.py --connectlive .build/debug/connectlive [--list] [BEHAVIOUR ...]

Runs those named, else all; prints a line for each and exits 0 if all are as they should be. Needs Debian's iproute2,
nftables and conntrack, and root or a kernel that lets users make namespaces of their own. When this program ends, however it
does, so does everything that it started, and the networks go with it."""
import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import layers
import translation
from calls import (KEY, NOTICED, PATTERN, RATE, SECRET, SILENCE, expect_nobody_left, publish, read_report,
                   rendered_videos, serve, start_call, three_hosts, turn_server, view, watcher)
from hosts import Broken, Network, expect, wait_for
from room import PORT, Participant, is_reachable, request

CUT = 5.0


def a_server_on_all_addresses_is_used_from_other_machines(network):
    server, publisher, viewer = three_hosts(network)
    program = serve(server, "--listen", f"0.0.0.0:{PORT}")
    own = watcher(server, "127.0.0.1").offered_addresses()
    expect(own >= {server.address, "127.0.0.1"}, f"on its machine, the server gives the candidates {own}")
    given = watcher(viewer, server.address).offered_addresses()
    expect(given == own - {"127.0.0.1"}, f"to another machine, the server gives the candidates {given}")
    before = viewer.bytes_received()
    publishing, viewing = publish(publisher, server), view(viewer, server)
    viewing.wait_for_pictures(RATE * 0.8)
    # Media crosses the wire instead of a loopback: signalling alone is about 20 kB.
    wait_for(lambda: viewer.bytes_received() - before > 100_000, 20, "100 kB on the cable to the viewer")
    viewing.interrupt()
    report, crossed = read_report(viewer), viewer.bytes_received() - before
    expect(report["framesRendered"] > RATE, f"{report['framesRendered']} frames were rendered")
    expect(report["latencyMethod"] == "abs-capture-time", f"latency was measured by {report['latencyMethod']}")
    publishing.interrupt()
    program.interrupt()
    return f"candidates {sorted(given)}, {report['framesRendered']} frames, {crossed} bytes to the viewer's machine"


def a_network_with_ipv6_alone_carries_a_room(network):
    server, publisher, viewer = three_hosts(network)
    address, _, _ = [host.use_ipv6_alone() for host in (server, publisher, viewer)]
    program = serve(server, "--listen", f"[::]:{PORT}")
    wait_for(
        lambda: program.line(f"--server ws://[{address}]:{PORT}"), 20, lambda: f"the server's address, not {program.tail()}")
    key = KEY | {"CONNECTLIVE_SERVER": f"ws://[{address}]:{PORT}"}
    publishing = publisher.start("publish", *PATTERN, **key)
    viewing = viewer.start("view", "--room", "r", "--no-window", "--report", "report.json", **key)
    viewing.wait_for_pictures(RATE * 0.8)
    # On its own machine, over IPv4 and IPv6 loopback.
    for own in ("127.0.0.1", "[::1]"):
        near = server.start("view", "--room", "r", "--no-window", **KEY | {"CONNECTLIVE_SERVER": f"ws://{own}:{PORT}"})
        near.wait_for_pictures(RATE * 0.8)
        near.interrupt()
    viewing.interrupt()
    report = read_report(viewer)
    expect(report["framesRendered"] > RATE, f"{report['framesRendered']} frames were rendered")
    publishing.interrupt()
    program.interrupt()
    return f"{report['framesRendered']} frames"


def where_udp_is_blocked_media_goes_through_turn_over_tcp(network):
    server, publisher, viewer = three_hosts(network)
    turn = turn_server(server)
    place = f"{server.address}:3478"
    serve(server, "--listen", f"0.0.0.0:{PORT}", "--turn", f"turn:{place}?transport=udp", "--turn",
          f"turn:{place}?transport=tcp", CONNECTLIVE_TURN_SECRET=SECRET)
    server.block_udp_from(publisher)
    publishing, viewing = publish(publisher, server), view(viewer, server)
    publishing.wait_for_line(f"via TURN over TCP at {place}", 30)
    viewing.wait_for_pictures(RATE * 0.6)
    viewing.interrupt()
    report = read_report(viewer)
    expect(report["path"] == "directly over UDP", f"the viewer's media went {report['path']}")
    publishing.interrupt()
    turn.kill()
    return f"{report['framesRendered']} frames of the publisher over TCP"


def a_call_whose_udp_is_blocked_goes_on_through_turn(network):
    server, publisher, viewer = three_hosts(network)
    relay = network.host("turn")
    turn_server(relay)
    place = f"{relay.address}:3478"
    serve(server, "--listen", f"0.0.0.0:{PORT}", "--turn", f"turn:{place}?transport=udp", CONNECTLIVE_TURN_SECRET=SECRET)
    publishing, viewing = publish(publisher, server), view(viewer, server)
    viewing.wait_for_pictures(RATE * 0.8)
    begun = time.monotonic()
    # Media of the server still arrives at the viewer, whose reports do not reach the server.
    server.block_udp_from(publisher, viewer)
    line = publishing.wait_for_line("Media flows again after ")
    expect(line.endswith(f"via TURN over UDP at {place}."), f"the publisher said: {line}")
    wait_for(lambda: viewing.line(f"via TURN over UDP at {place}", begun), 20, lambda: f"another way, not {viewing.tail()}")
    took = time.monotonic() - begun
    viewing.wait_for_pictures(RATE * 0.8)
    viewing.interrupt()
    publishing.interrupt()
    return f"the viewer's media went through TURN {took:.1f} s after the beginning: {line}"


def without_udp_and_turn_a_sentence_says_what_to_do(network):
    server, publisher, _ = three_hosts(network)
    serve(server, "--listen", f"0.0.0.0:{PORT}")
    server.block_udp_from(publisher)
    publishing = publish(publisher, server)
    took = publishing.expect_failure(1411, 20)
    sentence = publishing.sentences()[0]
    expect("TURN" in sentence, f"the sentence does not name a way out: {sentence}")
    return f"after {took:.1f} s: {sentence}"


def a_server_on_one_address_gives_that_address_alone(network):
    server, viewer = network.host("server"), network.host("viewer")
    server.add_address("10.77.1.1")
    program = serve(server, "--listen", f"{server.address}:{PORT}")
    program.wait_for_line("Browsers cannot join. Start with --open to let them in.")
    given = watcher(viewer, server.address).offered_addresses()
    expect(given == {server.address}, f"told to listen on {server.address}, the server gives the candidates {given}")
    expect(not is_reachable(server, "127.0.0.1"), "it listens on 127.0.0.1 too")
    return f"candidates {sorted(given)}"


def a_server_on_loopback_stays_on_its_machine(network):
    server, viewer = network.host("server"), network.host("viewer")
    serve(server)
    given = watcher(server, "127.0.0.1").offered_addresses()
    expect(given == {"127.0.0.1"}, f"the server gives the candidates {given}")
    viewing = view(viewer, server)
    took = viewing.expect_failure(1305, NOTICED)
    sentence = viewing.sentences()[0]
    expect(f"{server.address}:{PORT}" in sentence, f"the sentence does not name the server: {sentence}")
    # A missing machine does not even refuse.
    network.set_switch(False)
    took_unanswered = view(viewer, server).expect_failure(1305, NOTICED)
    return f"refused after {took:.1f} s, unanswered after {took_unanswered:.1f} s"


def page_token(host, address, **headers):
    status, text = request(host, address, "GET", "/v1/page-token?room=r", headers=headers)
    return status, json.loads(text)


def a_page_elsewhere_has_a_token_only_of_an_open_server(network):
    server, browser = network.host("server"), network.host("browser")
    page = f"http://{server.address}:{PORT}"
    closed = serve(server, "--listen", f"0.0.0.0:{PORT}")
    expect("html" in request(browser, server.address, "GET", "/?room=r")[1], "the page itself is not served")
    # A program elsewhere is not on the server's machine, whatever it claims.
    for headers in ({}, {"Origin": page}, {"Host": f"127.0.0.1:{PORT}"}, {"Host": "localhost"}):
        status, body = page_token(browser, server.address, **headers)
        expect((status, body.get("code")) == (403, "-11004"), f"with {headers} the answer is {status} {body}")
        expect("--open" in body["message"], f"the refusal does not name --open: {body}")
    expect(page_token(server, "127.0.0.1")[0] == 200, "the page has no token on the server's own machine")
    closed.interrupt()
    serve(server, "--listen", f"0.0.0.0:{PORT}", "--open")
    status, body = page_token(browser, server.address, Origin=page)
    expect(status == 200, f"an open server answered {status} {body}")
    status, _ = page_token(browser, server.address, Origin="http://elsewhere.example")
    expect(status == 403, f"a page of another origin was answered {status}")
    expect(Participant(browser, server.address, body["accessToken"], "r").joined["type"] == "joined", "it does not open")
    other = Participant(browser, server.address, body["accessToken"], "other").joined
    expect(other.get("code") == "-11004", f"the token for one room opens another: {other}")
    return f"403 without --open, 200 with it, for {body['expiresIn']} s and one room"


def a_cut_of_five_seconds_is_survived(network):
    server, publisher, viewer = three_hosts(network)
    latecomer = network.host("latecomer")
    for host in (server, publisher, viewer):
        # The worst case for TCP: it may retry just before the cut ends, and then only 8 s after its beginning.
        host.set_distance(50)
    serve(server, "--listen", f"0.0.0.0:{PORT}")
    seen, publishing, viewing = start_call(server, publisher, viewer)
    network.set_switch(False)
    begun = time.monotonic()
    wait_for(lambda: time.monotonic() - begun >= CUT, CUT + 1, "the end of the cut")
    network.set_switch(True)
    viewing.wait_for_pictures(RATE * 0.8)
    pictures = time.monotonic() - begun - CUT
    # Signalling continues too: the viewer gets the message about another video, subscribes and shows it.
    publish(latecomer, server)
    for program in (publishing, viewing):
        program.expect_running()
    viewing.wait_for_line("and 1 more")
    signalling = time.monotonic() - begun - CUT
    publishing.expect_running()
    expect_nobody_left(seen)
    publishing.interrupt()
    # The status shows the other video now.
    viewing.wait_for_pictures(RATE * 0.8)
    viewing.interrupt()
    videos = rendered_videos(viewer)
    expect(len(videos) == 2 and videos[1]["framesRendered"] > 0, f"these videos were rendered: {videos}")
    gap = videos[0]["longestGapMs"] / 1000
    expect(CUT - 0.5 <= gap <= CUT + 4, f"the video froze for {gap:.1f} s at a cut of {CUT} s")
    return (f"the video froze for {gap:.2f} s; at full rate {pictures:.1f} s and another video "
            f"{signalling:.1f} s after the cut")


def a_process_that_is_stopped_for_five_seconds_goes_on(network):
    server, publisher, viewer = three_hosts(network)
    serving = serve(server, "--listen", f"0.0.0.0:{PORT}")
    seen, publishing, viewing = start_call(server, publisher, viewer)
    programs = [serving, publishing, viewing]
    for program in programs:
        program.signal(signal.SIGSTOP)
        begun = time.monotonic()
        wait_for(lambda: time.monotonic() - begun >= CUT, CUT + 1, "the end of the pause")
        program.signal(signal.SIGCONT)
        viewing.wait_for_pictures(RATE * 0.8)
        for other in programs:
            other.expect_running()
    expect_nobody_left(seen)
    return "the server, the publisher and the viewer each went on"


def a_longer_cut_is_survived(network):
    server, publisher, viewer = three_hosts(network)
    serve(server, "--listen", f"0.0.0.0:{PORT}")
    seen, publishing, viewing = start_call(server, publisher, viewer)
    server.set_cable(False)
    begun = time.monotonic()
    for program in (publishing, viewing):
        program.wait_for_line("The connection to the server is lost; trying again", NOTICED + 4)
    noticed = time.monotonic() - begun
    server.set_cable(True)
    for program in (publishing, viewing):
        # One that joined again would say "Back in the room".
        program.wait_for_line("The server is back after ", 15)
    back = time.monotonic() - begun - noticed
    viewing.wait_for_pictures(RATE * 0.8)
    expect_nobody_left(seen)
    return f"noticed after {noticed:.1f} s, back {back:.1f} s after the cut"


def an_address_that_changes_is_survived(network):
    server, publisher, viewer = three_hosts(network)
    serve(server, "--listen", f"0.0.0.0:{PORT}")
    seen, publishing, viewing = start_call(server, publisher, viewer)
    begun = time.monotonic()
    publisher.change_address(publisher.address.rsplit(".", 1)[0] + ".77")
    viewer.change_address(viewer.address.rsplit(".", 1)[0] + ".78")
    for program in (publishing, viewing):
        program.wait_for_line("The server is back after ", 30)
    back = time.monotonic() - begun
    # Without the kernel's notice of the change, silence alone would tell.
    expect(back < SILENCE, f"both were back {back:.1f} s after their addresses had changed")
    viewing.wait_for_pictures(RATE * 0.8, 30)
    pictures = time.monotonic() - begun
    expect_nobody_left(seen)
    publishing.interrupt()
    viewing.interrupt()
    videos = rendered_videos(viewer)
    expect(len(videos) == 1, f"these were rendered: {videos}")
    return f"back after {back:.1f} s, pictures after {pictures:.1f} s"


def a_lasting_publisher_returns_after_a_longer_cut(network):
    server, publisher, viewer = three_hosts(network)
    serve(server, "--listen", f"0.0.0.0:{PORT}", "--resume-seconds", "1")
    seen, publishing, viewing = start_call(server, publisher, viewer, "--forever")
    who = seen.publishers()[0]
    publisher.set_cable(False)
    begun = time.monotonic()
    # The cut lasts until both ends have given the connection up.
    seen.wait_for_leaving(who, begun, NOTICED)
    publishing.wait_for_line("The connection to the server is lost; trying again")
    lasted = time.monotonic() - begun
    publisher.set_cable(True)
    # An attempt that began during the cut ends first, and then its pause.
    seen.wait_for_publisher(1, 40)
    returned = time.monotonic() - begun - lasted
    viewing.wait_for_pictures(RATE * 0.8)
    publishing.wait_for_line("as another participant: p-")
    publishing.interrupt()
    viewing.interrupt()
    videos = rendered_videos(viewer)
    expect(len(videos) == 2 and all(video["framesRendered"] > 0 for video in videos), f"these were rendered: {videos}")
    return f"published again {returned:.1f} s after a cut of {lasted:.1f} s"


def a_participant_that_dies_or_falls_silent_is_gone_within_ten_seconds(network):
    server = network.host("server")
    serve(server, "--listen", f"0.0.0.0:{PORT}", "--resume-seconds", "0")
    seen = watcher(server, "127.0.0.1")
    victims = []
    for number, name in enumerate(("killed", "stopped", "unplugged")):
        host = network.host(name)
        program = publish(host, server)
        victims.append((host, program, seen.wait_for_publisher(number)))
    (_, killed, killed_id), (_, stopped, stopped_id), (unplugged, _, unplugged_id) = victims
    begun = time.monotonic()
    killed.signal(signal.SIGKILL)
    stopped.signal(signal.SIGSTOP)
    unplugged.set_cable(False)
    took = [seen.wait_for_leaving(killed_id, begun, 2)]
    took += [seen.wait_for_leaving(name, begun, NOTICED) for name in (stopped_id, unplugged_id)]
    return "gone after {:.1f} s (killed), {:.1f} s (stopped), {:.1f} s (unplugged)".format(*took)


def the_demo_names_each_address_a_browser_elsewhere_can_open(network):
    server, browser = network.host("server"), network.host("browser")
    server.add_address("10.77.1.1")
    demo = server.start("demo", "--listen", "0.0.0.0:7900", "--no-window")
    wait_for(lambda: demo.line("camera") or demo.process.poll() is not None, 20, lambda: f"pages, not {demo.tail()}")
    said = [line for _, line in demo.said]
    for address in (server.address, "10.77.1.1"):
        expect(any(f"on another machine: http://{address}:7900/?room=demo&join=1" in line for line in said), f"it said {said}")
    expect(any("127.0.0.1:7900" in line and "on this machine" in line for line in said), f"it named no page for here: {said}")
    expect(demo.line("cannot use a camera or microphone"), f"it did not print the limits of browsers there: {said}")
    status, _ = request(browser, server.address, "GET", "/?room=demo&join=1", port=7900)
    expect(status == 200, f"the page that it named is answered {status}")
    status, text = request(browser, server.address, "GET", "/v1/page-token?room=demo", port=7900)
    expect(status == 200, f"the page that it named has no token: {status} {text}")
    demo.wait_for_line("Publishing")
    demo.interrupt()
    return "two addresses named, and open"


BEHAVIOURS = [
    a_server_on_all_addresses_is_used_from_other_machines,
    a_network_with_ipv6_alone_carries_a_room,
    where_udp_is_blocked_media_goes_through_turn_over_tcp,
    a_call_whose_udp_is_blocked_goes_on_through_turn,
    without_udp_and_turn_a_sentence_says_what_to_do,
    *translation.BEHAVIOURS,
    *layers.BEHAVIOURS,
    a_server_on_one_address_gives_that_address_alone,
    a_server_on_loopback_stays_on_its_machine,
    a_page_elsewhere_has_a_token_only_of_an_open_server,
    a_cut_of_five_seconds_is_survived,
    a_process_that_is_stopped_for_five_seconds_goes_on,
    a_longer_cut_is_survived,
    an_address_that_changes_is_survived,
    a_lasting_publisher_returns_after_a_longer_cut,
    a_participant_that_dies_or_falls_silent_is_gone_within_ten_seconds,
    the_demo_names_each_address_a_browser_elsewhere_can_open,
]


def in_namespaces():
    """The command that begins in a network of its own: as root plainly, else in a user namespace where one is root."""
    command = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--net"]
    done = subprocess.run([*command, "true"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"No network namespace can be made ({done.stderr.strip()}): run as root, or let users make namespaces.")
    return command


def run(behaviour, folder):
    begun, network = time.monotonic(), None
    try:
        network = Network(folder, dict(os.environ))
        outcome = behaviour(network)
        print(f"passed  {behaviour.__name__} ({time.monotonic() - begun:.1f} s): {outcome}", flush=True)
        return True
    except Broken as broken:
        print(f"FAILED  {behaviour.__name__} ({time.monotonic() - begun:.1f} s): {broken}", flush=True)
    except Exception:  # a fault of the test itself, or of the machine
        print(f"FAILED  {behaviour.__name__}: {traceback.format_exc()}", flush=True)
    finally:
        if network:
            network.close()
    return False


def main():
    names = {behaviour.__name__: behaviour for behaviour in BEHAVIOURS}
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--connectlive", help="the binary")
    parser.add_argument("--folder", help="where programs write; else a temporary one")
    parser.add_argument("--list", action="store_true", help="name the behaviours")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("behaviours", nargs="*", metavar="BEHAVIOUR")
    options = parser.parse_args()
    if options.list:
        return print("\n".join(names))
    if unknown := set(options.behaviours) - set(names):
        parser.error(f"no such behaviour: {', '.join(sorted(unknown))}")
    if not options.connectlive or not os.access(options.connectlive, os.X_OK):
        parser.error("name the binary with --connectlive")
    if not options.inside:
        command = in_namespaces()
        # Replaces this process, so that a signal to it ends the program.
        os.execvp(command[0], [*command, sys.executable, os.path.abspath(__file__), "--inside", *sys.argv[1:]])
    os.environ["CONNECTLIVE"] = os.path.abspath(options.connectlive)
    with contextlib.nullcontext(options.folder) if options.folder else tempfile.TemporaryDirectory() as folder:
        results = [run(names[name], os.path.join(folder, name)) for name in options.behaviours or names]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
