/* Makes argv[1] allocations of each kind, and frees all but argv[2] of the first kind. */
#include <stdlib.h>

int main(int argc, char **argv) {
	int n = argc > 1 ? atoi(argv[1]) : 0, kept = argc > 2 ? atoi(argv[2]) : 0;
	for (int i = 0; i < n; i++) {
		void *volatile p = malloc(100);
		if (i >= kept)
			free(p);
		void *volatile q = calloc(3, 50);
		q = realloc(q, 5000);
		free(q);
		free(NULL);
		void *r;
		if (posix_memalign(&r, 64, 1000) || (size_t)r % 64 || posix_memalign(&r, 3, 1000) == 0)
			return 1;
		free(r);
		void *volatile s = aligned_alloc(256, 512);
		if ((size_t)s % 256)
			return 2;
		free(s);
	}
	return 0;
}
