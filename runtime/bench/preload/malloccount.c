/*
 * Counts what a process asks of the C library's allocator, for `eyas bench`: preloaded (LD_PRELOAD), it stands
 * before malloc and its relatives, counts, and passes on. The counts lie in the file that EYAS_MALLOC_COUNTS
 * names, two 64-bit numbers in the machine's own order: allocations, then frees; a realloc is one of each. The process that is measured
 * maps the same file, so that reading them allocates nothing and needs no call.
 *
 * glibc only: its own names for the functions need no dlsym, which allocates itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

struct counts {
	uint64_t allocations, frees;
};

/* What the loader allocates before the file is mapped is counted where nobody looks. */
static struct counts early;
static struct counts *counts = &early;

static void count(uint64_t *n) { __atomic_fetch_add(n, 1, __ATOMIC_RELAXED); }

__attribute__((constructor)) static void map_counts(void) {
	const char *path = getenv("EYAS_MALLOC_COUNTS");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	void *page = mmap(NULL, sizeof(struct counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (page != MAP_FAILED)
		counts = page;
}

void *malloc(size_t n) {
	count(&counts->allocations);
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size) {
	count(&counts->allocations);
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n) {
	if (p)
		count(&counts->frees);
	if (!p || n) /* glibc frees at a size of 0 */
		count(&counts->allocations);
	return __libc_realloc(p, n);
}

void free(void *p) {
	if (p)
		count(&counts->frees);
	__libc_free(p);
}

void *memalign(size_t alignment, size_t n) {
	count(&counts->allocations);
	return __libc_memalign(alignment, n);
}

void *aligned_alloc(size_t alignment, size_t n) {
	count(&counts->allocations);
	return __libc_memalign(alignment, n);
}

int posix_memalign(void **p, size_t alignment, size_t n) {
	if (alignment % sizeof(void *) || alignment == 0 || (alignment & (alignment - 1)))
		return EINVAL;
	count(&counts->allocations);
	void *got = __libc_memalign(alignment, n);
	if (!got)
		return ENOMEM;
	*p = got;
	return 0;
}
