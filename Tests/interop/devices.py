"""A page whose camera and microphone are lost, muted, or refused by the browser or the server."""
from expectations import observe, wait_for
from returning import MUTE_SOCKET, has_returned


def allow(browser, setting, devices=("camera", "microphone")):
    """Sets the browser's answer, "granted" or "denied", to pages that ask for camera and microphone."""
    for name in devices:
        browser.execute_cdp_cmd("Browser.setPermission", {"permission": {"name": name}, "setting": setting})


# Ends the camera's track, as a lost device does.
LOSE_CAMERA = """
for (const sender of window.testPeers.flatMap((peer) => peer.getSenders()))
    if (sender.track?.kind === 'video') sender.track.dispatchEvent(new Event('ended'));
"""


# The page waits for the answers to its next requests for one second rather than eight, until the first of them is late.
HURRY = """
const { setTimeout } = window;
window.setTimeout = (action, time, ...more) => time !== 8000 ? setTimeout(action, time, ...more) : setTimeout(() => {
    Object.assign(window, { setTimeout });
    action();
}, 1000);
"""


def lose_camera(options, browser):
    """Loses the camera and turns it on again, with a late answer. One sentence about an unmet expectation, or None."""
    browser.execute_script(LOSE_CAMERA)
    if not wait_for(browser, "return document.body.dataset.publishing === 'audio'", 10):
        return "The page still publishes the camera that it lost."
    browser.execute_script(HURRY + MUTE_SOCKET + CLICK_CAMERA)
    if not wait_for(browser, "return document.body.dataset.publishing === 'audio video'", 20):
        return "The page did not publish the camera again."
    if not has_returned(browser, 1):
        return "The page did not come back when an answer was late."
    return observe(options, browser)[1]


# The server refuses each publication from now on: it names no stream. The page is told the code that is given, and the pause before
# its next attempt lasts until CONTINUE.
REFUSE = """
const [code] = arguments, socket = window.testSockets.at(-1), { onmessage } = socket, refused = new Set(), { setTimeout } = window;
socket.send = function(text) {
    const message = JSON.parse(text);
    if (message.type === 'publish') {
        message.streams = [];
        refused.add(message.id);
    }
    WebSocket.prototype.send.call(this, JSON.stringify(message));
};
socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    onmessage({ data: refused.has(message.id) ? JSON.stringify({ ...message, code }) : data });
};
window.testPauses = [];
window.setTimeout = (action, time, ...more) =>
    time === 1000 ? window.testPauses.push(action) : setTimeout(action, time, ...more);
window.testAccept = () => {
    delete socket.send;
    Object.assign(socket, { onmessage });
    Object.assign(window, { setTimeout });
};
"""
ACCEPT = "window.testAccept();"
CONTINUE = """
window.testLate = [];
window.testSockets.at(-1).send = function(text) {
    if (JSON.parse(text).type === 'publish') window.testLate.push(text);
    WebSocket.prototype.send.call(this, text);
};
for (const action of window.testPauses) action();
"""
# The server no longer knows the page, which has not left by itself.
EXPEL = "window.testSockets.at(-1).send(JSON.stringify({ type: 'leave', id: 1_000_000 }));"
CLICK_CAMERA = "document.querySelector('#camera').click();"
SENDS_MICROPHONE = """
return window.testPeers.some((peer) => peer.connectionState === 'connected'
    && peer.getSenders().some(({ track }) => track?.kind === 'audio' && track.readyState === 'live'));
"""


# Loses the camera and then, before the server hears of that, the participation.
LOSE_CAMERA_AND_ROOM = MUTE_SOCKET + LOSE_CAMERA + """
WebSocket.prototype.send.call(window.testSockets.at(-1), JSON.stringify({ type: 'leave', id: 1_000_001 }));
"""


def be_refused(options, browser):
    """One sentence about an unmet expectation, or None."""
    if not wait_for(browser, f"return document.body.dataset.publishing === 'audio' && (() => {{{SENDS_MICROPHONE}}})()", 20):
        return "The page does not publish its microphone without the camera."
    allow(browser, "granted")
    participant = browser.execute_script("return document.body.dataset.participant")
    browser.execute_script(REFUSE, "1441")
    browser.execute_script(CLICK_CAMERA)
    if not wait_for(browser, "return document.body.dataset.problem === '1441'", 20):
        return "The page does not tell that its camera was refused."
    if not browser.execute_script(SENDS_MICROPHONE):
        return "The page lost its microphone when its camera was refused."
    browser.execute_script(ACCEPT + CLICK_CAMERA)
    options.expect_publishing = 30
    result, sentence = observe(options, browser)
    if sentence is not None:
        return f"After a refused camera: {sentence}"
    if result["participant"] != participant:
        return "The page became another participant when its camera was refused."
    return rejoin(options, browser)


def rejoin(options, browser):
    """Joins again while the camera's publication waits for its next attempt, which is after that, and while its end is announced."""
    browser.execute_script(LOSE_CAMERA)
    if not wait_for(browser, "return document.body.dataset.publishing === 'audio'", 10):
        return "The page still publishes the camera that it lost."
    browser.execute_script(REFUSE, "server.too-many-requests")
    browser.execute_script(CLICK_CAMERA)
    if not wait_for(browser, "return window.testPauses.length > 0", 20):
        return "The page does not wait before it publishes its camera again."
    browser.execute_script(ACCEPT + EXPEL)
    if not has_returned(browser, 1):
        return "The page did not join again."
    result, sentence = observe(options, browser)
    if sentence is not None:
        return f"After the page joined again: {sentence}"
    browser.execute_script(CONTINUE)
    options.expect_publishing += result["publishing"]["framesSent"]
    sentence = observe(options, browser)[1]
    if sentence is None and browser.execute_script("return window.testLate.length") > 0:
        sentence = "The page repeated a publication of its former participant."
    if sentence is not None:
        return sentence
    browser.execute_script(LOSE_CAMERA_AND_ROOM)
    if not has_returned(browser, 2):
        return "The page did not join again after it lost its camera."
    problem = browser.execute_script("return document.body.dataset.problem")
    return None if problem == "device.lost" else f"The page that lost its camera and joined again tells {problem}."


# What a page says about the only participant who publishes beside its own.
MUTED = """
const tile = document.querySelector('.tile:not([data-self])');
return tile && [tile.querySelector('.badge').textContent, tile.querySelector('.note').textContent].join();
"""


def mute(options, browser):
    """Mutes for a page that comes later, and unmutes for one that is there. One sentence about an unmet expectation, or None."""
    page = browser.current_window_handle
    browser.switch_to.new_window("tab")
    watching = browser.current_window_handle
    for words in ("muted,Their camera is off", ","):
        browser.switch_to.window(page)
        for button in ("microphone", "camera"):
            browser.execute_script(f"document.querySelector('#{button}').click()")
        browser.switch_to.window(watching)
        if words != ",":
            browser.get(options.page.replace("join=1", "join=0"))
            browser.execute_script("document.querySelector('#watch').click()")
        if not wait_for(browser, f"return (() => {{{MUTED}}})() === '{words}'", 20):
            return f"Another page does not show '{words}' but '{browser.execute_script(MUTED)}'."
    return None
