#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// posix_spawn cannot request the signal at the parent's end, and Swift has no fork. The kernel sends that signal when
// the *thread* that started the program ends. So one thread that never ends starts all programs.
//
// That thread waits until the kernel has opened the program, which a dead file system may delay without limit. So each
// order has a limit, and another thread starts the next programs meanwhile.

#define MOST_DESCRIPTORS 8
// Beyond that, orders wait until one of them goes on.
#define MOST_STARTERS 16

// Copies, because the caller may give up while the kernel still reads them.
struct order {
    char *path;
    char **arguments;
    char **environment;
    int descriptors[MOST_DESCRIPTORS];
    int count;
    pid_t answer;
    enum { WAITING, STARTING, DONE } state;
    // Nobody waits for it any more: its thread releases it.
    int is_abandoned;
    struct order *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ordered = PTHREAD_COND_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static struct order *orders;
// The threads, and how many of them have nothing to do.
static int starters, idle;

static void release_words(char **words) {
    if (!words) return;
    for (char **word = words; *word; word++) free(*word);
    free(words);
}

static char **copy_words(char *const words[]) {
    size_t count = 0;
    while (words[count]) count++;
    char **copies = calloc(count + 1, sizeof *copies);
    if (!copies) return NULL;
    for (size_t index = 0; index < count; index++) {
        copies[index] = strdup(words[index]);
        if (!copies[index]) {
            release_words(copies);
            return NULL;
        }
    }
    return copies;
}

static void release(struct order *order) {
    for (int index = 0; index < order->count; index++)
        if (order->descriptors[index] >= 0) close(order->descriptors[index]);
    free(order->path);
    release_words(order->arguments);
    release_words(order->environment);
    free(order);
}

// Sets `error` if it returns NULL.
static struct order *make_order(
    const char *path, char *const arguments[], char *const environment[], const int *descriptors, int count,
    int *error) {
    struct order *order = calloc(1, sizeof *order);
    *error = ENOMEM;
    if (!order) return NULL;
    order->path = strdup(path);
    order->arguments = copy_words(arguments);
    order->environment = copy_words(environment);
    int is_whole = order->path && order->arguments && order->environment;
    for (; is_whole && order->count < count; order->count++) {
        int given = descriptors[order->count];
        int copy = given < 0 ? -1 : fcntl(given, F_DUPFD_CLOEXEC, 0);
        order->descriptors[order->count] = copy;
        if (given < 0 || copy >= 0) continue;
        *error = errno;
        is_whole = 0;
        break;
    }
    if (is_whole) return order;
    release(order);
    return NULL;
}

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
        idle++;
        while (!orders) pthread_cond_wait(&ordered, &lock);
        idle--;
        struct order *order = orders;
        orders = order->next;
        order->state = STARTING;
        pthread_mutex_unlock(&lock);
        pid_t answer = start(order);
        pthread_mutex_lock(&lock);
        order->answer = answer;
        order->state = DONE;
        pthread_cond_broadcast(&done);
        if (!order->is_abandoned) continue;
        pthread_mutex_unlock(&lock);
        release(order);
        if (answer > 0) {
            kill(-answer, SIGKILL);
            kill(answer, SIGKILL);
            while (waitpid(answer, NULL, 0) < 0 && errno == EINTR) {}
        }
        pthread_mutex_lock(&lock);
    }
    return NULL;
}

// With the lock. Returns an error number.
static int make_thread(void) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    int error = pthread_create(&thread, NULL, start_all, NULL);
    if (error == 0) {
        starters++;
        pthread_setname_np(thread, "starts programs");
        pthread_detach(thread);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static struct timespec later(int milliseconds) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_sec += milliseconds / 1000;
    time.tv_nsec += milliseconds % 1000 * 1000000L;
    if (time.tv_nsec >= 1000000000L) {
        time.tv_sec++;
        time.tv_nsec -= 1000000000L;
    }
    return time;
}

// With the lock. Returns at `limit` at the latest.
static void wait_for(const struct order *order, struct timespec limit) {
    while (order->state != DONE)
        if (pthread_cond_clockwait(&done, &lock, CLOCK_MONOTONIC, &limit) == ETIMEDOUT) return;
}

pid_t clinux_start(
    const char *path, char *const arguments[], char *const environment[], const int *descriptors, int count,
    int milliseconds) {
    if (count > MOST_DESCRIPTORS) return -EINVAL;
    int error = 0;
    struct order *order = make_order(path, arguments, environment, descriptors, count, &error);
    if (!order) return -error;
    pthread_mutex_lock(&lock);
    if (starters == 0 && (error = make_thread()) != 0) {
        pthread_mutex_unlock(&lock);
        release(order);
        return -error;
    }
    struct order **last = &orders;
    while (*last) last = &(*last)->next;
    *last = order;
    pthread_cond_signal(&ordered);
    struct timespec limit = later(milliseconds);
    // The thread before it may hang. A quarter of the limit is long for a program that starts.
    wait_for(order, later(milliseconds / 4));
    if (order->state == WAITING && idle == 0 && starters < MOST_STARTERS) make_thread();
    wait_for(order, limit);
    if (order->state == DONE) {
        pid_t answer = order->answer;
        pthread_mutex_unlock(&lock);
        release(order);
        return answer;
    }
    int is_starting = order->state == STARTING;
    if (is_starting) {
        order->is_abandoned = 1;
    } else {
        last = &orders;
        while (*last != order) last = &(*last)->next;
        *last = order->next;
    }
    pthread_mutex_unlock(&lock);
    if (!is_starting) release(order);
    return -ETIMEDOUT;
}

int clinux_process_descriptor(pid_t process) {
    int made = (int)syscall(SYS_pidfd_open, process, 0);
    return made < 0 ? -errno : made;
}
