#define _GNU_SOURCE
#include "CDatagrams.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static int is_four(const struct cdatagrams_address *address) {
    return memcmp(address->bytes, mapped, sizeof mapped) == 0;
}

static int is_zero(const struct cdatagrams_address *address) {
    static const uint8_t zero[16];
    return memcmp(address->bytes, zero, sizeof zero) == 0;
}

static struct sockaddr_in6 six(const struct cdatagrams_address *address) {
    struct sockaddr_in6 result = {.sin6_family = AF_INET6, .sin6_port = htons(address->port)};
    memcpy(&result.sin6_addr, address->bytes, 16);
    return result;
}

// Sockets are AF_INET only if they are bound to an IPv4 address, because a kernel may lack IPv6.
static struct sockaddr_in four(const struct cdatagrams_address *address) {
    struct sockaddr_in result = {.sin_family = AF_INET, .sin_port = htons(address->port)};
    memcpy(&result.sin_addr, address->bytes + 12, 4);
    return result;
}

static void set_four(struct cdatagrams_address *address, const struct in_addr *value) {
    memcpy(address->bytes, mapped, sizeof mapped);
    memcpy(address->bytes + 12, value, 4);
}

static void read_name(struct cdatagrams_address *address, const struct sockaddr_storage *name) {
    if (name->ss_family == AF_INET) {
        const struct sockaddr_in *from = (const struct sockaddr_in *)name;
        set_four(address, &from->sin_addr);
        address->port = ntohs(from->sin_port);
    } else {
        const struct sockaddr_in6 *from = (const struct sockaddr_in6 *)name;
        memcpy(address->bytes, &from->sin6_addr, 16);
        address->port = ntohs(from->sin6_port);
    }
}

// Returns the size that the kernel allows. It doubles what it is asked for, because it counts its own records.
static int enlarge(int descriptor, int forced, int plain, int size) {
    if (setsockopt(descriptor, SOL_SOCKET, forced, &size, sizeof size) != 0) {
        setsockopt(descriptor, SOL_SOCKET, plain, &size, sizeof size);
    }
    socklen_t length = sizeof size;
    return getsockopt(descriptor, SOL_SOCKET, plain, &size, &length) == 0 ? size / 2 : 0;
}

int cdatagrams_open(struct cdatagrams_address *address, int is_shared, struct cdatagrams_buffers *buffers) {
    int is_inet = is_four(address);
    int descriptor = socket(is_inet ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0) return -errno;
    // The kernel fragments what the path does not take whole, as for other UDP sockets.
    int on = 1, off = 0, discover = IP_PMTUDISC_WANT;
    if (is_shared && setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0) goto failed;
    struct sockaddr_storage name = {0};
    socklen_t length;
    if (is_inet) {
        struct sockaddr_in own = four(address);
        memcpy(&name, &own, length = sizeof own);
    } else {
        if (setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0) goto failed;
        if (setsockopt(descriptor, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on) != 0) goto failed;
        setsockopt(descriptor, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &discover, sizeof discover);
        struct sockaddr_in6 own = six(address);
        memcpy(&name, &own, length = sizeof own);
    }
    // An IPv6 socket that takes IPv4 too reports the addresses of the latter by IP_PKTINFO.
    if (setsockopt(descriptor, IPPROTO_IP, IP_PKTINFO, &on, sizeof on) != 0 && is_inet) goto failed;
    setsockopt(descriptor, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof discover);
    if (bind(descriptor, (struct sockaddr *)&name, length) != 0) goto failed;
    if (getsockname(descriptor, (struct sockaddr *)&name, &length) != 0) goto failed;
    struct cdatagrams_address bound;
    read_name(&bound, &name);
    address->port = bound.port;
    buffers->receive = enlarge(descriptor, SO_RCVBUFFORCE, SO_RCVBUF, buffers->receive);
    buffers->send = enlarge(descriptor, SO_SNDBUFFORCE, SO_SNDBUF, buffers->send);
    return descriptor;
failed:;
    int error = errno;
    close(descriptor);
    return -error;
}

int cdatagrams_share(int socket) {
    int on = 1;
    return setsockopt(socket, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0 ? 0 : -errno;
}

int cdatagrams_steer(int socket, unsigned place) {
    struct sock_filter instructions[] = {BPF_STMT(BPF_RET | BPF_K, place)};
    struct sock_fprog program = {.len = 1, .filter = instructions};
    int result = setsockopt(socket, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program);
    return result == 0 ? 0 : -errno;
}

int cdatagrams_bell(void) {
    int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return bell < 0 ? -errno : bell;
}

void cdatagrams_ring(int bell) { eventfd_write(bell, 1); }

void cdatagrams_silence(int bell) {
    eventfd_t count;
    eventfd_read(bell, &count);
}

unsigned cdatagrams_overflows(int socket) {
    uint32_t values[SK_MEMINFO_VARS] = {0};
    socklen_t length = sizeof values;
    if (getsockopt(socket, SOL_SOCKET, SO_MEMINFO, values, &length) != 0) return 0;
    return values[SK_MEMINFO_DROPS];
}

union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(struct in_pktinfo))
               + CMSG_SPACE(sizeof(uint16_t))];
};

static void read_own(struct cdatagrams_address *address, struct msghdr *message) {
    memset(address, 0, sizeof *address);
    for (struct cmsghdr *item = CMSG_FIRSTHDR(message); item; item = CMSG_NXTHDR(message, item)) {
        if (item->cmsg_level == IPPROTO_IP && item->cmsg_type == IP_PKTINFO) {
            struct in_pktinfo info;
            memcpy(&info, CMSG_DATA(item), sizeof info);
            set_four(address, &info.ipi_addr);
        } else if (item->cmsg_level == IPPROTO_IPV6 && item->cmsg_type == IPV6_PKTINFO) {
            struct in6_pktinfo info;
            memcpy(&info, CMSG_DATA(item), sizeof info);
            memcpy(address->bytes, &info.ipi6_addr, 16);
        }
    }
}

int cdatagrams_receive(
    int socket, uint8_t *slab, size_t stride, struct cdatagrams_arrival *arrivals, int most) {
    struct mmsghdr messages[CDATAGRAMS_MOST];
    struct iovec parts[CDATAGRAMS_MOST];
    struct sockaddr_storage names[CDATAGRAMS_MOST];
    union control controls[CDATAGRAMS_MOST];
    if (most > CDATAGRAMS_MOST) most = CDATAGRAMS_MOST;
    for (int index = 0; index < most; index++) {
        parts[index] = (struct iovec){.iov_base = slab + (size_t)index * stride, .iov_len = stride};
        messages[index].msg_hdr = (struct msghdr){
            .msg_name = &names[index],
            .msg_namelen = sizeof names[index],
            .msg_iov = &parts[index],
            .msg_iovlen = 1,
            .msg_control = &controls[index],
            .msg_controllen = sizeof controls[index],
        };
    }
    int count;
    do count = recvmmsg(socket, messages, (unsigned)most, MSG_DONTWAIT | MSG_TRUNC, NULL);
    while (count < 0 && errno == EINTR);
    if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
    for (int index = 0; index < count; index++) {
        struct msghdr *header = &messages[index].msg_hdr;
        read_name(&arrivals[index].from, &names[index]);
        read_own(&arrivals[index].to, header);
        arrivals[index].count = messages[index].msg_len;
    }
    return count;
}

static struct cmsghdr *append(struct msghdr *message, union control *control, int level, int type, size_t size) {
    struct cmsghdr *item = (struct cmsghdr *)(control->bytes + message->msg_controllen);
    memset(item, 0, CMSG_SPACE(size));
    item->cmsg_level = level;
    item->cmsg_type = type;
    item->cmsg_len = CMSG_LEN(size);
    message->msg_control = control;
    message->msg_controllen += CMSG_SPACE(size);
    return item;
}

int cdatagrams_send(
    int socket, int is_inet, const uint8_t *slab, const struct cdatagrams_departure *departures, int count,
    int *error) {
    struct mmsghdr messages[CDATAGRAMS_MOST];
    struct iovec parts[CDATAGRAMS_MOST];
    struct sockaddr_storage names[CDATAGRAMS_MOST];
    union control controls[CDATAGRAMS_MOST];
    *error = 0;
    if (count > CDATAGRAMS_MOST) count = CDATAGRAMS_MOST;
    for (int index = 0; index < count; index++) {
        const struct cdatagrams_departure *departure = &departures[index];
        struct msghdr *message = &messages[index].msg_hdr;
        parts[index] = (struct iovec){.iov_base = (void *)(slab + departure->start), .iov_len = departure->count};
        *message = (struct msghdr){.msg_name = &names[index], .msg_iov = &parts[index], .msg_iovlen = 1};
        if (is_inet) {
            struct sockaddr_in to = four(&departure->to);
            memcpy(&names[index], &to, message->msg_namelen = sizeof to);
        } else {
            struct sockaddr_in6 to = six(&departure->to);
            memcpy(&names[index], &to, message->msg_namelen = sizeof to);
        }
        if (departure->count > departure->segment) {
            uint16_t segment = (uint16_t)departure->segment;
            struct cmsghdr *item = append(message, &controls[index], IPPROTO_UDP, UDP_SEGMENT, sizeof segment);
            memcpy(CMSG_DATA(item), &segment, sizeof segment);
        }
        if (is_zero(&departure->from)) continue;
        if (is_four(&departure->from)) {
            struct in_pktinfo info = {0};
            memcpy(&info.ipi_spec_dst, departure->from.bytes + 12, 4);
            struct cmsghdr *item = append(message, &controls[index], IPPROTO_IP, IP_PKTINFO, sizeof info);
            memcpy(CMSG_DATA(item), &info, sizeof info);
        } else {
            struct in6_pktinfo info = {0};
            memcpy(&info.ipi6_addr, departure->from.bytes, 16);
            struct cmsghdr *item = append(message, &controls[index], IPPROTO_IPV6, IPV6_PKTINFO, sizeof info);
            memcpy(CMSG_DATA(item), &info, sizeof info);
        }
    }
    int sent;
    do sent = sendmmsg(socket, messages, (unsigned)count, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0) {
        *error = errno;
        return 0;
    }
    return sent;
}

void cdatagrams_wait(struct pollfd *descriptors, size_t count, int64_t nanoseconds) {
    struct timespec time = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000};
    ppoll(descriptors, count, nanoseconds < 0 ? NULL : &time, NULL);
}
