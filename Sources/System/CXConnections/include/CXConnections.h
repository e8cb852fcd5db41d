#pragma once

#include <stdbool.h>

/// Called when a connection to an X server breaks, once for each: with the display's name, and how many connections had
/// been opened when it was. On the thread that noticed, inside Xlib: it may neither wait nor ask a display.
typedef void (*XConnectionLost)(const char *_Nonnull display, unsigned long number);

/// Connections that are opened from now on do not end the process when they break. Once for a process, from one thread.
void x_connections_survive(XConnectionLost _Nonnull lost);

/// Whether that was called and Xlib has the function that is wrapped for it.
bool x_connections_are_wrapped(void);

/// How many connections have been opened since.
unsigned long x_connections_opened(void);
