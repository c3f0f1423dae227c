/* mirror: a mirror exists exactly if its source names it, and no source writes the mirror of another.

Two sources and two keys of mirrors; both sources may name the same key: the first has it, the other is parked until it is
free. Each write of a mirror is a transaction that checks what was read of the source. */
#define NONE 2
#ifndef SOURCE_WRITES
#define SOURCE_WRITES 2
#endif
#ifndef MIRROR_PUTS
#define MIRROR_PUTS 0
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef REPEATS
#define REPEATS 0
#endif
byte names[2] = NONE;           /* the key that a source names; NONE: the source does not exist, or names no key */
byte owner[2] = NONE;           /* the source that a mirror names; NONE: the mirror does not exist */
byte hints[4], hint_count;      /* looks at a mirror for a source: 2 * mirror + source */
bool parked[4];
byte busy; bool late; byte late_mirror, late_source, late_seen;
byte source_writes = SOURCE_WRITES, mirror_puts = MIRROR_PUTS, deaths = DEATHS, repeats = REPEATS;
#define PARKED(m, s) (parked[2 * (m) + (s)] && owner[m] != 1 - (s))
#define QUIET (busy == 0 && hint_count == 0 && !late && !PARKED(0, 0) && !PARKED(0, 1) && !PARKED(1, 0) && !PARKED(1, 1))
#define NAMED(s) (names[s] == NONE || owner[names[s]] != NONE)
#define KEPT(m) (owner[m] == NONE || names[owner[m]] == (m))
#define CHECK assert(!QUIET || (NAMED(0) && NAMED(1) && KEPT(0) && KEPT(1)))

inline hint(m, s) { hints[2 * (m) + (s)]++; hint_count++ }

inline set_owner(m, s) {
  if :: owner[m] != NONE -> hint(m, owner[m]) :: else fi;          /* the mirror's own record: the source that it named, or names */
  owner[m] = s;
  if :: s != NONE -> hint(m, s) :: else fi
}

/* `seen` is what the source named when it was read. */
inline apply_mirror(m, s, seen) {
  if
#ifdef NO_SOURCE_CHECK          /* mirror: each transaction checks the source */
  :: seen == m && owner[m] == NONE ->
#else
  :: names[s] == seen && seen == m && owner[m] == NONE ->
#endif
     assert(names[s] == m);     /* no mirror of a source that does not name it */
     printf("  written: mirror %d of source %d\n", m, s); set_owner(m, s)
#ifdef NO_OWNER_GUARD           /* mirror: only an item that names this source is touched */
  :: names[s] == seen && seen != m && owner[m] != NONE ->
#else
  :: names[s] == seen && seen != m && owner[m] == s ->
#endif
     assert(owner[m] == s);     /* no mirror of another source is removed */
     printf("  written: mirror %d is removed\n", m); set_owner(m, NONE)
  :: else -> printf("  refused: mirror %d of source %d\n", m, s)
  fi
}

active proctype application() {
  byte s, m;
end: do
  :: atomic { source_writes > 0 -> select(s : 0 .. 1); select(m : 0 .. 2);
       if
       :: names[s] != m ->
          source_writes--; printf("application: source %d names mirror %d (2: none)\n", s, m);
          if :: names[s] != NONE -> hint(names[s], s) :: else fi;
          names[s] = m;
          if :: m != NONE -> hint(m, s) :: else fi
       :: else
       fi; s = 0; m = 0; CHECK }
  :: atomic { mirror_puts > 0 -> select(m : 0 .. 1); select(s : 0 .. 2);
       if :: owner[m] != s && owner[m] != NONE -> mirror_puts--; printf("application: mirror %d names source %d (2: it is deleted)\n", m, s); set_owner(m, s) :: else fi; s = 0; m = 0; CHECK }
  od
}

active proctype network() {
end: do :: atomic { late -> printf("the late transaction arrives\n"); apply_mirror(late_mirror, late_source, late_seen); late = false; late_mirror = 0; late_source = 0; late_seen = 0; CHECK } od
}

#define ONE_HINT(M, S) :: hints[2 * M + S] > 0 -> m = M; s = S
#define ONE_PARKED(M, S) :: PARKED(M, S) -> m = M; s = S

active [2] proctype worker() {
  byte m, s, seen, held;
end: do
  :: atomic { hint_count > 0 -> if ONE_HINT(0, 0) ONE_HINT(0, 1) ONE_HINT(1, 0) ONE_HINT(1, 1) fi;
       if :: hints[2 * m + s]--; hint_count-- :: repeats > 0 -> repeats-- fi; busy++; printf("look at mirror %d for source %d\n", m, s) }
act: atomic { held = owner[m]; printf("read mirror %d: source %d\n", m, held) }
     atomic { seen = names[s]; printf("read source %d: mirror %d\n", s, seen) }
     atomic {
       if
       :: seen == m && held != NONE && held != s -> printf("park: mirror %d is taken\n", m); parked[2 * m + s] = true
       :: seen == m && held == NONE || seen != m && held == s ->
          if
          :: apply_mirror(m, s, seen); hint(m, s)       /* decided again from fresh reads, if it was refused */
          :: deaths > 0 && !late -> deaths--; printf("the worker dies; its transaction is in flight\n"); late = true; late_mirror = m; late_source = s; late_seen = seen; hint(m, s)
          fi
       :: else
       fi; busy--; m = 0; s = 0; seen = 0; held = 0; CHECK }
  :: atomic { (PARKED(0, 0) || PARKED(0, 1) || PARKED(1, 0) || PARKED(1, 1)) -> if ONE_PARKED(0, 0) ONE_PARKED(0, 1) ONE_PARKED(1, 0) ONE_PARKED(1, 1) fi;
       parked[2 * m + s] = false; busy++; printf("retry mirror %d for source %d\n", m, s); goto act }
  od
}
