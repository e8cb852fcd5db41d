#ifndef CLINUX_H
#define CLINUX_H

// Functions of Linux that Swift's Glibc module lacks: sealed shared memory, descriptors sent over sockets, epoll(7),
// programs that end with the thread that started them, and the error of the wall clock. They return the created object, or a negative error number.

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Anonymous memory of `bytes` bytes that can never shrink, as a descriptor.
int clinux_memory(const char *name, size_t bytes);

// The size of memory that can never shrink. -EINVAL if it can, or if the descriptor is of another kind.
int64_t clinux_sealed_size(int descriptor);

// The most descriptors accepted with one message. The kernel closes further ones.
#define CLINUX_MOST_DESCRIPTORS 4

// Sends one message, with a descriptor unless that is -1. Never blocks.
ssize_t clinux_send(int socket, const void *bytes, size_t count, int descriptor);

// Receives one message and its descriptors. Sets `is_cut` if the message was longer, or had more descriptors. Never
// blocks. Returns 0 at the end of the stream: messages have at least one byte.
ssize_t clinux_receive(
    int socket, void *bytes, size_t count, int descriptors[CLINUX_MOST_DESCRIPTORS], int *descriptor_count, int *is_cut);

// A socket that keeps message boundaries, listening at `path` for this user only.
int clinux_listen(const char *path);
// Never waits. Returns -EAGAIN if the listener has too many waiting connections.
int clinux_connect(const char *path);
int clinux_accept(int socket);
// A pair of connected sockets.
int clinux_pair(int sockets[2]);
// A pipe whose reading end does not block. `descriptors` is as for pipe(2).
int clinux_pipe(int descriptors[2], size_t capacity);
// The user that opened the other end of a socket.
int clinux_peer(int socket, uid_t *user, pid_t *process);

// A socket that is readable after each change of this machine's addresses (rtnetlink(7)). Its messages are of no interest.
int clinux_address_changes(void);

// Waits until a descriptor is readable. Returns 1 if it is, 0 after the timeout. Signals do not end the wait.
int clinux_wait_readable(int descriptor, int milliseconds);

// A poll of descriptors by any thread.
int clinux_poll(void);
// Polls a descriptor until its next event: it is readable, or its other end has hung up.
int clinux_poll_once(int poll, int descriptor, uint64_t id);
void clinux_poll_no_more(int poll, int descriptor);
// Waits for events. Returns how many of `ids` have one, or 0 after a signal.
int clinux_polled(int poll, uint64_t *ids, int count);

// The most pipes that are drained during one wait.
#define CLINUX_MOST_PIPES 2

// The same, and meanwhile drains pipes, so that programs that write to them do not block.
int clinux_wait_discarding(int descriptor, int milliseconds, const int *pipes, int count);

// Starts the program at `path` in its own process group. `descriptors[n]` becomes its descriptor n, or /dev/null if
// that
// is -1; it inherits no others. It is killed when this process ends in any way. Returns -ETIMEDOUT if the kernel has not
// opened the program in time, because its file system is not responding; it does not run then.
pid_t clinux_start(
    const char *path, char *const arguments[], char *const environment[], const int *descriptors, int count,
    int milliseconds);

// A descriptor that becomes readable when the process ends.
int clinux_process_descriptor(pid_t process);

// The largest error of the wall clock in microseconds, by the kernel's estimate. -1 if nothing synchronises it.
int64_t clinux_wall_clock_error(void);

#endif
