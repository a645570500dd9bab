// Tests of alloc.c alone; sanitize_test.go builds them with each sanitizer and runs them.
#include "../alloc.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(ok)                                                         \
  do {                                                                    \
    if (!(ok)) {                                                          \
      fprintf(stderr, "%s:%d: not so: %s\n", __func__, __LINE__, #ok);    \
      exit(1);                                                            \
    }                                                                     \
  } while (0)

enum { REQUESTS = 60, RUNS = 100 };

// model makes requests and frees by a rule of its own, the same in every run.
typedef struct {
  unsigned seed;
  uint32_t hold;             // a request that is not freed at its time; EYAS_NONE
  uint32_t grow;             // a request that is larger than the others of its kind; EYAS_NONE
  int more;                  // requests beyond REQUESTS
  char *block[REQUESTS + 8]; // what the run holds
  size_t size[REQUESTS + 8];
} model;

static model like(unsigned seed) { return (model){.seed = seed, .hold = EYAS_NONE, .grow = EYAS_NONE}; }

static unsigned roll(unsigned *state) { return (*state = *state * 1664525u + 1013904223u) >> 8; }

// give_back checks that nobody wrote into a block, then frees it.
static void give_back(model *m, uint32_t i) {
  char *p = m->block[i];
  if (!p) return;
  for (size_t k = 0; k < m->size[i]; k++) CHECK(p[k] == (char)(m->seed + i));
  eyas_free(p);
  m->block[i] = NULL;
}

static void one_run(model *m, eyas_lane *l) {
  unsigned state = m->seed;
  uint32_t count = REQUESTS + (uint32_t)m->more;
  eyas_lane_begin(l);
  for (uint32_t i = 0; i < count; i++) {
    size_t size = 1 + roll(&state) % 2000;
    if (i == m->grow) size += 2500;
    m->size[i] = size;
    m->block[i] = eyas_alloc(size);
    if (!m->block[i]) continue;
    CHECK((uintptr_t)m->block[i] % EYAS_ALIGN == 0);
    memset(m->block[i], (char)(m->seed + i), size);
    uint32_t other = roll(&state) % (i + 1);
    if (other != m->hold) give_back(m, other);
  }
  for (uint32_t i = 0; i < count; i++)
    if (i != m->hold) give_back(m, i);
  eyas_lane_end(l);
}

typedef struct {
  eyas_slot slots[REQUESTS];
  size_t height;
} plan;

// plan_of records a run and places each request at the lowest offset that is free during
// its life.
static plan plan_of(model *m, eyas_lane *l, size_t guard) {
  plan p = {.height = 0};
  size_t n, from[REQUESTS], to[REQUESTS];
  uint32_t frees = 0;
  eyas_lane_record(l, NULL);
  one_run(m, l);
  const eyas_event *e = eyas_lane_events(l, &n);
  CHECK(e && n == 2 * REQUESTS);
  for (size_t t = 0; t < n; t++) {
    uint32_t id = e[t].id;
    if (e[t].freed) {
      to[id] = t;
      p.slots[id].rank = frees++;
      continue;
    }
    from[id] = t;
    p.slots[id] = (eyas_slot){.size = (e[t].size + 63) / 64 * 64, .need = frees, .rank = EYAS_NONE};
  }
  for (uint32_t i = 0; i < REQUESTS; i++) {
    eyas_slot *s = &p.slots[i];
    for (uint32_t j = 0; j < i;) {
      const eyas_slot *o = &p.slots[j];
      int together = from[i] < to[j] && from[j] < to[i];
      int overlap = s->offset < o->offset + o->size + guard && o->offset < s->offset + s->size + guard;
      if (together && overlap) {
        s->offset = o->offset + o->size + guard;
        j = 0;
      } else {
        j++;
      }
    }
    if (s->offset + s->size + guard > p.height) p.height = s->offset + s->size + guard;
  }
  return p;
}

// setting is a lane that replays a model from an arena.
typedef struct {
  model m;
  eyas_lane *lane;
  plan p;
  void *memory;
  eyas_arena *arena;
} setting;

static eyas_arena *map(size_t slots, size_t spill, void **memory) {
  *memory = aligned_alloc(4096, (slots + spill + EYAS_OVERRUN + 4095) / 4096 * 4096);
  return eyas_arena_new(*memory, slots, spill);
}

static setting set_up(unsigned seed, size_t spill, int check) {
  setting s = {.m = like(seed), .lane = eyas_lane_new()};
  s.p = plan_of(&s.m, s.lane, check ? EYAS_GUARD : 0);
  s.arena = map(s.p.height, spill, &s.memory);
  CHECK(eyas_lane_replay(s.lane, s.arena, s.p.slots, REQUESTS, 0, check));
  return s;
}

static void tear_down(setting *s) {
  eyas_lane_free(s->lane);
  CHECK(eyas_arena_free(s->arena));
  free(s->memory);
}

static void test_replay(void) {
  for (unsigned seed = 1; seed < 20; seed++) {
    setting s = set_up(seed, 0, 0);
    for (int i = 0; i < 5; i++) one_run(&s.m, s.lane);
    eyas_counts c = eyas_lane_counts(s.lane);
    CHECK(c.runs == 6 && c.arena == 5 * REQUESTS && c.heap == REQUESTS && c.mismatches == 0 && c.kept == 0);
    tear_down(&s);
  }
}

// Whatever a run does that its recording did not, its blocks stay its own.
static void test_mismatch(void) {
  for (unsigned seed = 1; seed < 8; seed++) {
    for (uint32_t at = 0; at < REQUESTS; at += 7) {
      setting s = set_up(seed, at % 2 ? 8192 : 0, at % 3 == 0);
      s.m.grow = at;
      one_run(&s.m, s.lane);
      eyas_mismatch m = eyas_lane_mismatch(s.lane);
      CHECK(m.why == EYAS_TOO_LARGE && m.id == at && m.size > m.slot);
      s.m.grow = EYAS_NONE;
      s.m.hold = at; // freed late: after the run
      one_run(&s.m, s.lane);
      give_back(&s.m, at);
      s.m.hold = EYAS_NONE;
      s.m.more = 3;
      one_run(&s.m, s.lane);
      CHECK(eyas_lane_mismatch(s.lane).why == EYAS_TOO_MANY);
      s.m.more = 0;
      int64_t before = eyas_lane_counts(s.lane).arena;
      one_run(&s.m, s.lane);
      CHECK(eyas_lane_counts(s.lane).arena == before + REQUESTS);
      CHECK(eyas_lane_broken(s.lane) == EYAS_NONE);
      tear_down(&s);
    }
  }
}

// While a slot of an earlier run is in use, no slot is handed out.
static void test_kept(void) {
  setting s = set_up(5, 0, 0);
  s.m.hold = REQUESTS - 1;
  one_run(&s.m, s.lane);
  CHECK(eyas_lane_counts(s.lane).kept == 1);
  CHECK(!eyas_arena_free(s.arena));
  model next = like(5);
  int64_t before = eyas_lane_counts(s.lane).arena;
  one_run(&next, s.lane);
  CHECK(eyas_lane_counts(s.lane).arena == before && eyas_lane_mismatch(s.lane).why == EYAS_KEPT);
  give_back(&s.m, REQUESTS - 1); // unharmed
  one_run(&next, s.lane);
  CHECK(eyas_lane_counts(s.lane).arena == before + REQUESTS);
  tear_down(&s);
}

static void *free_it(void *p) {
  eyas_free(p);
  return NULL;
}

static void in_thread(void *(*f)(void *), void *arg) {
  pthread_t t;
  CHECK(pthread_create(&t, NULL, f, arg) == 0);
  pthread_join(t, NULL);
}

// A thread that is no lane frees a slot during the run and after it.
static void test_foreign_free(void) {
  setting s = set_up(9, 4096, 0);
  eyas_lane_begin(s.lane);
  void *first = eyas_alloc(1), *second = NULL;
  CHECK((char *)first == (char *)s.memory + s.p.slots[0].offset);
  in_thread(free_it, first);
  second = eyas_alloc(1);
  eyas_lane_end(s.lane);
  in_thread(free_it, second);
  one_run(&s.m, s.lane);
  CHECK(eyas_lane_counts(s.lane).arena >= REQUESTS);
  tear_down(&s);
}

static void *requests(void *arg) {
  (void)arg;
  for (size_t n = 1; n < 20000; n += 777) {
    char *p = eyas_alloc(n);
    memset(p, 1, n);
    eyas_free(p);
  }
  return NULL;
}

static void test_without_lane(void) {
  CHECK(eyas_alloc(0) == NULL && eyas_alloc(SIZE_MAX) == NULL && eyas_alloc(SIZE_MAX / 2) == NULL);
  eyas_free(NULL);
  int64_t live = eyas_total().heap_live;
  eyas_watch();
  void *p = eyas_alloc(100);
  in_thread(requests, NULL); // another thread's are not counted
  requests(NULL);
  CHECK(eyas_watched() == 100 && eyas_total().heap_live == live + 100);
  eyas_free(p);
  CHECK(eyas_total().heap_live == live);
}

static void test_quota(void) {
  eyas_quota *q = eyas_quota_new(1000);
  eyas_lane *l = eyas_lane_new();
  int64_t used, peak;
  eyas_lane_limit(l, q);
  eyas_lane_begin(l);
  void *p = eyas_alloc(600);
  CHECK(p && !eyas_alloc(600) && !eyas_alloc(SIZE_MAX));
  eyas_lane_end(l);
  CHECK(eyas_lane_refused(l));
  eyas_quota_get(q, &used, &peak);
  CHECK(used == 600 && peak == 600);
  eyas_lane_free(l);
  eyas_quota_drop(q);
  eyas_free(p); // the last that the quota lived for
}

// Pieces of the spill block come together again.
static void test_spill(void) {
  enum { SPILL = 1 << 16 };
  void *memory, *p[200] = {0};
  eyas_arena *a = map(0, SPILL, &memory);
  eyas_lane *l = eyas_lane_new();
  CHECK(eyas_lane_replay(l, a, NULL, 0, 1, 0));
  eyas_lane_begin(l);
  unsigned state = 1;
  for (int i = 0; i < 3000; i++) {
    unsigned k = roll(&state) % 200;
    if (p[k]) {
      eyas_free(p[k]);
      p[k] = NULL;
    } else {
      size_t n = 1 + roll(&state) % 1500;
      p[k] = eyas_alloc(n);
      memset(p[k], (int)k, n);
    }
  }
  for (int k = 0; k < 200; k++) eyas_free(p[k]);
  void *all = eyas_alloc(SPILL - EYAS_ALIGN);
  CHECK(all == (char *)memory + EYAS_ALIGN);
  eyas_lane_end(l);
  eyas_counts c = eyas_lane_counts(l);
  CHECK(c.spill > 100 && c.heap > 0 && c.mismatches == 0);
  CHECK(!eyas_arena_free(a));
  in_thread(free_it, all); // an output, freed by another thread
  eyas_lane_free(l);
  CHECK(eyas_arena_free(a));
  free(memory);
}

static void test_guards(void) {
  setting s = set_up(3, 0, 1);
  for (int i = 0; i < 3; i++) {
    one_run(&s.m, s.lane);
    CHECK(eyas_lane_broken(s.lane) == EYAS_NONE);
  }
  eyas_lane_begin(s.lane);
  char *p = eyas_alloc(10);
  CHECK(p[9] == (char)0xFF); // not what an earlier run left
  p[10] = 0;
  eyas_free(p);
  eyas_lane_end(s.lane);
  CHECK(eyas_lane_broken(s.lane) == 0);
  one_run(&s.m, s.lane);
  CHECK(eyas_lane_broken(s.lane) == EYAS_NONE);
  eyas_lane_begin(s.lane);
  p = eyas_alloc(10);
  p[s.p.slots[0].size + EYAS_GUARD - 1] = 0;
  eyas_lane_end(s.lane); // found without a free
  CHECK(eyas_lane_broken(s.lane) == 0);
  eyas_free(p);
  tear_down(&s);
}

static void *many_runs(void *arg) {
  setting *s = arg;
  for (int i = 0; i < RUNS; i++) one_run(&s->m, s->lane);
  return NULL;
}

// Two models run at once, each in its lane.
static void test_two_lanes(void) {
  setting s[2] = {set_up(11, 0, 0), set_up(12, 0, 1)};
  pthread_t t[2];
  for (int i = 0; i < 2; i++) CHECK(pthread_create(&t[i], NULL, many_runs, &s[i]) == 0);
  for (int i = 0; i < 2; i++) {
    pthread_join(t[i], NULL);
    eyas_counts c = eyas_lane_counts(s[i].lane);
    CHECK(c.arena == RUNS * REQUESTS && c.mismatches == 0);
    tear_down(&s[i]);
  }
}

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void *in_turns(void *arg) {
  setting *s = arg;
  for (int i = 0; i < RUNS; i++) {
    pthread_mutex_lock(&turn);
    one_run(&s->m, s->lane);
    pthread_mutex_unlock(&turn);
  }
  return NULL;
}

// Two models of two threads take turns on one arena.
static void test_shared_arena(void) {
  setting s[2] = {set_up(21, 0, 0), set_up(22, 0, 0)};
  size_t height = s[0].p.height > s[1].p.height ? s[0].p.height : s[1].p.height;
  void *memory;
  eyas_arena *a = map(height, 0, &memory);
  pthread_t t[2];
  for (int i = 0; i < 2; i++) {
    CHECK(eyas_lane_replay(s[i].lane, a, s[i].p.slots, REQUESTS, 0, 0));
    CHECK(pthread_create(&t[i], NULL, in_turns, &s[i]) == 0);
  }
  for (int i = 0; i < 2; i++) {
    pthread_join(t[i], NULL);
    CHECK(eyas_lane_counts(s[i].lane).arena == RUNS * REQUESTS);
    tear_down(&s[i]);
  }
  CHECK(eyas_arena_free(a));
  free(memory);
}

static size_t events_of(eyas_lane *l, eyas_event *copy) {
  size_t n;
  const eyas_event *e = eyas_lane_events(l, &n);
  CHECK(e && n == 2 * REQUESTS);
  memcpy(copy, e, n * sizeof *e);
  return n * sizeof *e;
}

// A run recorded in an arena gives the events of one recorded on the heap, and leaves the
// slots as it found them. What the arena does not hold is charged to the quota.
static void test_record_in(void) {
  for (unsigned seed = 1; seed < 20; seed++) {
    setting s = set_up(seed, 0, seed % 2);
    model other = like(seed + 100);
    eyas_lane *l = eyas_lane_new();
    eyas_quota *q = eyas_quota_new(1 << 20);
    eyas_event want[2 * REQUESTS], got[2 * REQUESTS];
    int64_t used, peak;
    void *memory;
    eyas_arena *large = map(1 << 20, 1 << 12, &memory);
    eyas_lane_limit(l, q);
    eyas_lane_record(l, NULL);
    one_run(&other, l);
    size_t bytes = events_of(l, want);
    int64_t heap = eyas_lane_counts(l).heap;
    for (int i = 0; i < 3; i++) {
      eyas_lane_record(l, i == 1 ? s.arena : large);
      one_run(&other, l);
      CHECK(events_of(l, got) == bytes && memcmp(got, want, bytes) == 0);
      eyas_counts c = eyas_lane_counts(l);
      eyas_quota_get(q, &used, &peak);
      CHECK(used == 0 && (peak > 0) == (c.heap > heap)); // of the heap beyond the first recording
      CHECK(i > 0 || (c.arena == REQUESTS && c.heap == heap));
      CHECK(eyas_arena_kept(s.arena) == 0 && eyas_arena_kept(large) == 0);
      one_run(&s.m, s.lane);
    }
    // The lane that replays from it records in it, too, where its plan has its buffers,
    // and goes on.
    heap = eyas_lane_counts(s.lane).heap;
    eyas_lane_record(s.lane, s.arena);
    one_run(&s.m, s.lane);
    CHECK(events_of(s.lane, got) > 0 && eyas_lane_counts(s.lane).heap == heap);
    int64_t before = eyas_lane_counts(s.lane).arena;
    one_run(&s.m, s.lane);
    eyas_counts c = eyas_lane_counts(s.lane);
    CHECK(c.arena == before + REQUESTS && c.mismatches == 0 && eyas_lane_broken(s.lane) == EYAS_NONE);
    eyas_lane_free(l);
    eyas_quota_drop(q);
    CHECK(eyas_arena_free(large));
    free(memory);
    tear_down(&s);
  }
}

// A run that is refused memory half-way, and gives back what it has, leaves no trace.
static void test_record_in_refused(void) {
  setting s = set_up(7, 0, 0);
  eyas_quota *q = eyas_quota_new(0);
  eyas_lane *l = eyas_lane_new();
  void *p[100];
  int n = 0;
  eyas_lane_limit(l, q);
  eyas_lane_record(l, s.arena);
  eyas_lane_begin(l);
  while ((p[n] = eyas_alloc(1000))) n++;
  CHECK(n > 2);
  for (int i = 0; i < n; i++) eyas_free(p[i]);
  void *all = eyas_alloc(s.p.height); // the pieces have come together
  CHECK(all == s.memory);
  eyas_free(all);
  eyas_lane_end(l);
  CHECK(eyas_lane_refused(l) && eyas_arena_kept(s.arena) == 0);
  int64_t before = eyas_lane_counts(s.lane).arena;
  one_run(&s.m, s.lane);
  CHECK(eyas_lane_counts(s.lane).arena == before + REQUESTS);
  eyas_lane_free(l);
  eyas_quota_drop(q);
  tear_down(&s);
}

// Blocks of a recorded run that are freed by another thread, during the run and after it:
// until then nobody gets a slot, nor does a recorded run get their place.
static void test_record_in_kept(void) {
  setting s = set_up(5, 1 << 14, 0);
  eyas_lane *l = eyas_lane_new();
  eyas_lane_record(l, s.arena);
  eyas_lane_begin(l);
  char *first = eyas_alloc(100), *second = eyas_alloc(200);
  in_thread(free_it, first);
  char *third = eyas_alloc(100);
  CHECK(third == first); // its place is free again
  eyas_free(third);
  memset(second, 7, 200);
  eyas_lane_end(l);
  size_t n;
  const eyas_event *e = eyas_lane_events(l, &n);
  CHECK(n == 4 && e[2].id == 2 && e[3].freed && e[3].id == 2); // the other thread's is no event
  CHECK(eyas_arena_kept(s.arena) == 1 && !eyas_arena_free(s.arena));
  int64_t before = eyas_lane_counts(s.lane).arena;
  one_run(&s.m, s.lane);
  CHECK(eyas_lane_counts(s.lane).arena == before && eyas_lane_mismatch(s.lane).why == EYAS_KEPT);
  eyas_lane_record(l, s.arena);
  one_run(&s.m, l);
  CHECK(eyas_lane_counts(l).arena == 3 && eyas_lane_counts(l).spill > 0);
  for (int i = 0; i < 200; i++) CHECK(second[i] == 7);
  in_thread(free_it, second);
  one_run(&s.m, s.lane);
  CHECK(eyas_lane_counts(s.lane).arena == before + REQUESTS);
  eyas_lane_free(l);
  tear_down(&s);
}

// record_in_turns records in the arena now and then, beside outputs in its spill block
// that another thread frees.
static void *record_in_turns(void *arg) {
  setting *s = arg;
  for (int i = 0; i < RUNS; i++) {
    pthread_mutex_lock(&turn);
    if (i % 3 == 0) eyas_lane_record(s->lane, s->arena);
    one_run(&s->m, s->lane);
    pthread_mutex_unlock(&turn);
  }
  return NULL;
}

static void *outputs(void *arg) {
  eyas_lane *l = arg;
  for (int i = 0; i < RUNS; i++) {
    pthread_mutex_lock(&turn);
    eyas_lane_begin(l);
    char *p = eyas_alloc(500);
    memset(p, i, 500);
    eyas_lane_end(l);
    pthread_mutex_unlock(&turn);
    for (int k = 0; k < 500; k++) CHECK(p[k] == (char)i);
    eyas_free(p); // while another run may be under way
  }
  return NULL;
}

static void test_record_in_turns(void) {
  setting s[2] = {set_up(31, 0, 0), set_up(32, 0, 1)};
  size_t height = s[0].p.height > s[1].p.height ? s[0].p.height : s[1].p.height;
  void *memory;
  eyas_arena *a = map(height, 1 << 14, &memory);
  eyas_lane *l = eyas_lane_new();
  CHECK(eyas_lane_replay(l, a, NULL, 0, 1, 0));
  pthread_t t[3];
  CHECK(pthread_create(&t[2], NULL, outputs, l) == 0);
  for (int i = 0; i < 2; i++) {
    eyas_arena *own = s[i].arena;
    CHECK(eyas_arena_free(own));
    s[i].arena = a;
    CHECK(eyas_lane_replay(s[i].lane, a, s[i].p.slots, REQUESTS, 0, i));
    CHECK(pthread_create(&t[i], NULL, record_in_turns, &s[i]) == 0);
  }
  for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
  for (int i = 0; i < 2; i++) {
    eyas_counts c = eyas_lane_counts(s[i].lane);
    CHECK(c.mismatches == 0 && c.kept == 0 && c.arena > RUNS / 3 * 2 * REQUESTS);
    eyas_lane_free(s[i].lane);
    free(s[i].memory);
  }
  CHECK(eyas_lane_counts(l).spill == RUNS && eyas_arena_kept(a) == 0);
  eyas_lane_free(l);
  CHECK(eyas_arena_free(a));
  free(memory);
}

int main(void) {
  test_replay();
  test_mismatch();
  test_kept();
  test_foreign_free();
  test_without_lane();
  test_quota();
  test_spill();
  test_guards();
  test_two_lanes();
  test_shared_arena();
  test_record_in();
  test_record_in_refused();
  test_record_in_kept();
  test_record_in_turns();
  CHECK(eyas_total().heap_live == 0);
  return 0;
}
