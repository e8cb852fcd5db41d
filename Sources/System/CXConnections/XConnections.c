// Xlib ends the process when a connection to an X server breaks, unless the connection has an exit handler that returns
// (XSetIOErrorExitHandler). Which one it has is read before the handler is called that stands for all connections, and
// elements of GStreamer do not show the connections that they open. The one moment at which each of them can be had is
// when Xlib makes its lock: the function that does that is a variable of Xlib's, and is wrapped here.
#define XTHREADS
#include "CXConnections.h"

#include <X11/Xlib.h>
#include <X11/Xlibint.h>
#include <stdatomic.h>
#include <stdint.h>

// Xlib's own; no header has it. Weak: a libX11 without it lets us live, and ends the process as it always did.
extern int (*_XInitDisplayLock_fn)(Display *) __attribute__((weak));

static int (*make_lock)(Display *);
static XConnectionLost on_lost;
static atomic_ulong opened;

/// Resources are no longer made, but Xlib insists on a number for each.
static XID no_resource(Display *display) {
    return 0;
}

static void go_on(Display *display, void *number) {
    // Xlib has locked the display for this thread for good, and let go of the lock that its caller lets go of again.
    XUnlockDisplay(display);
    LockDisplay(display);
    // With the flag set, requests would pile up until there is no room for one, and Xlib writes to NULL. Without it each
    // is handed to xcb, which knows that nothing can be sent, and this is called again when an answer is missing.
    display->flags &= ~XlibDisplayIOError;
    display->bufptr = display->buffer;
}

static void lose(Display *display, void *number) {
    go_on(display, number);
    display->exit_handler = go_on;
    display->resource_alloc = no_resource;
    on_lost(DisplayString(display), (uintptr_t)number);
}

static int make_lock_of_survivor(Display *display) {
    uintptr_t number = atomic_fetch_add(&opened, 1) + 1;
    int answer = make_lock(display);
    if (answer == 0) XSetIOErrorExitHandler(display, lose, (void *)number);
    return answer;
}

/// Xlib's own says on the standard error what is reported in other words.
static int say_nothing(Display *display) {
    return 0;
}

void x_connections_survive(XConnectionLost lost) {
    on_lost = lost;
    XInitThreads();
    if (&_XInitDisplayLock_fn == NULL || _XInitDisplayLock_fn == NULL) return;
    XSetIOErrorHandler(say_nothing);
    make_lock = _XInitDisplayLock_fn;
    _XInitDisplayLock_fn = make_lock_of_survivor;
}

bool x_connections_are_wrapped(void) {
    return &_XInitDisplayLock_fn != NULL && _XInitDisplayLock_fn == make_lock_of_survivor;
}

unsigned long x_connections_opened(void) {
    return atomic_load(&opened);
}
