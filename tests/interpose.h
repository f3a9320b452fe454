#ifndef INTERPOSE_H
#define INTERPOSE_H
/* The allocator and pthread_create, counted, and made to fail at the n-th call. For one test program each. INTERPOSED is 0
 * where the allocator is not ours to replace (sanitizers, other C libraries); the counters stay zero then. */

#include <pthread.h>
#include <stddef.h>

#define INTERPOSED 1
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#undef  INTERPOSED
#define INTERPOSED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#undef  INTERPOSED
#define INTERPOSED 0
#endif
#endif

static _Atomic long taken, held, started;       /* calls to the allocator, blocks not freed, threads started */
static _Atomic long fail_at;                    /* 1: the next call fails, and so on; 0: none */

/* the program is linked with -Wl,--wrap=pthread_create */
int   __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg);
int   __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg) {
    started++;
    return __real_pthread_create(thread, attr, start, arg);
}

/* No test uses them all. */
static inline void interpose_used(void) { (void) taken, (void) held, (void) started, (void) fail_at; }

#if INTERPOSED
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void  __libc_free(void *p);
int   posix_memalign(void **p, size_t alignment, size_t size);

static int refused(void) {
    taken++;
    return fail_at > 0 && --fail_at == 0;
}
static void *counted(void *p) {
    if (p) held++;
    return p;
}
void *malloc(size_t size)                           { return refused() ? NULL : counted(__libc_malloc(size)); }
void *calloc(size_t n, size_t size)                 { return refused() ? NULL : counted(__libc_calloc(n, size)); }
void *aligned_alloc(size_t alignment, size_t size)  { return refused() ? NULL : counted(__libc_memalign(alignment, size)); }
void *realloc(void *p, size_t size) {
    if (refused()) return NULL;
    return p ? __libc_realloc(p, size) : counted(__libc_realloc(p, size));
}
int posix_memalign(void **p, size_t alignment, size_t size) {
    *p = refused() ? NULL : counted(__libc_memalign(alignment, size));
    return *p ? 0 : 12;
}
void free(void *p) {
    if (p) held--;
    __libc_free(p);
}
#endif

#endif
