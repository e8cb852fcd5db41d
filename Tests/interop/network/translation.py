"""Calls of hosts behind routers that translate addresses (NAT)."""
import time

from calls import (RATE, SILENCE, expect_nobody_left, publish, read_report, rendered_videos, serve, start_call,
                   turn_server, view, watcher)
from hosts import FIRST_RARE_PORT, PUBLIC, expect, wait_for
from room import PORT


def two_hosts_behind_a_nat(network):
    """A server on the Internet, a router, and a publisher and a viewer behind it."""
    network.prefix = PUBLIC
    server, router = network.host("server"), network.router("router")
    return server, router, network.host("publisher", behind=router), network.host("viewer", behind=router)


def a_publisher_and_a_viewer_behind_a_nat_have_a_call(network):
    server, router, publisher, viewer = two_hosts_behind_a_nat(network)
    turn_server(server)
    serve(server, "--listen", f"0.0.0.0:{PORT}", "--turn", f"stun:{server.address}:3478")
    publishing, viewing = publish(publisher, server), view(viewer, server)
    checking = viewer.start("doctor", "--quick", "--stun", server.address)
    viewing.wait_for_pictures(RATE * 0.8)
    viewing.interrupt()
    report = read_report(viewer)
    expect(report["path"] == "directly over UDP", f"the viewer's media went {report['path']}")
    publishing.interrupt()
    line = checking.wait_for_line("public address: ")
    expect(f"{router.address} by " in line and "NAT" in line, f"'doctor' said: {line}")
    return f"{report['framesRendered']} frames; {line}"


def a_server_behind_a_nat_is_reached_at_its_public_address(network):
    network.prefix = PUBLIC
    router, viewer = network.router("router"), network.host("viewer")
    server, publisher = network.host("server", behind=router), network.host("publisher", behind=router)
    router.forward(server, f"tcp dport {PORT}", f"udp dport {PORT}")
    program = serve(server, "--listen", f"0.0.0.0:{PORT}", "--public-address", router.address)
    program.wait_for_line(f"Media uses UDP port {PORT} of {router.address}, {server.address}.")
    given = watcher(viewer, router.address).offered_addresses()
    expect(router.address in given, f"to another machine, the server gives the candidates {given}")
    # The publisher is in the server's own network.
    publishing, viewing = publish(publisher, server), view(viewer, router)
    viewing.wait_for_pictures(RATE * 0.8)
    viewing.interrupt()
    publishing.interrupt()
    return f"candidates {sorted(given)}, {read_report(viewer)['framesRendered']} frames"


def a_server_that_checks_addresses_reaches_a_client_at_the_one_that_stun_tells(network):
    network.prefix = PUBLIC
    stun, site, router = network.host("stun"), network.router("site"), network.router("router")
    server, publisher = network.host("server", behind=site), network.host("publisher", behind=site)
    viewer = network.host("viewer", behind=router)
    turn_server(stun)
    # No UDP gets to the server unasked. The viewer's router passes on any.
    site.forward(server, f"tcp dport {PORT}")
    router.forward(viewer, "meta l4proto udp")
    serve(server, "--listen", f"0.0.0.0:{PORT}", "--ice", "full", "--turn", f"stun:{stun.address}:3478")
    publishing, viewing = publish(publisher, server), view(viewer, site)
    viewing.wait_for_pictures(RATE * 0.8)
    viewing.interrupt()
    publishing.interrupt()
    return f"{read_report(viewer)['framesRendered']} frames"


def call_behind_a_nat(network):
    """A call in which frames flow, and a watcher outside."""
    server, router, *hosts = two_hosts_behind_a_nat(network)
    serve(server, "--listen", f"0.0.0.0:{PORT}")
    return router, hosts, *start_call(server, *hosts)


def expect_pictures_by_other_translations(router, hosts, seen, viewing, is_other):
    """Both hosts get answers by others than the former translations. Returns the longest time without pictures."""
    def answered():
        return {host for host, *place in router.answered_udp() if is_other(*place)}

    wait_for(lambda: {host.address for host in hosts} <= answered(), 20,
             lambda: f"answers to other places than {router.answered_udp()}")
    viewing.wait_for_pictures(RATE * 0.8)
    expect_nobody_left(seen)
    viewing.interrupt()
    videos = rendered_videos(hosts[1])
    expect(len(videos) == 1, f"these were rendered: {videos}")
    gap = videos[0]["longestGapMs"] / 1000
    expect(gap < SILENCE, f"the video froze for {gap:.1f} s")
    return gap


def a_nat_that_translates_udp_to_other_ports_is_survived(network):
    router, hosts, seen, publishing, viewing = call_behind_a_nat(network)
    router.forget_udp()
    gap = expect_pictures_by_other_translations(
        router, hosts, seen, viewing, lambda _, port: port >= FIRST_RARE_PORT)
    for program in (publishing, viewing):
        expect(not program.line("The connection to the server is lost"), f"{program.name} said: {program.tail()}")
    publishing.interrupt()
    return f"the video froze for {gap:.1f} s"


def a_nat_that_gets_another_address_is_survived(network):
    router, hosts, seen, publishing, viewing = call_behind_a_nat(network)
    begun = time.monotonic()
    router.change_address(f"{PUBLIC}77")
    for program in (publishing, viewing):
        # One that joined again would say "Back in the room".
        program.wait_for_line("The server is back after ")
    back = time.monotonic() - begun
    gap = expect_pictures_by_other_translations(
        router, hosts, seen, viewing, lambda address, _: address == router.address)
    publishing.interrupt()
    return f"back after {back:.1f} s; the video froze for {gap:.1f} s"


BEHAVIOURS = [
    a_publisher_and_a_viewer_behind_a_nat_have_a_call,
    a_server_behind_a_nat_is_reached_at_its_public_address,
    a_server_that_checks_addresses_reaches_a_client_at_the_one_that_stun_tells,
    a_nat_that_translates_udp_to_other_ports_is_survived,
    a_nat_that_gets_another_address_is_survived,
]
