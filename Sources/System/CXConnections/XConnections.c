// Xlib ends the process when a connection to an X server breaks, unless the connection has an exit handler that returns
// (XSetIOErrorExitHandler). Xlib reads that handler before it calls the handler for all connections, and GStreamer's
// elements hide their connections. The only moment at which each connection can be found is when Xlib creates its lock:
// the function for that is a variable of Xlib, which is wrapped here.
#define XTHREADS
#include "CXConnections.h"

#include <X11/Xlib.h>
#include <X11/Xlibint.h>
#include <stdatomic.h>
#include <stdint.h>

// An internal symbol of Xlib. Weak: with a libX11 that lacks it, the program works, and Xlib ends the process as usual.
extern int (*_XInitDisplayLock_fn)(Display *) __attribute__((weak));

static int (*make_lock)(Display *);
static XConnectionLost on_lost;
static atomic_ulong opened;

/// No resources are created any more, but Xlib needs a number for each.
static XID no_resource(Display *display) {
    return 0;
}

static void go_on(Display *display, void *number) {
    // Xlib keeps the display locked for this thread, and has released the lock that its caller releases again.
    XUnlockDisplay(display);
    LockDisplay(display);
    // With the flag set, requests would accumulate until there is no room, and Xlib writes to NULL. Without it, each
    // goes to
    // xcb, which knows that the connection is broken, and this function is called again when a reply is missing.
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

/// Suppresses Xlib's own message on standard error; the error is reported otherwise.
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
