/* eyasring reads the ring of one of Eyas' cameras. docs/frames.md describes the memory.
 *
 *   cc -O2 -std=c11 -o eyasring eyasring.c
 *   eyasring SOCKET                 say what the ring holds and how its newest frame is
 *   eyasring SOCKET save FILE       write the bytes of the newest frame
 *   eyasring SOCKET verify [slow]   check frames that a test has stamped, until the ring is over; slow copies with pauses
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
	VERSION = 1,
	AT_VERSION = 8, AT_SLOTS = 12, AT_MEMORY = 16, AT_FIRST = 24, AT_SLOT_BYTES = 32, AT_FRAME_BYTES = 40,
	AT_FORMAT = 48, AT_WIDTH = 56, AT_HEIGHT = 60, AT_PLANES = 72,
	AT_NEWEST = 192, AT_TICK = 208, AT_CLOSED = 212,
	SLOT_HEADS = 256, SLOT_HEAD = 64,
	AT_SEQUENCE = 0, AT_COUNT = 8, AT_SEQ = 16, AT_MONO = 24, AT_WALL = 32,
	TRIES = 16,
};

struct ring {
	const unsigned char *mem;
	uint64_t size, first, slot_bytes, frame_bytes;
	uint32_t slots;
};

/* A frame with the fields of its slot's header. */
struct frame {
	unsigned char *pix;
	uint64_t count, seq;
	int64_t mono, wall;
	uint64_t retried; /* copies thrown away so far: they may have been torn */
};

static void die(const char *what) { perror(what); exit(1); }
static void refuse(const char *why) { fprintf(stderr, "eyasring: %s\n", why); exit(1); }

static uint32_t u32(const unsigned char *p) { uint32_t v; memcpy(&v, p, sizeof v); return v; }
static uint64_t u64(const unsigned char *p) { uint64_t v; memcpy(&v, p, sizeof v); return v; }

/* The words that the writer changes while we read. */
static uint64_t load64(const struct ring *r, uint64_t at) {
	return atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)(r->mem + at), memory_order_acquire);
}
static uint32_t load32(const struct ring *r, uint64_t at) {
	return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)(r->mem + at), memory_order_acquire);
}

/* connect_to returns the descriptor that the writer's socket gives. A socket's address has room for 107 bytes, so the
 * path goes through a descriptor. */
static int connect_to(const char *path) {
	int file = open(path, O_PATH | O_CLOEXEC);
	if (file < 0) die(path);
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	snprintf(to.sun_path, sizeof to.sun_path, "/proc/self/fd/%d", file);
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s < 0 || connect(s, (struct sockaddr *)&to, sizeof to) < 0) die(path);
	close(file);

	unsigned char greeting[16];
	union { struct cmsghdr align; char space[CMSG_SPACE(sizeof(int))]; } control;
	struct iovec part = {greeting, sizeof greeting};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
	ssize_t n = recvmsg(s, &message, MSG_CMSG_CLOEXEC);
	if (n != sizeof greeting || memcmp(greeting, "EYASRING", 8) != 0 || u32(greeting + 8) != VERSION) refuse("it is no ring of this version");
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	if (u32(greeting + 12) == 0 || c == NULL || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) refuse("there is no ring now");
	int fd;
	memcpy(&fd, CMSG_DATA(c), sizeof fd);
	close(s);
	return fd;
}

/* map checks everything that later steps rely on, so that no ring, whoever made it, leads outside of its memory. */
static struct ring map(int fd) {
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK)) refuse("its memory is not sealed"); /* else it could shrink under us: SIGBUS */
	if (fstat(fd, &st) < 0) die("fstat");
	struct ring r = {.size = (uint64_t)st.st_size};
	if (r.size < SLOT_HEADS) refuse("its memory is too short");
	r.mem = mmap(NULL, r.size, PROT_READ, MAP_SHARED, fd, 0);
	if (r.mem == MAP_FAILED) die("mmap");
	close(fd);
	r.slots = u32(r.mem + AT_SLOTS);
	r.first = u64(r.mem + AT_FIRST);
	r.slot_bytes = u64(r.mem + AT_SLOT_BYTES);
	r.frame_bytes = u64(r.mem + AT_FRAME_BYTES);
	if (memcmp(r.mem, "EYASRING", 8) != 0 || u32(r.mem + AT_VERSION) != VERSION) refuse("it is no ring of this version");
	if (u64(r.mem + AT_MEMORY) != r.size || r.slots < 1 || r.slots > 255 || r.first > r.size ||
	    r.first < SLOT_HEADS + (uint64_t)SLOT_HEAD * r.slots || r.frame_bytes < 1 || r.frame_bytes > r.slot_bytes ||
	    r.slot_bytes > (r.size - r.first) / r.slots)
		refuse("its slots do not lie within its memory");
	return r;
}

static void copy(unsigned char *to, const unsigned char *from, uint64_t n, int slow) {
	if (!slow) {
		memcpy(to, from, n);
		return;
	}
	for (uint64_t at = 0; at < n; at += 8192) {
		memcpy(to + at, from + at, n - at < 8192 ? n - at : 8192);
		sched_yield();
	}
}

/* newest copies the newest frame: 1 for a whole one, 0 for none. */
static int newest(const struct ring *r, struct frame *f, int slow) {
	for (int i = 0; i < TRIES; i++) {
		uint64_t word = load64(r, AT_NEWEST);
		uint64_t slot = word & 0xff;
		if (word >> 8 == 0 || slot >= r->slots) return 0;
		uint64_t head = SLOT_HEADS + SLOT_HEAD * slot;
		uint64_t before = load64(r, head + AT_SEQUENCE);
		if (before % 2 != 0) continue; /* it is being written */
		atomic_thread_fence(memory_order_seq_cst);
		copy(f->pix, r->mem + r->first + slot * r->slot_bytes, r->frame_bytes, slow);
		f->count = u64(r->mem + head + AT_COUNT);
		f->seq = u64(r->mem + head + AT_SEQ);
		f->mono = (int64_t)u64(r->mem + head + AT_MONO);
		f->wall = (int64_t)u64(r->mem + head + AT_WALL);
		atomic_thread_fence(memory_order_seq_cst);
		if (load64(r, head + AT_SEQUENCE) == before) return 1;
		f->retried++;
	}
	return 0;
}

/* wait_newer returns 1 once more than count frames are published and the newest is not being overwritten, as it is where
 * all other slots are held; 0 when the ring is over. */
static int wait_newer(const struct ring *r, uint64_t count) {
	for (;;) {
		uint32_t tick = load32(r, AT_TICK); /* before what it announces */
		uint64_t word = load64(r, AT_NEWEST), slot = word & 0xff;
		if (word >> 8 > count && slot < r->slots && load64(r, SLOT_HEADS + SLOT_HEAD * slot + AT_SEQUENCE) % 2 == 0) return 1;
		if (load32(r, AT_CLOSED)) return 0;
		struct timespec most = {0, 50 * 1000 * 1000};
		syscall(SYS_futex, r->mem + AT_TICK, FUTEX_WAIT, tick, &most, NULL, 0);
	}
}

/* verify checks that each word of a frame is its number times an odd constant, as the writer of the test stamps it. Every
 * 64 frames it says how many it has checked and thrown away since. */
static int verify(const struct ring *r, struct frame *f, int slow) {
	uint64_t checked = 0;
	while (wait_newer(r, f->count)) {
		if (!newest(r, f, slow)) continue;
		uint64_t want = f->seq * UINT64_C(0x9E3779B97F4A7C15);
		for (uint64_t i = 0; i + 8 <= r->frame_bytes; i += 8)
			if (u64(f->pix + i) != want) {
				fprintf(stderr, "TORN: frame %llu differs at byte %llu\n", (unsigned long long)f->seq, (unsigned long long)i);
				return 3;
			}
		if (++checked % 64 == 0) {
			printf("64 %llu\n", (unsigned long long)f->retried);
			fflush(stdout);
			f->retried = 0;
		}
	}
	return 0;
}

static int save(const struct ring *r, const struct frame *f, const char *path) {
	FILE *out = fopen(path, "wb");
	if (out == NULL || fwrite(f->pix, 1, r->frame_bytes, out) != r->frame_bytes || fclose(out) != 0) die(path);
	return 0;
}

int main(int argc, char **argv) {
	const char *command = argc > 2 ? argv[2] : "print";
	int saving = strcmp(command, "save") == 0 && argc == 4, verifying = strcmp(command, "verify") == 0;
	if (argc < 2 || (argc > 2 && !saving && !verifying)) refuse("usage: eyasring SOCKET [save FILE | verify [slow]]");
	struct ring r = map(connect_to(argv[1]));
	struct frame f = {.pix = malloc(r.frame_bytes)};
	if (f.pix == NULL) die("malloc");
	if (verifying) return verify(&r, &f, argc > 3);
	if (!newest(&r, &f, 0)) refuse("no whole frame now");
	if (saving) return save(&r, &f, argv[3]);
	printf("%.8s %ux%u, %u planes, %u slots, frame %llu, publication %llu, captured %lld\n", (const char *)r.mem + AT_FORMAT,
	       u32(r.mem + AT_WIDTH), u32(r.mem + AT_HEIGHT), u32(r.mem + AT_PLANES), r.slots, (unsigned long long)f.seq,
	       (unsigned long long)f.count, (long long)f.wall);
	return 0;
}
