"""A page that loses its WebSocket or the way of its media, and comes back."""
import signal

from expectations import observe, wait_for

# Other TURN servers with the same passwords, as the server tells them. The server does not know of this message, so the page must
# not count it.
NAME_RELAY = """
const socket = window.testSockets.at(-1);
socket.send = function(text) {
    const message = JSON.parse(text);
    if (message.type === 'ack') message.received -= 1;
    WebSocket.prototype.send.call(this, JSON.stringify(message));
};
const [port] = arguments;
const iceServers = window.testPeers[0].getConfiguration().iceServers.map(({ urls, ...server }) =>
    ({ urls: [urls].flat().map((url) => url.replace(/:\\d+\\?/, `:${port}?`)), ...server }));
socket.onmessage({ data: JSON.stringify({ type: 'iceServers', iceServers }) });
"""


def relay(options, browser):
    """Restarts ICE through other TURN servers. One sentence about an unmet expectation, or None."""
    browser.execute_script(NAME_RELAY, options.then_relay)
    sentence = restart_ice(browser)
    if sentence is not None:
        return sentence
    browser.execute_script(FIND_WAY)
    options.expect_relay = options.then_relay
    return observe(options, browser)[1]


# Ends the page's WebSocket without a farewell.
DROP_SOCKET = "window.testSockets.at(-1).close()"

# From now on, nothing gets through the WebSocket, which stays open.
MUTE_SOCKET = ("window.testMuted = performance.now();"
               "Object.assign(window.testSockets.at(-1), { send() {}, onmessage: null });")
# The page's next WebSocket never opens, as in a dead spot.
HANG_SOCKET = """
const { WebSocket } = window;
window.WebSocket = function() {
    window.testHangs = true;
    Object.assign(window, { WebSocket });
    return { readyState: WebSocket.CONNECTING, close() {} };
};
"""

# How long the page waited, in milliseconds, until it opened the next WebSocket.
WAITED = "return window.testSockets.at(-1).testBegan - window.testMuted"

# What a browser tells a page whose network is another one. The page looks for the server at once then.
NETWORK_EVENTS = ("dispatchEvent(new Event('online'));", "navigator.connection.dispatchEvent(new Event('change'));")
# In milliseconds: after a silence alone, the page would not look before.
SILENCE = 9000

# Tells the page that its peers have lost their way, which makes it restart ICE. The connection state is real again afterwards.
LOSE_WAY = """
window.testUfrags = window.testPeers.map((peer) => peer.localDescription.sdp.match(/ice-ufrag:(\\S+)/)[1]);
for (const peer of window.testPeers) {
    Object.defineProperty(peer, 'connectionState', { get: () => 'disconnected', configurable: true });
    peer.onconnectionstatechange();
    delete peer.connectionState;
}
"""

# Tells the page the real state of its peers again: it restarts no more.
FIND_WAY = "for (const peer of window.testPeers) peer.onconnectionstatechange();"

RESTARTED = """
return window.testPeers.every((peer, index) => peer.signalingState === 'stable'
    && peer.currentLocalDescription.sdp.match(/ice-ufrag:(\\S+)/)[1] !== window.testUfrags[index]
    && peer.connectionState === 'connected');
"""


def roam(options, browser):
    """Loses the WebSocket in several ways, then the way of media. One sentence about an unmet expectation, or None."""
    participant = browser.execute_script("return document.body.dataset.participant")
    losses = [DROP_SOCKET, DROP_SOCKET, *(MUTE_SOCKET + event for event in NETWORK_EVENTS)]
    browser.execute_script(HANG_SOCKET + DROP_SOCKET)
    if not wait_for(browser, "return window.testHangs", 20):
        return "The page did not try to come back."
    browser.execute_script(NETWORK_EVENTS[0])
    if not has_returned(browser, 1):
        return "The page did not give up an attempt of its former network."
    for count, loss in enumerate(losses, 2):
        browser.execute_script(loss)
        if not has_returned(browser, count):
            return f"The page did not come back after loss {count} of its WebSocket."
        if loss is not DROP_SOCKET and browser.execute_script(WAITED) >= SILENCE:
            return f"The page did not notice loss {count} of its WebSocket before the silence."
    for sentence in (observe(options, browser)[1], restart_ice(browser)):
        if sentence is not None:
            return sentence
    browser.execute_script(FIND_WAY + MUTE_SOCKET)
    sentence = restart_ice(browser)
    if sentence is not None:
        return sentence
    if not has_returned(browser, count + 1):
        return "The page did not come back after the loss of its WebSocket and its way."
    if browser.execute_script(WAITED) >= SILENCE:
        return "The page waited for a silence, although its way was lost."
    if browser.execute_script("return document.body.dataset.participant") != participant:
        return "The page came back as another participant."
    options.expect_publishing += 100
    return observe(options, browser)[1]


def has_returned(browser, count):
    return wait_for(browser, f"return document.body.dataset.returns === '{count}'", 20)


def restart_ice(browser):
    browser.execute_script(LOSE_WAY)
    return None if wait_for(browser, RESTARTED, 20) else "The page did not restart ICE of its sessions."


class Restart:
    """An ICE restart of the page's sessions, which begins at SIGUSR1."""

    def __init__(self):
        self.is_wanted = self.has_begun = self.is_over = False
        signal.signal(signal.SIGUSR1, self.want)

    def want(self, *_):
        self.is_wanted = True

    def advance(self, browser):
        if self.is_wanted and not self.has_begun:
            self.has_begun = True
            browser.execute_script(LOSE_WAY)
        elif self.has_begun and not self.is_over and browser.execute_script(RESTARTED):
            self.is_over = True
            browser.execute_script(FIND_WAY)
