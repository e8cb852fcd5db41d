#ifndef CDATAGRAMS_H
#define CDATAGRAMS_H

// Batches of UDP datagrams: one system call receives or sends many, to and from any addresses (recvmmsg, sendmmsg,
// UDP_SEGMENT). Functions return a negative error number on failure.

#include <stddef.h>
#include <stdint.h>

// An IPv6 address, or an IPv4 address as ::ffff:a.b.c.d, in network order, and a port in host order.
struct cdatagrams_address {
    uint8_t bytes[16];
    uint16_t port;
};

// The most datagrams of one call.
#define CDATAGRAMS_MOST 64

// Bytes that a socket may queue, as the kernel counts them.
struct cdatagrams_buffers {
    int receive;
    int send;
};

// A bound UDP socket that never blocks. `is_shared` opens one more socket at the address of another one, which
// `cdatagrams_share` permits.
// `address.port` 0 means any free port; the call sets the port. It also sets `buffers` to what the kernel allowed.
// The address :: receives IPv4 as well.
int cdatagrams_open(struct cdatagrams_address *address, int is_shared, struct cdatagrams_buffers *buffers);

// Lets further sockets of this user be opened at the address of this one (SO_REUSEPORT). The kernel then chooses one of
// them for each pair of addresses. Before the call, the address was this socket's alone. Returns 0.
int cdatagrams_share(int socket);

// Makes the kernel choose the socket that was opened as number `place` of those with this address, for all datagrams
// (SO_ATTACH_REUSEPORT_CBPF). Returns 0.
int cdatagrams_steer(int socket, unsigned place);

struct pollfd;

// Waits until one of `count` descriptors is ready, or for this time (ppoll). Negative nanoseconds mean without end.
void cdatagrams_wait(struct pollfd *descriptors, size_t count, int64_t nanoseconds);

// A descriptor that other threads make readable, by `cdatagrams_ring`, until `cdatagrams_silence`.
int cdatagrams_bell(void);
void cdatagrams_ring(int bell);
void cdatagrams_silence(int bell);

// Datagrams that the kernel dropped because the receive buffer was full.
unsigned cdatagrams_overflows(int socket);

struct cdatagrams_arrival {
    struct cdatagrams_address from;
    // This machine's address that the datagram was sent to. Its port is 0.
    struct cdatagrams_address to;
    // The bytes of the datagram. Longer than the stride if the datagram was cut.
    uint32_t count;
};

// Receives up to `most` waiting datagrams. Datagram n is at `slab + n * stride`. Returns their number, 0 if none waits.
int cdatagrams_receive(
    int socket, uint8_t *slab, size_t stride, struct cdatagrams_arrival *arrivals, int most);

// Datagrams to one address: all have `segment` bytes, and the last one may be shorter.
struct cdatagrams_departure {
    struct cdatagrams_address to;
    // The address to send from, as in an arrival. All zero lets the kernel choose.
    struct cdatagrams_address from;
    // Their first byte in the slab, and their length together.
    uint32_t start;
    uint32_t count;
    uint32_t segment;
};

// Sends up to CDATAGRAMS_MOST departures in order. Returns how many it handed to the kernel; if that is fewer, `error`
// is the reason for the next one. `is_inet`: the socket was opened at an IPv4 address.
int cdatagrams_send(
    int socket, int is_inet, const uint8_t *slab, const struct cdatagrams_departure *departures, int count,
    int *error);

#endif
