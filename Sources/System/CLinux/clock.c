#include "CLinux.h"

#include <sys/timex.h>

int64_t clinux_wall_clock_error(void) {
    struct timex state = {.modes = 0};
    int result = adjtimex(&state);
    return result < 0 || result == TIME_ERROR || (state.status & STA_UNSYNC) ? -1 : state.maxerror;
}
