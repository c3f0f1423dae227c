/* history: each state of the source is kept once under its version, and never changes.

The application numbers each state of the item. Records show the states; they come late, and more than once. VERSIONS states
follow each other. */
#ifndef VERSIONS
#define VERSIONS 2
#endif
#ifndef REPEATS
#define REPEATS 1
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef REUSES
#define REUSES 0
#endif
byte source;                    /* its present version; 0: not written yet */
byte state = 1;                 /* what the item holds beside the version */
byte version[VERSIONS + 1];     /* the state that is kept under each version; 0: nothing */
byte kept[VERSIONS + 1];        /* the state that was kept first under each version */
byte records[(VERSIONS + 1) * 3], record_count;  /* by version and state */
byte busy; bool late; byte late_version, late_state;
byte repeats = REPEATS, deaths = DEATHS, reuses = REUSES;
#define QUIET (busy == 0 && record_count == 0 && !late)
#if VERSIONS == 1
#define LAST 1
#else
#define LAST 2
#endif
#define RIGHT ((source < 1 || version[1] != 0) && (source < 2 || version[LAST] != 0))
#define CHECK assert(!QUIET || RIGHT)

inline put_version(v, s) {
  if
#ifdef NO_ABSENT_GUARD          /* history: a version is put where there is none */
  :: true ->
#else
  :: version[v] == 0 ->
#endif
     assert(kept[v] == 0 || kept[v] == s);      /* a version never changes */
     kept[v] = s;
     printf("  written: version %d with state %d\n", v, s); version[v] = s;
  :: else -> printf("  refused: version %d exists\n", v)
  fi
}

active proctype application() {
end: do
  :: atomic { source < VERSIONS -> source++; printf("application: version %d of the item\n", source); records[source * 3 + state]++; record_count++ }
  :: atomic { reuses > 0 && source > 0 && state == 1 -> reuses--; state = 2; printf("application: another state under version %d\n", source); records[source * 3 + state]++; record_count++ }
  od
}

active proctype network() {
end: do :: atomic { late -> printf("the late put arrives\n"); put_version(late_version, late_state); late = false; late_version = 0; late_state = 0; CHECK } od
}

#define ONE_RECORD(V, S) :: (V <= VERSIONS && records[(V) * 3 + S] > 0) -> v = V; s = S

active [2] proctype worker() {
  byte v, s, held;
end: do
  :: atomic { record_count > 0 -> if ONE_RECORD(1, 1) ONE_RECORD(2, 1) ONE_RECORD(3, 1) ONE_RECORD(1, 2) ONE_RECORD(2, 2) ONE_RECORD(3, 2) fi;
       if :: records[v * 3 + s]--; record_count-- :: repeats > 0 -> repeats-- fi; busy++; printf("record of version %d with state %d\n", v, s);
#ifdef NO_RECORD_STATE          /* history: a version is made of what a record showed */
       printf("read the item: version %d\n", source); v = source; s = state;
#endif
       held = version[v] }
     atomic {
       if
       :: held != 0 -> skip
       :: else ->
          if
          :: put_version(v, s)
          :: deaths > 0 && !late -> deaths--; printf("the worker dies; its put is in flight\n"); late = true; late_version = v; late_state = s; records[v * 3 + s]++; record_count++
          fi
       fi;
       busy--; v = 0; s = 0; held = 0; CHECK }
  od
}
