#include <nice/agent.h>

/* Declared here, because <nice/interfaces.h> includes <address.h>, which needs the search path of pkg-config. That brings
   -pthread, of which the package manager warns in every build. */
GList *nice_interfaces_get_local_ips(gboolean include_loopback);

/* g_object_set takes a variable list of arguments, which Swift cannot call. */
static inline void nice_agent_set_flag(NiceAgent *agent, const char *property, gboolean value) {
    g_object_set(agent, property, value, NULL);
}

static inline void nice_agent_set_number(NiceAgent *agent, const char *property, guint value) {
    g_object_set(agent, property, value, NULL);
}

static inline void nice_agent_set_text(NiceAgent *agent, const char *property, const char *value) {
    g_object_set(agent, property, value, NULL);
}
