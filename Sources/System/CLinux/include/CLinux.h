#ifndef CLINUX_H
#define CLINUX_H

// What Linux has and Swift's Glibc module does not show: sealed shared memory, descriptors sent over sockets, and
// programs that end with the thread that started them. Functions answer what they made, or an error number below zero.

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Anonymous memory of `bytes` bytes that can never shrink, as a descriptor.
int clinux_memory(const char *name, size_t bytes);

// How many bytes a descriptor holds that can never shrink; -EINVAL where it can, or is something else.
int64_t clinux_sealed_size(int descriptor);

// The most descriptors that are taken from one message; further ones the kernel closes.
#define CLINUX_MOST_DESCRIPTORS 4

// Sends one message, with a descriptor unless that is -1. Never blocks.
ssize_t clinux_send(int socket, const void *bytes, size_t count, int descriptor);

// Takes one message and the descriptors that came with it. `is_cut` tells that the message was longer, or had more
// descriptors. Never blocks. 0 is the end: messages have at least one byte.
ssize_t clinux_receive(
    int socket, void *bytes, size_t count, int descriptors[CLINUX_MOST_DESCRIPTORS], int *descriptor_count, int *is_cut);

// A socket that keeps messages apart, listening at `path` for this user alone.
int clinux_listen(const char *path);
// Never waits: -EAGAIN where somebody listens and has let nobody in for a while.
int clinux_connect(const char *path);
int clinux_accept(int socket);
// Two sockets that are connected with one another.
int clinux_pair(int sockets[2]);
// A pipe whose reading end does not block; `descriptors` as pipe(2) has them.
int clinux_pipe(int descriptors[2], size_t capacity);
// Who opened the other end of a socket.
int clinux_peer(int socket, uid_t *user, pid_t *process);

// Waits until a descriptor can be read; 1 when it can, 0 when the time is over. Signals do not end the wait.
int clinux_wait_readable(int descriptor, int milliseconds);

// The most pipes that are emptied during one wait.
#define CLINUX_MOST_PIPES 2

// The same; meanwhile what comes out of pipes is read and thrown away, so that nobody who writes into them is held up.
int clinux_wait_discarding(int descriptor, int milliseconds, const int *pipes, int count);

// Starts the program at `path` in a process group of its own. `descriptors[n]` becomes its descriptor n, /dev/null where
// that is -1; it gets no others. It is killed when this process ends in whatever way.
pid_t clinux_start(
    const char *path, char *const arguments[], char *const environment[], const int *descriptors, int count);

// A descriptor that can be read once the process has ended.
int clinux_process_descriptor(pid_t process);

#endif
