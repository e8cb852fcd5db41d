#pragma once

#include <stdbool.h>

/// Called once for each connection to an X server that breaks, with the display's name and the number of connections
/// opened before it. Runs on the thread that detected it, inside Xlib: it must neither wait nor use a display.
typedef void (*XConnectionLost)(const char *_Nonnull display, unsigned long number);

/// Connections opened from now on do not end the process when they break. Call once per process, from one thread.
void x_connections_survive(XConnectionLost _Nonnull lost);

/// Whether that function was called and Xlib has the function that it wraps.
bool x_connections_are_wrapped(void);

/// How many connections have been opened since.
unsigned long x_connections_opened(void);
