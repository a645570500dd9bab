#include "alloc.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef _Atomic int64_t counter;

static void add(counter *c, int64_t n) { atomic_fetch_add_explicit(c, n, memory_order_relaxed); }
static int64_t get(const counter *c) { return atomic_load_explicit((counter *)c, memory_order_relaxed); }
static size_t align(size_t n) { return (n + EYAS_ALIGN - 1) & ~(size_t)(EYAS_ALIGN - 1); }

// Sums of many threads.
typedef struct {
  counter runs, arena, spill, heap, arena_bytes, spill_bytes, heap_bytes, mismatches, kept, heap_live;
} counters;

static counters total;

static eyas_counts read_counters(const counters *c) {
  return (eyas_counts){get(&c->runs),       get(&c->arena),      get(&c->spill),
                       get(&c->heap),       get(&c->arena_bytes), get(&c->spill_bytes), get(&c->heap_bytes),
                       get(&c->mismatches), get(&c->kept),       get(&c->heap_live)};
}

static void fold(counters *c, const eyas_counts *n) {
  add(&c->runs, n->runs);
  add(&c->arena, n->arena);
  add(&c->spill, n->spill);
  add(&c->heap, n->heap);
  add(&c->arena_bytes, n->arena_bytes);
  add(&c->spill_bytes, n->spill_bytes);
  add(&c->heap_bytes, n->heap_bytes);
  add(&c->mismatches, n->mismatches);
  add(&c->kept, n->kept);
}

eyas_counts eyas_total(void) { return read_counters(&total); }

// --- the quota and the heap ---

// A quota has one reference of its owner, of each lane that has it, and of each block
// charged to it.
struct eyas_quota {
  counter used, peak, refs;
  int64_t limit;
};

eyas_quota *eyas_quota_new(int64_t limit) {
  eyas_quota *q = calloc(1, sizeof *q);
  if (!q) return NULL;
  q->limit = limit;
  add(&q->refs, 1);
  return q;
}

void eyas_quota_drop(eyas_quota *q) {
  if (q && atomic_fetch_sub(&q->refs, 1) == 1) free(q);
}

void eyas_quota_get(eyas_quota *q, int64_t *used, int64_t *peak) {
  *used = get(&q->used);
  *peak = get(&q->peak);
}

static int charge(eyas_quota *q, int64_t n) {
  int64_t used = atomic_load(&q->used);
  do {
    if (n > q->limit - used) return 0;
  } while (!atomic_compare_exchange_weak(&q->used, &used, used + n));
  int64_t peak = atomic_load(&q->peak);
  while (peak < used + n && !atomic_compare_exchange_weak(&q->peak, &peak, used + n)) {
  }
  add(&q->refs, 1);
  return 1;
}

// header lies in front of every block that has no slot.
typedef struct {
  size_t size;  // as asked for; 0: a piece of a spill block that is free
  size_t piece; // of a spill block: bytes up to the next one's header
  eyas_quota *quota;
  uint64_t run; // the recorded run that it belongs to; 0: none
  uint32_t id;  // its number in that run
  uint32_t mapped;
} header;

_Static_assert(sizeof(header) <= EYAS_ALIGN, "a header fits in front of an aligned block");

static __thread int64_t watched;
static __thread int watching;

void eyas_watch(void) {
  watched = 0;
  watching = 1;
}

int64_t eyas_watched(void) {
  watching = 0;
  return watched;
}

// once says that what is asked for is not going to be asked for again and again: by the creation
// of a session, by a recorded run or a lane's first one. Large blocks then have pages of their own, which
// the system has back when they are freed. From malloc they would stay with the process: when
// glibc frees a block that it has mapped, it maps none of that size any more, and keeps twice
// as much in each of its arenas. In every run the new pages would cost more than that is worth.
enum { LARGE = 128 << 10 };

static size_t whole(size_t size) { return EYAS_ALIGN + size + EYAS_OVERRUN; }

static void *get_block(size_t size, int mapped) {
  void *block;
  if (!mapped) return posix_memalign(&block, EYAS_ALIGN, whole(size)) == 0 ? block : NULL;
  block = mmap(NULL, whole(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return block == MAP_FAILED ? NULL : block;
}

static header *heap_alloc(size_t size, eyas_quota *q, int once) {
  if (size > SIZE_MAX / 4) return NULL;
  if (q && !charge(q, (int64_t)size)) return NULL;
  uint32_t mapped = once && size >= LARGE;
  header *h = get_block(size, (int)mapped);
  if (!h) {
    if (q) {
      add(&q->used, -(int64_t)size);
      eyas_quota_drop(q);
    }
    return NULL;
  }
  *h = (header){.size = size, .quota = q, .mapped = mapped};
  add(&total.heap_live, (int64_t)size);
  return h;
}

static void heap_free(header *h) {
  add(&total.heap_live, -(int64_t)h->size);
  if (h->quota) {
    add(&h->quota->used, -(int64_t)h->size);
    eyas_quota_drop(h->quota);
  }
  if (h->mapped)
    munmap(h, whole(h->size));
  else
    free(h);
}

// --- the arena ---

// taken is a block in the space of the slots during a recorded run. It lies outside of
// that space, so that a run that follows its plan fits an arena without a byte to spare.
typedef struct {
  size_t at, end; // in the arena
  size_t size;    // as asked for
  uint32_t id;    // of the request
} taken;

struct eyas_arena {
  char *base;
  size_t slots, spill;
  // Blocks in the space of the slots that no lane counts as its own: those in use at the
  // end of a run, less those freed since or by a thread without the lane, and those of a
  // recorded run. While it is not 0, no slot is handed out.
  _Atomic int64_t kept;
  pthread_mutex_t mu; // guards all of the following: blocks are freed by any thread
  int64_t spilled;    // pieces of the spill block in use
  int recording;      // a run is served from the space of the slots
  taken *taken;       // its blocks, by place
  size_t count, room;
  eyas_arena *next; // guarded by arenas_mu instead
};

// All arenas: a free by another thread than the lane's has to find the owner.
static pthread_mutex_t arenas_mu = PTHREAD_MUTEX_INITIALIZER;
static eyas_arena *arenas;

static header *spill_begin(const eyas_arena *a) { return (header *)(a->base + a->slots); }
static header *spill_end(const eyas_arena *a) { return (header *)(a->base + a->slots + a->spill); }
static header *after(header *h) { return (header *)((char *)h + h->piece); }

eyas_arena *eyas_arena_new(void *base, size_t slots, size_t spill) {
  eyas_arena *a = calloc(1, sizeof *a);
  if (!a) return NULL;
  a->base = base;
  a->slots = slots;
  a->spill = spill < 2 * EYAS_ALIGN ? 0 : spill;
  if (a->spill) *spill_begin(a) = (header){.piece = a->spill};
  pthread_mutex_init(&a->mu, NULL);
  pthread_mutex_lock(&arenas_mu);
  a->next = arenas;
  arenas = a;
  pthread_mutex_unlock(&arenas_mu);
  return a;
}

int eyas_arena_free(eyas_arena *a) {
  pthread_mutex_lock(&arenas_mu);
  pthread_mutex_lock(&a->mu);
  int idle = atomic_load(&a->kept) == 0 && a->spilled == 0;
  pthread_mutex_unlock(&a->mu);
  if (idle) {
    eyas_arena **at = &arenas;
    while (*at != a) at = &(*at)->next;
    *at = a->next;
  }
  pthread_mutex_unlock(&arenas_mu);
  if (!idle) return 0;
  pthread_mutex_destroy(&a->mu);
  free(a->taken);
  free(a);
  return 1;
}

int64_t eyas_arena_kept(const eyas_arena *a) { return atomic_load(&((eyas_arena *)a)->kept); }

static int in_slots(const eyas_arena *a, const void *p) { return (uintptr_t)p - (uintptr_t)a->base < a->slots; }

static int contains(const eyas_arena *a, const void *p) {
  return (uintptr_t)p - (uintptr_t)a->base < a->slots + a->spill;
}

static eyas_arena *owner_of(const void *p) {
  pthread_mutex_lock(&arenas_mu);
  eyas_arena *a = arenas;
  while (a && !contains(a, p)) a = a->next;
  pthread_mutex_unlock(&arenas_mu);
  return a;
}

// spill_alloc takes the first piece that is large enough: there are few.
static header *spill_alloc(eyas_arena *a, size_t size) {
  if (size > a->spill) return NULL;
  size_t need = align(size) + EYAS_ALIGN;
  header *end = spill_end(a), *found = NULL;
  pthread_mutex_lock(&a->mu);
  for (header *h = spill_begin(a); h < end && !found; h = after(h)) {
    if (h->size) continue;
    while (after(h) < end && !after(h)->size) h->piece += after(h)->piece;
    if (h->piece < need) continue;
    size_t rest = h->piece - need;
    *h = (header){.size = size, .piece = need};
    if (rest > 0) *after(h) = (header){.piece = rest};
    a->spilled++;
    found = h;
  }
  pthread_mutex_unlock(&a->mu);
  return found;
}

// gap returns the index in taken of a block that would begin at *at, or at the lowest
// place that is free; SIZE_MAX if there is no room. need is at most a->slots.
static size_t gap(const eyas_arena *a, size_t need, size_t *at) {
  size_t i = 0;
  if (*at != SIZE_MAX) {
    while (i < a->count && a->taken[i].end <= *at) i++;
  } else {
    for (*at = 0; i < a->count && a->taken[i].at - *at < need; i++) *at = a->taken[i].end;
  }
  size_t end = i < a->count ? a->taken[i].at : a->slots;
  return *at <= end && need <= end - *at ? i : SIZE_MAX;
}

// area_alloc takes a block of the space of the slots: at the place named, or at the first that is
// large enough for SIZE_MAX.
static void *area_alloc(eyas_arena *a, size_t size, size_t at, uint32_t id) {
  void *p = NULL;
  if (size > a->slots) return NULL;
  pthread_mutex_lock(&a->mu);
  if (a->recording && a->count == a->room) {
    taken *more = realloc(a->taken, (2 * a->room + 64) * sizeof *more);
    if (more) {
      a->taken = more;
      a->room = 2 * a->room + 64;
    }
  }
  size_t i = a->recording && a->count < a->room ? gap(a, align(size), &at) : SIZE_MAX;
  if (i != SIZE_MAX) {
    memmove(&a->taken[i + 1], &a->taken[i], (a->count++ - i) * sizeof *a->taken);
    a->taken[i] = (taken){at, at + align(size), size, id};
    atomic_fetch_add(&a->kept, 1);
    p = a->base + at;
  }
  pthread_mutex_unlock(&a->mu);
  return p;
}

// area_open lets a run have the space of the slots, unless one of them is in use.
static void area_open(eyas_arena *a) {
  pthread_mutex_lock(&a->mu);
  a->recording = atomic_load(&a->kept) == 0;
  a->count = 0;
  pthread_mutex_unlock(&a->mu);
}

static void area_close(eyas_arena *a) {
  pthread_mutex_lock(&a->mu);
  a->recording = 0;
  pthread_mutex_unlock(&a->mu);
}

// --- lanes ---

enum { IDLE, LIVE, FREED }; // of a slot, in a run

struct eyas_lane {
  eyas_quota *quota;

  // The plan.
  eyas_arena *arena; // NULL: plain
  eyas_slot *slots;
  uint32_t *order; // slots by the rank of their free
  uint32_t count, frees;
  int open, check;
  uint32_t shrunk; // see eyas_lane_shrink
  size_t shrink;

  // The run. Only its thread is here.
  unsigned char *state; // of each slot
  size_t *asked;        // bytes of each slot that is in use
  uint32_t next;        // number of the next request
  uint32_t freed;       // the first frees of the recording that have happened
  uint32_t live;        // slots in use
  int lost;             // left the recording
  int once; // see heap_alloc
  int refused;
  uint32_t broken;
  eyas_counts now;
  eyas_mismatch mismatch;

  // The recording.
  int record;
  eyas_arena *area; // that serves it; NULL: the heap
  uint64_t run; // the recorded run; unique in the process
  eyas_event *events;
  size_t recorded, room;
  int dropped; // out of memory for events

  counters sum;
};

static __thread eyas_lane *current;

eyas_lane *eyas_lane_new(void) {
  eyas_lane *l = calloc(1, sizeof *l);
  if (l) l->shrunk = l->broken = EYAS_NONE;
  return l;
}

void eyas_lane_plain(eyas_lane *l) {
  free(l->slots);
  free(l->order);
  free(l->state);
  free(l->asked);
  l->arena = NULL;
  l->slots = NULL;
  l->order = NULL;
  l->state = NULL;
  l->asked = NULL;
  l->count = l->frees = 0;
}

void eyas_lane_free(eyas_lane *l) {
  if (!l) return;
  eyas_lane_plain(l);
  eyas_quota_drop(l->quota);
  free(l->events);
  free(l);
}

void eyas_lane_limit(eyas_lane *l, eyas_quota *q) {
  if (q) add(&q->refs, 1);
  eyas_quota_drop(l->quota);
  l->quota = q;
}

void eyas_lane_record(eyas_lane *l, eyas_arena *a) {
  l->record = 1;
  l->area = a;
}

int eyas_lane_refused(const eyas_lane *l) { return l->refused; }
uint32_t eyas_lane_broken(const eyas_lane *l) { return l->broken; }
eyas_mismatch eyas_lane_mismatch(const eyas_lane *l) { return l->mismatch; }
eyas_counts eyas_lane_counts(const eyas_lane *l) { return read_counters(&l->sum); }

void eyas_lane_shrink(eyas_lane *l, uint32_t id, size_t bytes) {
  l->shrunk = id;
  l->shrink = bytes;
}

const eyas_event *eyas_lane_events(eyas_lane *l, size_t *count) {
  *count = l->recorded;
  return l->dropped ? NULL : l->events;
}

int eyas_lane_replay(eyas_lane *l, eyas_arena *a, const eyas_slot *slots, uint32_t count, int open, int check) {
  eyas_lane_plain(l);
  l->slots = calloc((size_t)count + 1, sizeof *l->slots);
  l->order = calloc((size_t)count + 1, sizeof *l->order);
  l->state = calloc((size_t)count + 1, sizeof *l->state);
  l->asked = calloc((size_t)count + 1, sizeof *l->asked);
  if (!l->slots || !l->order || !l->state || !l->asked) {
    eyas_lane_plain(l);
    return 0;
  }
  if (count > 0) memcpy(l->slots, slots, count * sizeof *slots);
  for (uint32_t i = 0; i < count; i++) {
    if (slots[i].size == 0 || slots[i].rank == EYAS_NONE) continue;
    l->order[slots[i].rank] = i;
    l->frees++;
  }
  l->count = count;
  l->open = open;
  l->check = check;
  l->arena = a;
  return 1;
}

static void leave(eyas_lane *l, int why, size_t size, size_t slot) {
  l->lost = 1;
  l->now.mismatches = 1;
  l->mismatch = (eyas_mismatch){why, l->next, size, slot};
}

void eyas_lane_begin(eyas_lane *l) {
  static _Atomic uint64_t runs;
  l->next = l->freed = l->live = 0;
  l->lost = l->refused = 0;
  l->once = l->record || get(&l->sum.runs) == 0;
  l->broken = EYAS_NONE;
  l->now = (eyas_counts){.runs = 1};
  if (l->record) {
    l->run = atomic_fetch_add(&runs, 1) + 1;
    l->recorded = 0;
    l->dropped = 0;
    if (!l->events) {
      l->room = 1024;
      l->events = malloc(l->room * sizeof *l->events);
      l->dropped = !l->events;
    }
    if (l->area) area_open(l->area);
  } else if (l->arena) {
    memset(l->state, IDLE, l->count);
    if (atomic_load(&l->arena->kept) != 0) leave(l, EYAS_KEPT, 0, 0);
  }
  current = l;
}

// --- guards ---

enum { GUARD = 0xA5, POISON = 0xFF }; // POISON makes NaN of every float type

static void guard(eyas_lane *l, uint32_t id) {
  const eyas_slot *s = &l->slots[id];
  char *p = l->arena->base + s->offset;
  size_t n = l->asked[id];
  if (id == l->shrunk) n -= l->shrink < n ? l->shrink : n;
  l->asked[id] = n;
  memset(p, POISON, n);
  memset(p + n, GUARD, s->size + EYAS_GUARD - n);
}

static void verify(eyas_lane *l, uint32_t id) {
  const eyas_slot *s = &l->slots[id];
  const unsigned char *p = (unsigned char *)l->arena->base + s->offset;
  for (size_t i = l->asked[id]; i < s->size + EYAS_GUARD; i++)
    if (p[i] != GUARD && l->broken == EYAS_NONE) l->broken = id;
}

void eyas_lane_end(eyas_lane *l) {
  current = NULL;
  if (!l->record && l->arena && l->live > 0) {
    l->now.kept = l->live;
    atomic_fetch_add(&l->arena->kept, l->live);
    for (uint32_t i = 0; l->check && i < l->count; i++)
      if (l->state[i] == LIVE) verify(l, i);
  }
  if (l->area) area_close(l->area);
  l->area = NULL;
  l->record = 0;
  fold(&l->sum, &l->now);
  fold(&total, &l->now);
}

// --- requests ---

static void note(eyas_lane *l, uint32_t id, uint32_t freed, size_t size) {
  if (l->recorded == l->room && !l->dropped) {
    eyas_event *more = realloc(l->events, 2 * l->room * sizeof *more);
    if (more) {
      l->events = more;
      l->room *= 2;
    }
    l->dropped = !more;
  }
  if (!l->dropped) l->events[l->recorded++] = (eyas_event){id, freed, size};
}

// slot_alloc returns NULL if the request has to be served from elsewhere.
static void *slot_alloc(eyas_lane *l, size_t size) {
  if (l->lost) return NULL;
  if (l->next == l->count) {
    if (!l->open) leave(l, EYAS_TOO_MANY, size, 0);
    return NULL;
  }
  uint32_t id = l->next;
  const eyas_slot *s = &l->slots[id];
  while (l->freed < l->frees && l->state[l->order[l->freed]] == FREED) l->freed++;
  if (s->size > 0 && (size > s->size || l->freed < s->need)) {
    leave(l, size > s->size ? EYAS_TOO_LARGE : EYAS_TOO_EARLY, size, s->size);
    return NULL;
  }
  l->next++;
  if (s->size == 0) return NULL;
  l->state[id] = LIVE;
  l->asked[id] = size;
  l->live++;
  l->now.arena++;
  l->now.arena_bytes += (int64_t)size;
  if (l->check) guard(l, id);
  return l->arena->base + s->offset;
}

// slot_at finds the slot in use at offset. The next one in the order of the recording
// comes first: in a run that follows it, that is the one.
static uint32_t slot_at(eyas_lane *l, size_t offset) {
  while (l->freed < l->frees && l->state[l->order[l->freed]] == FREED) l->freed++;
  if (l->freed < l->frees) {
    uint32_t id = l->order[l->freed];
    if (l->state[id] == LIVE && l->slots[id].offset == offset) return id;
  }
  for (uint32_t i = 0; i < l->next; i++)
    if (l->state[i] == LIVE && l->slots[i].offset == offset) return i;
  return EYAS_NONE;
}

// slot_free is 0 if p is no slot of the lane's run.
static int slot_free(eyas_lane *l, char *p) {
  uint32_t id = slot_at(l, (size_t)(p - l->arena->base));
  if (id == EYAS_NONE) return 0;
  l->state[id] = FREED;
  l->live--;
  if (l->check) {
    verify(l, id);
    memset(p, POISON, l->slots[id].size + EYAS_GUARD);
  }
  return 1;
}

static void *block_of(header *h) { return h ? (char *)h + EYAS_ALIGN : NULL; }

// unplanned serves a request from the spill block, then from the heap.
static header *unplanned(eyas_lane *l, eyas_arena *a, eyas_quota *q, size_t size) {
  header *h = a ? spill_alloc(a, size) : NULL;
  if (h) {
    l->now.spill++;
    l->now.spill_bytes += (int64_t)size;
    return h;
  }
  if (!(h = heap_alloc(size, q, l->once))) {
    l->refused = 1;
    return NULL;
  }
  l->now.heap++;
  l->now.heap_bytes += (int64_t)size;
  return h;
}

// area_place returns where the lane's plan for the arena has its next request, for as long
// as the run goes by it: SIZE_MAX for anywhere, and in_spill for one that outlives the run.
static size_t area_place(const eyas_lane *l, size_t size, int *in_spill) {
  *in_spill = 0;
  if (l->arena != l->area || l->next >= l->count) return SIZE_MAX;
  const eyas_slot *s = &l->slots[l->next];
  *in_spill = s->size == 0;
  return s->size < size ? SIZE_MAX : s->offset;
}

static void *record_in(eyas_lane *l, size_t size) {
  int in_spill;
  size_t at = area_place(l, size, &in_spill);
  if (in_spill) return NULL;
  void *p = area_alloc(l->area, size, at, l->next);
  if (!p && at != SIZE_MAX) p = area_alloc(l->area, size, SIZE_MAX, l->next);
  if (p) {
    l->now.arena++;
    l->now.arena_bytes += (int64_t)size;
  }
  return p;
}

static void *record_alloc(eyas_lane *l, size_t size) {
  void *p = l->area ? record_in(l, size) : NULL;
  if (!p) {
    header *h = unplanned(l, l->area, l->area ? l->quota : NULL, size);
    if (!h) return NULL;
    h->run = l->run;
    h->id = l->next;
    p = block_of(h);
  }
  note(l, l->next++, 0, size);
  return p;
}

static void note_free(eyas_lane *l, const header *h) {
  if (l && l->record && h->run == l->run) note(l, h->id, 1, h->size);
}

// area_free frees what is no slot of the thread's run: a block of a recorded run, or a
// slot of an earlier run or another thread's.
static void area_free(eyas_lane *l, eyas_arena *a, char *p) {
  size_t at = (size_t)(p - a->base), i = 0;
  pthread_mutex_lock(&a->mu);
  atomic_fetch_sub(&a->kept, 1);
  if (a->recording) {
    while (i < a->count && a->taken[i].at != at) i++;
    if (i < a->count) {
      if (l && l->area == a) note(l, a->taken[i].id, 1, a->taken[i].size);
      memmove(&a->taken[i], &a->taken[i + 1], (--a->count - i) * sizeof *a->taken);
    }
  }
  pthread_mutex_unlock(&a->mu);
}

static void spill_free(eyas_lane *l, eyas_arena *a, header *h) {
  pthread_mutex_lock(&a->mu);
  note_free(l, h);
  h->size = 0;
  a->spilled--;
  pthread_mutex_unlock(&a->mu);
}

void *eyas_alloc(size_t size) {
  if (size == 0) return NULL;
  eyas_lane *l = current;
  if (l && l->record) return record_alloc(l, size);
  if (l) {
    void *p = l->arena ? slot_alloc(l, size) : NULL;
    return p ? p : block_of(unplanned(l, l->arena, l->quota, size));
  }
  header *h = heap_alloc(size, NULL, watching);
  if (!h) return NULL;
  if (watching) watched += (int64_t)size;
  add(&total.heap, 1);
  add(&total.heap_bytes, (int64_t)size);
  return block_of(h);
}

void eyas_free(void *p) {
  if (!p) return;
  eyas_lane *l = current;
  header *h = (header *)((char *)p - EYAS_ALIGN); // unless p is a slot
  eyas_arena *a = l && l->arena && contains(l->arena, p) ? l->arena : owner_of(p);
  if (a && in_slots(a, p)) {
    if (!l || l->record || l->arena != a || !slot_free(l, p)) area_free(l, a, p);
    return;
  }
  if (a) {
    spill_free(l, a, h);
    return;
  }
  note_free(l, h);
  if (!l && watching) watched -= (int64_t)h->size;
  heap_free(h);
}
