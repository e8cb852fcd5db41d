#include <nice/agent.h>
#include <nice/interfaces.h>

/* g_object_set takes a variable list of arguments, which Swift cannot call. */
static inline void nice_agent_set_flag(NiceAgent *agent, const char *property, gboolean value) {
    g_object_set(agent, property, value, NULL);
}

static inline void nice_agent_set_number(NiceAgent *agent, const char *property, guint value) {
    g_object_set(agent, property, value, NULL);
}
