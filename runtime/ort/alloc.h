// The allocator that Eyas gives to ONNX Runtime: what it keeps of the arena, of the
// run that a thread is in, and of what has to come from elsewhere. It knows nothing
// of ONNX Runtime, so that it can be built and tested alone, with sanitizers: testdata/alloc_check.c.
//
// A lane is the allocator's side of one binding. While a thread runs the binding, the
// lane is that thread's current one and every request goes through it:
//
//   plain   from the heap, counted
//   record  from the heap, or from an arena whose slots serve as a heap for the time of
//           the run, and the order of requests and frees is written down
//   replay  the i-th request gets the i-th slot of the arena, if it is not larger and
//           all frees that came before it in the recording have happened. Otherwise
//           the rest of the run is served from the spill block, then from the heap.
//
// Requests of a thread without a lane come from the heap.
#ifndef EYAS_ORT_ALLOC_H
#define EYAS_ORT_ALLOC_H

#include <stddef.h>
#include <stdint.h>

enum {
  EYAS_ALIGN = 64, // of every block, in bytes; ONNX Runtime wants no more
  // ONNX Runtime's int8 kernels read up to 30 bytes past the end of a buffer, and its
  // own allocator makes room for that. So do we, after the arena and every block of the heap.
  EYAS_OVERRUN = 64,
  EYAS_GUARD = 64, // bytes behind each slot when guards are checked
};

#define EYAS_NONE UINT32_MAX

// eyas_arena is one block: slots first, the spill block behind them. Lanes that share
// it take turns; the caller sees to that.
typedef struct eyas_arena eyas_arena;

// eyas_arena_new takes memory that the caller keeps mapped until eyas_arena_free.
// slots and spill are multiples of EYAS_ALIGN, base is aligned to it, and
// EYAS_OVERRUN more bytes can be read behind them.
eyas_arena *eyas_arena_new(void *base, size_t slots, size_t spill);

// eyas_arena_free returns 0 and keeps the arena if a block of it is still in use.
int eyas_arena_free(eyas_arena *a);

// eyas_arena_kept returns how many blocks of earlier runs are in use in the space of
// the slots. While there are any no slot is handed out.
int64_t eyas_arena_kept(const eyas_arena *a);

// eyas_quota limits the bytes that lanes may have from the heap at one time.
typedef struct eyas_quota eyas_quota;

eyas_quota *eyas_quota_new(int64_t limit);
void eyas_quota_drop(eyas_quota *q); // lives on while lanes have it or blocks are charged to it
void eyas_quota_get(eyas_quota *q, int64_t *used, int64_t *peak);

// eyas_event is a request (freed is 0) or a free. id numbers the requests of a run.
typedef struct {
  uint32_t id, freed;
  size_t size;
} eyas_event;

// eyas_slot is the place of the id-th request of a run.
typedef struct {
  size_t offset, size; // bytes in the arena; a size of 0: never in the arena
  uint32_t need;       // frees of slots that came before it in the recording
  uint32_t rank;       // which of these its own free was; EYAS_NONE: it came later
} eyas_slot;

// Why a run left its recording.
enum {
  EYAS_TOO_LARGE = 1, // the request is larger than its slot
  EYAS_TOO_EARLY,     // a slot that the recording had freed is still in use
  EYAS_TOO_MANY,      // there were fewer requests in the recording
  EYAS_KEPT,          // a block of an earlier run is still in use
};

// eyas_counts only grow, except for heap_live.
typedef struct {
  int64_t runs, arena, spill, heap; // runs; requests served from each: slots or their space, spill block, heap
  int64_t arena_bytes, spill_bytes, heap_bytes; // of those requests
  int64_t mismatches;               // runs that left their recording
  int64_t kept;                     // slots in use at the end of a run
  int64_t heap_live;                // bytes in use now; only in eyas_total
} eyas_counts;

typedef struct eyas_lane eyas_lane;

eyas_lane *eyas_lane_new(void);
void eyas_lane_free(eyas_lane *l);

// eyas_lane_limit charges what the lane takes from the heap to q, which may be NULL.
void eyas_lane_limit(eyas_lane *l, eyas_quota *q);

// eyas_lane_record makes the next run a recorded one. It is served from the heap without
// regard to a quota; from a, if that is not NULL: first from the space of its slots, where
// the caller keeps everyone else out, then from its spill block, then from the heap. A lane that
// replays from a gets the places of its plan where they suffice and are free. What outlives
// the run is to be freed before anyone replays from a.
void eyas_lane_record(eyas_lane *l, eyas_arena *a);

// eyas_lane_events returns the recording of the last run, NULL if there was not
// enough memory for it. It belongs to the lane and lives until the next recording.
const eyas_event *eyas_lane_events(eyas_lane *l, size_t *count);

// eyas_lane_replay serves later runs from the arena. The slots are copied. open says
// that a run may go on after the last slot, from the spill block; check turns the
// guards on, and every slot then has EYAS_GUARD bytes behind it. Returns 0 without memory.
int eyas_lane_replay(eyas_lane *l, eyas_arena *a, const eyas_slot *slots, uint32_t count, int open, int check);

// eyas_lane_plain ends eyas_lane_replay.
void eyas_lane_plain(eyas_lane *l);

// eyas_lane_begin makes l the thread's lane, eyas_lane_end ends that.
void eyas_lane_begin(eyas_lane *l);
void eyas_lane_end(eyas_lane *l);

// What went wrong in the last run: a refusal by the quota, and the first slot whose
// guard was overwritten, else EYAS_NONE.
int eyas_lane_refused(const eyas_lane *l);
uint32_t eyas_lane_broken(const eyas_lane *l);

// eyas_mismatch says how the last run that left its recording did so.
typedef struct {
  int why; // 0: none did
  uint32_t id;
  size_t size, slot; // bytes asked for, bytes of the slot
} eyas_mismatch;

eyas_mismatch eyas_lane_mismatch(const eyas_lane *l);
eyas_counts eyas_lane_counts(const eyas_lane *l);

// eyas_lane_shrink is for tests: guards of slot id begin that many bytes early.
void eyas_lane_shrink(eyas_lane *l, uint32_t id, size_t bytes);

// eyas_alloc returns NULL for 0 bytes, and where neither slot, spill block nor heap
// can serve the request or the quota refuses it.
void *eyas_alloc(size_t size);
void eyas_free(void *p);

// eyas_total counts all lanes and the threads without one.
eyas_counts eyas_total(void);

// eyas_watch begins to count what this thread takes from the heap outside of runs;
// eyas_watched ends that and returns the bytes that are still in use.
void eyas_watch(void);
int64_t eyas_watched(void);

#endif
