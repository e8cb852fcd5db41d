#include <glib.h>
#include <glib-object.h>
#include <sys/prctl.h>

/* prctl takes a variable list of arguments, which Swift cannot call. */
static inline void thread_set_own_name(const char *name) {
    prctl(PR_SET_NAME, name, 0, 0, 0);
}
