// Swift's Glibc module lacks it.
#include <sys/epoll.h>
