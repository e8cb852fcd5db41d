// The least that a forwarding server can cost: OpenSSL's EVP and the kernel's sendmmsg, nothing else.
//
//     kernel_cost send ADDRESS FIRST-PORT DESTINATIONS BYTES BURST RATE SECONDS SEGMENT
//     kernel_cost sink ADDRESS FIRST-PORT DESTINATIONS
//     kernel_cost watch DEVICE SERVER-ADDRESS BYTES BURST GAP
//
// `send` encrypts each packet of a burst for each destination with a key of its own (AES-128-GCM, 12 bytes of header as
// associated data, 16 bytes of tag), from one buffer into another, and hands the packets to the kernel 64 at a time.
// With SEGMENT 1, the packets of a burst to one destination are one message that the kernel cuts (UDP_SEGMENT). It
// prints its processor time for each packet. `sink` opens the ports, counts what arrives, and prints the count when its
// standard input ends. `watch` sees the packets on a device and prints how long after the first packet of each burst
// from a client the last packet of the server passed. Packets have at least BYTES; bursts are GAP microseconds apart or
// more.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <openssl/evp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

enum { MOST = 64, HEADER = 12, TAG = 16, LONGEST = 1500, BUFFER = 4 << 20 };

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int64_t clock_of(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static struct sockaddr_in address_of(const char *text, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, text, &address.sin_addr) != 1) {
        fprintf(stderr, "'%s' is no IPv4 address.\n", text);
        exit(1);
    }
    return address;
}

struct sender {
    int socket, destinations, bytes, burst, is_cut;
    struct sockaddr_in *to;
    EVP_CIPHER_CTX **ciphers;
    uint64_t number;
    uint8_t *slab;
    struct mmsghdr messages[MOST];
    struct iovec parts[MOST];
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(uint16_t))];
    } controls[MOST];
    int waiting;
    size_t filled;
    uint64_t sent;
};

static void seal(EVP_CIPHER_CTX *cipher, const uint8_t *packet, int bytes, uint64_t number, uint8_t *target) {
    uint8_t nonce[12] = {0};
    int count = 0;
    memcpy(nonce + 4, &number, sizeof number);
    memcpy(target, packet, HEADER);
    if (EVP_CipherInit_ex(cipher, NULL, NULL, NULL, nonce, -1) != 1
        || EVP_CipherUpdate(cipher, NULL, &count, target, HEADER) != 1
        || EVP_CipherUpdate(cipher, target + HEADER, &count, packet + HEADER, bytes - HEADER) != 1
        || EVP_CipherFinal_ex(cipher, target + bytes, &count) != 1
        || EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, TAG, target + bytes) != 1) {
        fprintf(stderr, "OpenSSL did not encrypt.\n");
        exit(1);
    }
}

static void flush(struct sender *sender) {
    for (int done = 0; done < sender->waiting;) {
        int sent = sendmmsg(sender->socket, sender->messages + done, (unsigned)(sender->waiting - done), 0);
        if (sent < 0) fail("sendmmsg");
        done += sent;
    }
    sender->waiting = 0;
    sender->filled = 0;
}

// One message with `count` packets of the burst, from number `first`.
static void queue(struct sender *sender, int destination, const uint8_t *packets, int first, int count) {
    int length = sender->bytes + TAG, index = sender->waiting++;
    uint8_t *start = sender->slab + sender->filled;
    for (int packet = first; packet < first + count; packet++) {
        seal(sender->ciphers[destination], packets + packet * LONGEST, sender->bytes, sender->number + (uint64_t)packet,
             sender->slab + sender->filled);
        sender->filled += (size_t)length;
    }
    sender->parts[index] = (struct iovec){.iov_base = start, .iov_len = (size_t)(length * count)};
    struct msghdr *message = &sender->messages[index].msg_hdr;
    *message = (struct msghdr){
        .msg_name = &sender->to[destination],
        .msg_namelen = sizeof sender->to[destination],
        .msg_iov = &sender->parts[index],
        .msg_iovlen = 1,
    };
    if (count > 1) {
        uint16_t segment = (uint16_t)length;
        message->msg_control = &sender->controls[index];
        message->msg_controllen = sizeof sender->controls[index];
        struct cmsghdr *item = CMSG_FIRSTHDR(message);
        item->cmsg_level = IPPROTO_UDP;
        item->cmsg_type = UDP_SEGMENT;
        item->cmsg_len = CMSG_LEN(sizeof segment);
        memcpy(CMSG_DATA(item), &segment, sizeof segment);
    }
    sender->sent += (uint64_t)count;
    if (sender->waiting == MOST) flush(sender);
}

static void send_burst(struct sender *sender, const uint8_t *packets) {
    for (int destination = 0; destination < sender->destinations; destination++) {
        if (sender->is_cut) {
            queue(sender, destination, packets, 0, sender->burst);
        } else {
            for (int packet = 0; packet < sender->burst; packet++) queue(sender, destination, packets, packet, 1);
        }
    }
    flush(sender);
    sender->number += (uint64_t)sender->burst;
}

static int run_send(char **arguments) {
    int port = atoi(arguments[1]), rate = atoi(arguments[5]), seconds = atoi(arguments[6]);
    struct sender sender = {
        .destinations = atoi(arguments[2]),
        .bytes = atoi(arguments[3]),
        .burst = atoi(arguments[4]),
        .is_cut = atoi(arguments[7]) && atoi(arguments[4]) > 1,
        .socket = socket(AF_INET, SOCK_DGRAM, 0),
    };
    int size = BUFFER;
    setsockopt(sender.socket, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
    sender.to = calloc((size_t)sender.destinations, sizeof *sender.to);
    sender.ciphers = calloc((size_t)sender.destinations, sizeof *sender.ciphers);
    sender.slab = malloc((size_t)MOST * (size_t)sender.burst * LONGEST);
    uint8_t *packets = calloc((size_t)sender.burst, LONGEST);
    for (int index = 0; index < sender.destinations; index++) {
        uint8_t key[16] = {0};
        memcpy(key, &index, sizeof index);
        sender.to[index] = address_of(arguments[0], port + index);
        sender.ciphers[index] = EVP_CIPHER_CTX_new();
        if (EVP_CipherInit_ex(sender.ciphers[index], EVP_aes_128_gcm(), NULL, key, NULL, 1) != 1) fail("EVP");
    }
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    int64_t interval = 1000000000 / rate;
    struct itimerspec times = {
        .it_value.tv_nsec = 1,
        .it_interval = {.tv_sec = interval / 1000000000, .tv_nsec = interval % 1000000000},
    };
    timerfd_settime(timer, 0, &times, NULL);
    // The first second grows caches.
    uint64_t before = 0;
    int64_t start = 0, wall = 0;
    for (int64_t burst = 0; burst < (int64_t)rate * (seconds + 1); burst++) {
        uint64_t fired;
        if (burst == rate) {
            start = clock_of(CLOCK_PROCESS_CPUTIME_ID);
            wall = clock_of(CLOCK_MONOTONIC);
            before = sender.sent;
        }
        if (read(timer, &fired, sizeof fired) < 0) fail("timer");
        for (int packet = 0; packet < sender.burst; packet++) {
            memset(packets + packet * LONGEST, (int)burst, (size_t)sender.bytes);
        }
        send_burst(&sender, packets);
    }
    double used = (double)(clock_of(CLOCK_PROCESS_CPUTIME_ID) - start);
    double passed = (double)(clock_of(CLOCK_MONOTONIC) - wall);
    uint64_t packetsOut = sender.sent - before;
    printf("{\"packetsOut\": %llu, \"sent\": %llu, \"microsecondsPerPacket\": %.4f, \"core\": %.4f}\n",
           (unsigned long long)packetsOut, (unsigned long long)sender.sent, used / 1000 / (double)packetsOut,
           used / passed);
    return 0;
}

static int run_sink(char **arguments) {
    int port = atoi(arguments[1]), count = atoi(arguments[2]), size = BUFFER;
    int poller = epoll_create1(0);
    uint64_t received = 0;
    static char data[65536];
    for (int index = 0; index < count; index++) {
        int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
        struct sockaddr_in own = address_of(arguments[0], port + index);
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
        if (bind(descriptor, (struct sockaddr *)&own, sizeof own) != 0) fail("bind");
        struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
        if (epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event) != 0) fail("epoll");
    }
    struct epoll_event input = {.events = EPOLLIN, .data.fd = STDIN_FILENO};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, STDIN_FILENO, &input) != 0) fail("epoll");
    puts("ready");
    fflush(stdout);
    for (int is_ending = 0; !is_ending;) {
        struct epoll_event events[MOST];
        int found = epoll_wait(poller, events, MOST, -1);
        for (int index = 0; index < found; index++) {
            if (events[index].data.fd == STDIN_FILENO) {
                is_ending = found == 1;
            } else {
                while (recv(events[index].data.fd, data, sizeof data, 0) >= 0) received++;
            }
        }
    }
    printf("{\"received\": %llu}\n", (unsigned long long)received);
    return 0;
}

// One burst: from the first packet of a client to the last of the server.
struct burst {
    int64_t first, last, bytes;
    int in;
};

static void report(const struct burst *burst, int expected) {
    // Shorter ones are checks of the path and reports.
    if (burst->in != expected || burst->last <= burst->first) return;
    printf("{\"microseconds\": %.1f, \"bytes\": %lld}\n", (double)(burst->last - burst->first) / 1000,
           (long long)burst->bytes);
}

static int run_watch(char **arguments) {
    struct in_addr server = address_of(arguments[1], 0).sin_addr;
    int64_t gap = atoll(arguments[4]) * 1000;
    int least = atoi(arguments[2]), expected = atoi(arguments[3]), size = 256 << 20, on = 1;
    int descriptor = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_ALL));
    struct sockaddr_ll own = {
        .sll_family = AF_PACKET,
        .sll_protocol = htons(ETH_P_ALL),
        .sll_ifindex = (int)if_nametoindex(arguments[0]),
    };
    if (descriptor < 0 || bind(descriptor, (struct sockaddr *)&own, sizeof own) != 0) fail("watching");
    setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    if (setsockopt(descriptor, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) != 0) fail("time stamps");
    puts("ready");
    fflush(stdout);
    struct burst burst = {0};
    struct pollfd waited[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = descriptor, .events = POLLIN}};
    while (poll(waited, 2, -1) >= 0 && !(waited[0].revents && !waited[1].revents)) {
        uint8_t data[64];
        union {
            struct cmsghdr header;
            char bytes[CMSG_SPACE(sizeof(struct timespec))];
        } control;
        struct iovec part = {.iov_base = data, .iov_len = sizeof data};
        struct msghdr message = {
            .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
        ssize_t count = recvmsg(descriptor, &message, MSG_DONTWAIT | MSG_TRUNC);
        struct cmsghdr *item = CMSG_FIRSTHDR(&message);
        if (count < 28 || !item || data[0] >> 4 != 4 || data[9] != IPPROTO_UDP) continue;
        struct timespec stamp;
        memcpy(&stamp, CMSG_DATA(item), sizeof stamp);
        int64_t time = (int64_t)stamp.tv_sec * 1000000000 + stamp.tv_nsec;
        int is_from_server = memcmp(data + 12, &server, sizeof server) == 0;
        if (!is_from_server && count >= least) {
            if (time - burst.first > gap) {
                report(&burst, expected);
                burst = (struct burst){.first = time};
            }
            burst.in++;
        } else if (is_from_server && count >= least && burst.first) {
            burst.last = time;
            burst.bytes += count - 28;
        }
    }
    report(&burst, expected);
    struct tpacket_stats statistics = {0};
    socklen_t length = sizeof statistics;
    getsockopt(descriptor, SOL_PACKET, PACKET_STATISTICS, &statistics, &length);
    printf("{\"unseen\": %u}\n", statistics.tp_drops);
    return 0;
}

int main(int count, char **arguments) {
    if (count == 10 && strcmp(arguments[1], "send") == 0) return run_send(arguments + 2);
    if (count == 5 && strcmp(arguments[1], "sink") == 0) return run_sink(arguments + 2);
    if (count == 7 && strcmp(arguments[1], "watch") == 0) return run_watch(arguments + 2);
    fprintf(stderr, "Usage: see the top of kernel_cost.c.\n");
    return 2;
}
