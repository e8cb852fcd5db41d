"""What a page of a room shows, sends and receives, against the options of chromium.py."""
import time

from observation import Observation


def age(capture):
    """How long ago, in ms, the newest frame of a stream was captured: NTP counts from 1900, the browser from 1970."""
    return capture["now"] - (capture["time"] - 2_208_988_800_000)


def missing(options, seen, result):
    """One sentence about an unmet expectation, or None."""
    if options.expect_problem:
        said = result["problem"] == options.expect_problem and bool(result["words"])
        got = f"{result['problem']} {result['words']}"
        return None if said else f"Expected the problem {options.expect_problem}, got {got}."
    if "joined" not in seen.states:
        return f"The page did not join: it is {seen.states[-1:]} and says {result['words']}."
    if seen.states[-1] != "joined":
        return f"The call ended by itself: {result['words']} [{result['problem']}]."
    moving = [v for v in result["videos"] if v["frames"] >= 5 and v["distinctPictures"] >= 3]
    if len(moving) < options.expect_video_from_others:
        return f"Expected moving video of {options.expect_video_from_others}, saw {len(moving)}: {result['videos']}."
    heard = sum(rise > 1e-7 for rise in result["audio"]["energyRises"])
    if heard < options.expect_audio or options.expect_audio and result["audio"]["packets"] <= 10:
        return f"Expected {options.expect_audio} audio from others, heard {result['audio']}."
    sent = result["publishing"]
    if sent["framesSent"] < options.expect_publishing or options.expect_publishing and sent["audioPackets"] <= 10:
        return f"Expected our camera and microphone to be sent, but {sent}."
    if options.expect_redundancy and not (
            result["audio"]["copies"] >= options.expect_redundancy and sent["audioCodecs"] == ["audio/red"]):
        return f"Expected RED both ways, got {result['audio']} and sent {sent}."
    if options.expect_waiting and options.expect_waiting not in seen.waited:
        return f"Expected a tile to show '{options.expect_waiting}' for a while, saw {seen.waited}, {seen.waiting}."
    recent = [c for c in seen.last.get("captures", {}).values() if c["offset"] == 0 and 0 <= age(c) < 30_000]
    if len(recent) < options.expect_capture_times:
        return f"Expected capture times of {options.expect_capture_times}, got {seen.last.get('captures')}."
    ways = [session["candidate"] for session in result["sessions"]]
    if options.relay and not (ways and all(way == "relay" for way in ways)):
        return f"Expected sessions through a relay, found {ways}."
    relays = [session["relay"] for session in result["sessions"]]
    if options.expect_relay and not (relays and all(f":{options.expect_relay}?" in str(relay) for relay in relays)):
        return f"Expected sessions through TURN servers at port {options.expect_relay}, found {relays}."
    profiles = [str(session["srtp"]) for session in result["sessions"]]
    if options.expect_srtp and not (profiles and all(options.expect_srtp in profile for profile in profiles)):
        return f"Expected SRTP {options.expect_srtp}, found {profiles}."
    return None


def wait_for(browser, script, seconds):
    end = time.monotonic() + seconds
    while not browser.execute_script(script):
        if time.monotonic() >= end:
            return False
        time.sleep(0.1)
    return True


def observe(options, browser, opens=False):
    if opens:
        browser.get(options.page)
    seen = Observation()
    end = time.monotonic() + options.seconds
    while True:
        seen.look(browser)
        over = time.monotonic() >= end
        if over or options.until_expected or options.expect_problem:
            result = seen.result()
            sentence = missing(options, seen, result)
            if over or (sentence is None):
                break
        time.sleep(0.2)
    if options.screenshot:
        browser.save_screenshot(options.screenshot)
    result["console"] = [entry["message"][:300] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    return result, sentence
