#include <glib.h>
#include <glib-object.h>
#include <gio/gio.h>
#include <gio/gunixfdlist.h>
#include <sys/prctl.h>

/* prctl takes a variable list of arguments, which Swift cannot call. */
static inline void thread_set_own_name(const char *name) {
    prctl(PR_SET_NAME, name, 0, 0, 0);
}

/* Registers the types of GIO's sockets. Any thread may call it, any number of times, before it or another thread uses
   GStreamer, libnice or GIO.

   GObject can deadlock while two threads use such a type for the first time: one initialises a class that refers to
   GSocketAddress, and waits for its registration with the lock of all classes; the other registers it, and waits for
   that lock to add an interface. Registration alone holds no lock that another registration waits for. */
static inline void register_socket_types(void) {
    g_type_ensure(G_TYPE_INITABLE);
    g_type_ensure(G_TYPE_ASYNC_INITABLE);
    g_type_ensure(G_TYPE_DATAGRAM_BASED);
    g_type_ensure(G_TYPE_SOCKET_CONNECTABLE);
    g_type_ensure(G_TYPE_SOCKET_ADDRESS);
    g_type_ensure(G_TYPE_SOCKET_ADDRESS_ENUMERATOR);
    g_type_ensure(G_TYPE_INET_ADDRESS);
    g_type_ensure(G_TYPE_INET_SOCKET_ADDRESS);
    g_type_ensure(G_TYPE_PROXY_ADDRESS);
    g_type_ensure(G_TYPE_NETWORK_ADDRESS);
    g_type_ensure(G_TYPE_NETWORK_SERVICE);
    g_type_ensure(G_TYPE_SOCKET);
    g_type_ensure(G_TYPE_SOCKET_CONNECTION);
    g_type_ensure(G_TYPE_TCP_CONNECTION);
    g_type_ensure(G_TYPE_SOCKET_CLIENT);
    g_type_ensure(G_TYPE_SOCKET_LISTENER);
    g_type_ensure(G_TYPE_SOCKET_SERVICE);
    g_type_ensure(G_TYPE_RESOLVER);
    g_type_ensure(G_TYPE_PROXY_RESOLVER);
    g_type_ensure(G_TYPE_SIMPLE_PROXY_RESOLVER);
    g_type_ensure(G_TYPE_TLS_CERTIFICATE);
    g_type_ensure(G_TYPE_TLS_DATABASE);
    g_type_ensure(G_TYPE_TLS_CONNECTION);
    g_type_ensure(G_TYPE_TLS_CLIENT_CONNECTION);
    g_type_ensure(G_TYPE_IO_STREAM);
    g_type_ensure(G_TYPE_INPUT_STREAM);
    g_type_ensure(G_TYPE_OUTPUT_STREAM);
    g_type_ensure(G_TYPE_CANCELLABLE);
    g_type_ensure(G_TYPE_TASK);
}
