#include <gst/check/gsttestclock.h>
