/* copy: every target ends with the value of the source that it names, whatever is late, doubled, dead or throttled.

Two sources, one or two targets, two values. The application changes everything within its budgets. Workers handle records:
a push lists the targets of a source, a pull looks at one target. Reads and writes are single steps. A worker may die with
its write in flight: the write is applied at any later time, and the record is delivered again. An index lags by any number
of changes of its rows. Each line `#ifdef NO_...` takes one invariant out of the protocol: then a check below fails. */
#ifndef SOURCES
#define SOURCES 2
#endif
#ifndef TARGETS
#define TARGETS 1
#endif
#ifndef VALUES
#define VALUES 2
#endif
#ifndef WORKERS
#define WORKERS 2
#endif
#define GONE SOURCES            /* the link of a target that does not exist; no source */
#define UNSEEN 7
/* Budgets: how often the application, the stream and AWS may do a thing. */
#ifndef RENAMES
#define RENAMES 2
#endif
#ifndef SOURCE_DELETES
#define SOURCE_DELETES 0
#endif
#ifndef MOVES
#define MOVES 0
#endif
#ifndef TARGET_DELETES
#define TARGET_DELETES 0
#endif
#ifndef TARGET_CREATES
#define TARGET_CREATES 0
#endif
#ifndef OVERWRITES
#define OVERWRITES 0
#endif
#ifndef REPEATS
#define REPEATS 0
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef THROTTLES
#define THROTTLES 0
#endif

byte value[SOURCES] = 1;        /* 0: the source does not exist */
byte link[TARGETS] = 0;
byte copy[TARGETS] = 1;
byte source_records[SOURCES * (VALUES + 1)];                      /* by source and the value that the record shows */
byte target_records[TARGETS * SOURCES * (VALUES + 1)];            /* by target, its link and its copy */
byte sources_waiting, targets_waiting, busy;
bool late; byte late_target, late_source, late_value, late_seen;  /* a write in flight, whose worker died */
byte renames = RENAMES, source_deletes = SOURCE_DELETES, moves = MOVES, target_deletes = TARGET_DELETES;
byte target_creates = TARGET_CREATES, overwrites = OVERWRITES, repeats = REPEATS, deaths = DEATHS, throttles = THROTTLES;
byte rest[SOURCES];             /* messages with the rest of a listing, as a set of targets: relay and chunks */
#define RESTS (rest[0] + rest[SOURCES - 1])
#ifdef FULL
bool crowded = true;               /* target 0 has no room until the application makes some; or never */
bool parked;
#define PARKED parked
#else
#define PARKED 0
#endif
#ifdef INDEX
#define ROWS_MAX 6
byte row[TARGETS] = 1;          /* what the index shows: 0 nothing, else 1 + link */
byte coming[TARGETS * ROWS_MAX], coming_count[TARGETS], last_row[TARGETS] = 1;
#define LOOKS_MAX 4
byte look[LOOKS_MAX] = GONE, look_waits[LOOKS_MAX * TARGETS], looks;     /* second looks, and the rows that they wait for */
#define LAGGING (coming_count[0] + coming_count[TARGETS - 1] + looks)
#else
#define LAGGING 0
#endif

#define SOURCE_RECORD(s, v) ((s) * (VALUES + 1) + (v))
#define TARGET_RECORD(t, l, c) ((t) * SOURCES * (VALUES + 1) + (l) * (VALUES + 1) + (c))
#define QUIET (busy == 0 && sources_waiting == 0 && targets_waiting == 0 && RESTS == 0 && !late && LAGGING == 0 && !PARKED)
#define RIGHT(t) (link[t] == GONE || copy[t] == value[link[t]])
#define CHECK assert(!QUIET || (RIGHT(0) && RIGHT(TARGETS - 1)))

inline put_source(s, v) {
  value[s] = v; source_records[SOURCE_RECORD(s, v)]++; sources_waiting++
}

inline show_row(t, l) {
#ifdef INDEX
  if
  :: last_row[t] != (l == GONE -> 0 : 1 + l) ->
     assert(coming_count[t] < ROWS_MAX);
     last_row[t] = (l == GONE -> 0 : 1 + l); coming[t * ROWS_MAX + coming_count[t]] = last_row[t]; coming_count[t]++
  :: else
  fi
#else
  skip
#endif
}

#ifdef NO_OWN_RECORDS           /* invariant 3: records of the pipeline's own writes are ignored */
#define HEARD(own) (!(own))
#else
#define HEARD(own) true
#endif

inline put_target(t, l, c, own, heard) {
  if
  :: link[t] != l || (l != GONE && copy[t] != c) ->
     link[t] = l; copy[t] = (l == GONE -> 0 : c); show_row(t, l);
     if
     :: l != GONE && HEARD(own) && heard -> target_records[TARGET_RECORD(t, l, c)]++; targets_waiting++
     :: else
     fi
  :: else
  fi
}

#ifdef NO_LINK_GUARD            /* invariant 2: the guard does not compare the link */
#define LINK_HOLDS(t, s) (link[t] != GONE)
#else
#define LINK_HOLDS(t, s) (link[t] == (s))
#endif
#ifdef NO_COPY_GUARD            /* invariant 2: the guard does not compare the copy */
#define COPY_HOLDS(t, c) true
#else
#define COPY_HOLDS(t, c) (copy[t] == (c))
#endif

#ifdef INCREASING               /* values only grow: an older one must never follow a newer one */
#define NEXT_VALUE(s, v) ((v) > value[s])
#define NEVER_BACK(v, t) assert((v) >= copy[t]);
#else
#define NEXT_VALUE(s, v) ((v) != value[s])
#define NEVER_BACK(v, t)
#endif

inline apply_update(t, s, v, c) {
  if
  :: LINK_HOLDS(t, s) && COPY_HOLDS(t, c) ->
     assert(link[t] == (s));    /* no value of one source on a target of another */
     NEVER_BACK(v, t)
     printf("  written: target %d gets %d\n", t, v); put_target(t, link[t], v, true, true)
  :: else -> printf("  refused: target %d is not as it was seen\n", t)
  fi
}

active proctype application() {
  byte s, t, v;
end: do
  :: atomic { renames > 0 -> select(s : 0 .. SOURCES - 1); select(v : 1 .. VALUES);
       if :: NEXT_VALUE(s, v) -> renames--; printf("application: source %d = %d\n", s, v); put_source(s, v) :: else fi; s = 0; v = 0; CHECK }
  :: atomic { source_deletes > 0 -> select(s : 0 .. SOURCES - 1);
       if :: value[s] != 0 -> source_deletes--; printf("application: delete source %d\n", s); put_source(s, 0) :: else fi; s = 0; CHECK }
  :: atomic { moves > 0 -> select(t : 0 .. TARGETS - 1); select(s : 0 .. SOURCES - 1);
       if :: link[t] != GONE && link[t] != s -> moves--; printf("application: target %d names source %d\n", t, s);
#ifdef NO_LINK_PULL             /* invariant 4: a changed link asks for nothing */
             put_target(t, s, copy[t], false, false)
#else
             put_target(t, s, copy[t], false, true)
#endif
       :: else fi; t = 0; s = 0; CHECK }
  :: atomic { target_deletes > 0 -> select(t : 0 .. TARGETS - 1);
       if :: link[t] != GONE -> target_deletes--; printf("application: delete target %d\n", t); put_target(t, GONE, 0, false, true) :: else fi; t = 0; CHECK }
  :: atomic { target_creates > 0 -> select(t : 0 .. TARGETS - 1); select(s : 0 .. SOURCES - 1); select(v : 0 .. VALUES);
       if :: link[t] == GONE -> target_creates--; printf("application: put target %d of source %d with copy %d\n", t, s, v);
#ifdef NO_INSERT_PULL           /* invariant 4: an insert asks for nothing */
             put_target(t, s, v, false, false)
#else
             put_target(t, s, v, false, true)
#endif
       :: else fi; t = 0; s = 0; v = 0; CHECK }
  :: atomic { overwrites > 0 -> select(t : 0 .. TARGETS - 1); select(v : 0 .. VALUES);
       if :: link[t] != GONE && copy[t] != v -> overwrites--; printf("application: put target %d with copy %d\n", t, v); put_target(t, link[t], v, false, true) :: else fi; t = 0; v = 0; CHECK }
#ifdef FULL
  :: atomic { crowded && FULL == 1 -> crowded = false; printf("application: make room in target 0\n") }
#endif
  od
}

active proctype network() {
end: do
  :: atomic { late -> printf("the late write arrives\n"); apply_update(late_target, late_source, late_value, late_seen);
       late = false; late_target = 0; late_source = 0; late_value = 0; late_seen = 0; CHECK }
  od
}

#ifdef INDEX
active proctype index() {
  byte t, n;
end: do
  :: atomic { coming_count[0] + coming_count[TARGETS - 1] > 0 ->
       if :: coming_count[0] > 0 -> t = 0 :: coming_count[TARGETS - 1] > 0 -> t = TARGETS - 1 fi;
       row[t] = coming[t * ROWS_MAX]; printf("the index follows target %d\n", t);
       n = 0; do :: n < coming_count[t] - 1 -> coming[t * ROWS_MAX + n] = coming[t * ROWS_MAX + n + 1]; n++ :: else -> break od;
       coming_count[t]--; coming[t * ROWS_MAX + coming_count[t]] = 0;
       n = 0; do :: n < LOOKS_MAX -> if :: look[n] != GONE && look_waits[n * TARGETS + t] > 0 -> look_waits[n * TARGETS + t]-- :: else fi; n++ :: else -> break od;
       t = 0; n = 0; CHECK }
  od
}
#define DUE(n) (look[n] != GONE && look_waits[(n) * TARGETS] == 0 && look_waits[(n) * TARGETS + TARGETS - 1] == 0)
#endif

#define ONE_TARGET(T, L, C) :: (T < TARGETS && L < SOURCES && C <= VALUES && target_records[TARGET_RECORD(T, L, C)] > 0) -> t = T; s = L; c = C
#define TARGETS_OF(T, L) ONE_TARGET(T, L, 0) ONE_TARGET(T, L, 1) ONE_TARGET(T, L, 2) ONE_TARGET(T, L, 3)
#define ONE_SOURCE(S, V) :: (V <= VALUES && source_records[SOURCE_RECORD(S, V)] > 0) -> s = S; shown = V

active [WORKERS] proctype worker() {
  byte s, t, v, c, n, shown; byte todo; byte seen[TARGETS]; bool second, pulling, begun;
end: do
  :: atomic { sources_waiting > 0 ->
       if ONE_SOURCE(0, 0) ONE_SOURCE(0, 1) ONE_SOURCE(0, 2) ONE_SOURCE(0, 3) ONE_SOURCE(SOURCES - 1, 0) ONE_SOURCE(SOURCES - 1, 1) ONE_SOURCE(SOURCES - 1, 2) ONE_SOURCE(SOURCES - 1, 3) fi;
       if :: source_records[SOURCE_RECORD(s, shown)]--; sources_waiting-- :: repeats > 0 -> repeats-- fi;
       busy++; printf("record of source %d: push\n", s) }
#ifdef NO_PUSH                  /* invariant 4: a record of a source asks for nothing */
     atomic { goto done }
#endif
push:
#ifdef NO_IMAGE_FIRST           /* invariant 2: the source is read before the image */
     atomic { v = value[s]; printf("read source %d: %d\n", s, v) }
#endif
     atomic {                   /* list the targets: rows of the table are images, rows of an index are keys */
       t = 0; todo = 0;
       do
       :: t < TARGETS ->
#ifdef INDEX
          if :: row[t] == 1 + s -> todo = todo | (1 << t) :: else fi;
#else
          if :: link[t] == s -> todo = todo | (1 << t); seen[t] = copy[t] :: else fi;
#endif
          t++
       :: else -> break
       od;
       t = 0; printf("list the targets of source %d: %d\n", s, todo);
#if defined(INDEX) && !defined(NO_SECOND_LOOK)                    /* invariant 5 */
       if
       :: !second ->
          n = 0; do :: look[n] != GONE -> n++ :: else -> break od;
          assert(n < LOOKS_MAX); look[n] = s; looks++;
          do :: t < TARGETS -> look_waits[n * TARGETS + t] = coming_count[t]; t++ :: else -> break od; n = 0; t = 0
       :: else
       fi;
#endif
       second = false
     }
     do
#ifdef RELAY
     :: todo != 0 && begun ->   /* the rest goes on as a message, which carries keys */
        atomic { printf("relay the rest of source %d\n", s);
#ifndef NO_RELAY                /* invariant 8: the relay forgets the rest */
          rest[s] = rest[s] | todo;
#endif
          todo = 0; seen[1] = 0 }
#endif
     :: todo != 0 ->
        atomic { if :: (todo & 1) -> t = 0 :: else -> t = 1 fi; todo = todo & ~(1 << t); begun = true }
see:
        atomic {
#ifdef INDEX
          if :: link[t] == s -> c = copy[t]; printf("read target %d\n", t) :: else -> c = UNSEEN fi;
#else
          c = seen[t];
#endif
          seen[t] = 0 }
act:
        if
        :: c == UNSEEN -> skip
        :: else ->
#ifndef NO_IMAGE_FIRST
           atomic { v = value[s]; printf("read source %d: %d\n", s, v) }
#endif
#ifdef NO_LEVEL                 /* invariant 1: the value is that of the record */
           atomic { if :: !pulling -> v = shown :: else fi }
#endif
write:
           atomic {
             if
             :: v == c -> skip
             :: else ->
#ifdef FULL
                if
                :: t == 0 && crowded ->
#ifdef NO_PARK                  /* invariant 8: what can never be written is tried again and again, and nothing else */
                   !crowded; goto write
#else
                   printf("park target 0\n"); parked = true; goto written
#endif
                :: else
                fi;
#endif
                if
                :: apply_update(t, s, v, c)
                :: deaths > 0 && !late -> deaths--; printf("the worker dies; its write of %d to target %d is in flight\n", v, t);
                     late = true; late_target = t; late_source = s; late_value = v; late_seen = c;
                     if
                     :: pulling -> target_records[TARGET_RECORD(t, s, c)]++; targets_waiting++
                     :: else -> source_records[SOURCE_RECORD(s, shown)]++; sources_waiting++
                     fi; todo = 0; seen[0] = 0; seen[TARGETS - 1] = 0
                :: throttles > 0 -> throttles--; printf("throttled: target %d\n", t);
#ifndef NO_RETRY                /* invariant 8: a throttled write is taken as done */
                     if
                     :: pulling -> target_records[TARGET_RECORD(t, s, c)]++; targets_waiting++
                     :: else -> source_records[SOURCE_RECORD(s, shown)]++; sources_waiting++
                     fi
#endif
                fi
             fi;
written:     CHECK }
        fi
     :: else -> break
     od;
done:
     atomic { busy--; s = 0; t = 0; v = 0; c = 0; shown = 0; pulling = false; begun = false; seen[0] = 0; seen[TARGETS - 1] = 0; CHECK }
  :: atomic { targets_waiting > 0 ->
       if TARGETS_OF(0, 0) TARGETS_OF(0, 1) TARGETS_OF(1, 0) TARGETS_OF(1, 1) fi;
       if :: target_records[TARGET_RECORD(t, s, c)]--; targets_waiting-- :: repeats > 0 -> repeats-- fi;
       busy++; pulling = true; todo = 0; printf("record of target %d: pull\n", t);
#ifdef NO_IMAGE_FIRST
       v = value[s];
#endif
       goto act }
#ifdef RELAY
  :: atomic { RESTS > 0 -> if :: rest[0] > 0 -> s = 0 :: rest[SOURCES - 1] > 0 -> s = SOURCES - 1 fi;
       todo = rest[s]; rest[s] = 0; shown = value[s]; busy++; printf("message with the rest of source %d\n", s) }
     atomic { if :: todo & 1 -> t = 0 :: else -> t = 1 fi; todo = todo & ~(1 << t); seen[t] = copy[t];
       if :: link[t] == s -> c = copy[t] :: else -> c = UNSEEN fi; seen[t] = 0; goto act }
#endif
#ifdef INDEX
  :: atomic { (DUE(0) || DUE(1) || DUE(2) || DUE(3)) ->
       if :: DUE(0) -> n = 0 :: DUE(1) -> n = 1 :: DUE(2) -> n = 2 :: DUE(3) -> n = 3 fi;
       s = look[n]; look[n] = GONE; looks--; n = 0; busy++; second = true; printf("second look at source %d\n", s); goto push }
#endif
#if defined(FULL) && !defined(NO_PARK)
  :: atomic { parked && !crowded -> parked = false; busy++; t = 0; pulling = true; todo = 0;      /* redrive */
       if :: link[0] == GONE -> goto done :: else -> s = link[0]; c = copy[0]; goto act fi }
#endif
  od
}
