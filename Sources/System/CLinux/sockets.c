#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int fail_closing(int descriptor) {
    int error = errno;
    close(descriptor);
    return -error;
}

int clinux_memory(const char *name, size_t bytes) {
    int descriptor = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor < 0) return -errno;
    if (ftruncate(descriptor, (off_t)bytes) != 0) return fail_closing(descriptor);
    if (fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK) != 0) return fail_closing(descriptor);
    return descriptor;
}

int64_t clinux_sealed_size(int descriptor) {
    int seals = fcntl(descriptor, F_GET_SEALS);
    if (seals < 0) return -errno;
    if (!(seals & F_SEAL_SHRINK)) return -EINVAL;
    struct stat status;
    if (fstat(descriptor, &status) != 0) return -errno;
    return status.st_size;
}

ssize_t clinux_send(int socket, const void *bytes, size_t count, int descriptor) {
    struct iovec part = {.iov_base = (void *)bytes, .iov_len = count};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    if (descriptor >= 0) {
        memset(control, 0, sizeof control);
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
    }
    ssize_t sent;
    do sent = sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : sent;
}

ssize_t clinux_receive(
    int socket, void *bytes, size_t count, int descriptors[CLINUX_MOST_DESCRIPTORS], int *descriptor_count, int *is_cut) {
    struct iovec part = {.iov_base = bytes, .iov_len = count};
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * CLINUX_MOST_DESCRIPTORS)];
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    *descriptor_count = 0;
    *is_cut = 0;
    ssize_t received;
    // An end that closes with unread messages resets the connection. That is reported once, before the messages that it
    // sent.
    do received = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (received < 0 && (errno == EINTR || errno == ECONNRESET));
    if (received < 0) return -errno;
    *is_cut = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        size_t here = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t index = 0; index < here && *descriptor_count < CLINUX_MOST_DESCRIPTORS; index++)
            memcpy(&descriptors[(*descriptor_count)++], CMSG_DATA(header) + index * sizeof(int), sizeof(int));
    }
    return received;
}

static int make_address(struct sockaddr_un *address, const char *path) {
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    if (strlen(path) >= sizeof address->sun_path) return -ENAMETOOLONG;
    strcpy(address->sun_path, path);
    return 0;
}

static int make_socket(void) {
    int made = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    return made < 0 ? -errno : made;
}

int clinux_listen(const char *path) {
    struct sockaddr_un address;
    int error = make_address(&address, path);
    if (error < 0) return error;
    int made = make_socket();
    if (made < 0) return made;
    // The socket's mode becomes the file's: no other user can open it, not even between two calls.
    if (fchmod(made, 0600) != 0) return fail_closing(made);
    if (bind(made, (struct sockaddr *)&address, sizeof address) != 0) return fail_closing(made);
    if (fcntl(made, F_SETFL, O_NONBLOCK) != 0 || listen(made, 8) != 0) return fail_closing(made);
    return made;
}

int clinux_connect(const char *path) {
    struct sockaddr_un address;
    int error = make_address(&address, path);
    if (error < 0) return error;
    int made = make_socket();
    if (made < 0) return made;
    // A blocking connect could wait without end for a listener that accepts no connections.
    if (fcntl(made, F_SETFL, O_NONBLOCK) != 0) return fail_closing(made);
    if (connect(made, (struct sockaddr *)&address, sizeof address) != 0) return fail_closing(made);
    return made;
}

int clinux_accept(int socket) {
    int made = accept4(socket, NULL, NULL, SOCK_CLOEXEC);
    return made < 0 ? -errno : made;
}

int clinux_pair(int sockets[2]) {
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0 ? -errno : 0;
}

int clinux_pipe(int descriptors[2], size_t capacity) {
    if (pipe2(descriptors, O_CLOEXEC) != 0) return -errno;
    // A smaller pipe works too; the limit for users may be lower.
    if (capacity > 0) fcntl(descriptors[1], F_SETPIPE_SZ, (int)capacity);
    fcntl(descriptors[0], F_SETFL, O_NONBLOCK);
    return 0;
}

int clinux_peer(int socket, uid_t *user, pid_t *process) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return -errno;
    *user = peer.uid;
    *process = peer.pid;
    return 0;
}

int clinux_wait_readable(int descriptor, int milliseconds) {
    return clinux_wait_discarding(descriptor, milliseconds, NULL, 0);
}

static int64_t now_in_milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int clinux_wait_discarding(int descriptor, int milliseconds, const int *pipes, int count) {
    if (count > CLINUX_MOST_PIPES) return -EINVAL;
    struct pollfd asked[1 + CLINUX_MOST_PIPES] = {{.fd = descriptor, .events = POLLIN}};
    for (int index = 0; index < count; index++) asked[1 + index] = (struct pollfd){.fd = pipes[index], .events = POLLIN};
    int64_t deadline = now_in_milliseconds() + milliseconds;
    while (1) {
        int64_t left = deadline - now_in_milliseconds();
        int found = poll(asked, (nfds_t)(1 + count), left > 0 ? (int)left : 0);
        if (found < 0 && errno != EINTR) return -errno;
        if (found > 0 && asked[0].revents != 0) return 1;
        for (int index = 1; found > 0 && index <= count; index++) {
            if (asked[index].revents == 0) continue;
            char thrown[65536];
            ssize_t taken = read(asked[index].fd, thrown, sizeof thrown);
            // No process can write to it any more, and poll would report that repeatedly.
            if (taken == 0 || (taken < 0 && errno != EAGAIN && errno != EINTR)) asked[index].fd = -1;
        }
        if (left <= 0) return 0;
    }
}

int clinux_address_changes(void) {
    int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (descriptor < 0) return -errno;
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR};
    if (bind(descriptor, (struct sockaddr *)&address, sizeof address) != 0) return fail_closing(descriptor);
    return descriptor;
}
