#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// posix_spawn cannot request the signal at the parent's end, and Swift has no fork. The kernel sends that signal when
// the *thread* that started the program ends. So one thread that never ends starts all programs.

#define MOST_DESCRIPTORS 8

struct order {
    const char *path;
    char *const *arguments;
    char *const *environment;
    const int *descriptors;
    int count;
    pid_t answer;
    int is_done;
    struct order *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ordered = PTHREAD_COND_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static struct order *orders;

// Runs in the parent's memory while the parent's thread waits. It makes only calls that are safe there, and changes
// only
// this stack.
static void become(const struct order *order, pid_t parent, volatile int *error) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The parent may have ended before this call.
    if (getppid() != parent) _exit(127);
    // Resets handlers, which the program lacks, and signals that the parent ignores (SIGPIPE).
    for (int number = 1; number < NSIG; number++)
        if (number != SIGKILL && number != SIGSTOP) signal(number, SIG_DFL);
    // First moves the descriptors away from their final numbers.
    int moved[MOST_DESCRIPTORS];
    for (int index = 0; index < order->count; index++) {
        int from = order->descriptors[index] >= 0 ? order->descriptors[index] : open("/dev/null", O_RDWR);
        moved[index] = from < 0 ? -1 : fcntl(from, F_DUPFD, 64);
        if (moved[index] < 0) goto failed;
    }
    for (int index = 0; index < order->count; index++)
        if (dup2(moved[index], index) < 0) goto failed;
    if (syscall(SYS_close_range, (unsigned)order->count, ~0u, 0) != 0)
        for (int number = order->count; number < 4096; number++) close(number);
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    execve(order->path, order->arguments, order->environment);
failed:
    *error = errno;
    _exit(127);
}

static pid_t start(const struct order *order) {
    volatile int error = 0;
    pid_t parent = getpid();
    // This thread blocks every signal, so no handler of the parent runs in the child.
    pid_t process = vfork();
    if (process == 0) become(order, parent, &error);
    if (process < 0) return -errno;
    if (error == 0) return process;
    // It has ended already, and no other code may be notified.
    siginfo_t ended;
    while (waitid(P_PID, (id_t)process, &ended, WEXITED) != 0 && errno == EINTR) {}
    return -error;
}

static void *start_all(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    while (1) {
        while (!orders) pthread_cond_wait(&ordered, &lock);
        struct order *order = orders;
        orders = order->next;
        pthread_mutex_unlock(&lock);
        pid_t answer = start(order);
        pthread_mutex_lock(&lock);
        order->answer = answer;
        order->is_done = 1;
        pthread_cond_broadcast(&done);
    }
    return NULL;
}

static int thread_error;

static void make_thread(void) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    thread_error = pthread_create(&thread, NULL, start_all, NULL);
    if (thread_error == 0) {
        pthread_setname_np(thread, "starts programs");
        pthread_detach(thread);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

pid_t clinux_start(
    const char *path, char *const arguments[], char *const environment[], const int *descriptors, int count) {
    if (count > MOST_DESCRIPTORS) return -EINVAL;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_thread);
    if (thread_error != 0) return -thread_error;
    struct order order = {
        .path = path, .arguments = arguments, .environment = environment, .descriptors = descriptors, .count = count};
    pthread_mutex_lock(&lock);
    struct order **last = &orders;
    while (*last) last = &(*last)->next;
    *last = &order;
    pthread_cond_signal(&ordered);
    while (!order.is_done) pthread_cond_wait(&done, &lock);
    pthread_mutex_unlock(&lock);
    return order.answer;
}

int clinux_process_descriptor(pid_t process) {
    int made = (int)syscall(SYS_pidfd_open, process, 0);
    return made < 0 ? -errno : made;
}
