#include "CLinux.h"

#include <errno.h>
#include <sys/epoll.h>

#define MOST_EVENTS 16

int clinux_poll(void) {
    int poll = epoll_create1(EPOLL_CLOEXEC);
    return poll < 0 ? -errno : poll;
}

int clinux_poll_once(int poll, int descriptor, uint64_t id) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = id};
    if (epoll_ctl(poll, EPOLL_CTL_MOD, descriptor, &event) == 0) return 0;
    if (errno != ENOENT) return -errno;
    return epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event) == 0 ? 0 : -errno;
}

void clinux_poll_no_more(int poll, int descriptor) { epoll_ctl(poll, EPOLL_CTL_DEL, descriptor, NULL); }

int clinux_polled(int poll, uint64_t *ids, int count) {
    struct epoll_event events[MOST_EVENTS];
    int found = epoll_wait(poll, events, count < MOST_EVENTS ? count : MOST_EVENTS, -1);
    if (found < 0) return errno == EINTR ? 0 : -errno;
    for (int index = 0; index < found; index++) ids[index] = events[index].data.u64;
    return found;
}
