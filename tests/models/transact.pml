/* transact: an application's transaction writes copies that are right at its commit, beside any other writer.

The application reads a source, composes the copy for a new target, and commits: the target, and a check that the source has
the value that was read. Meanwhile the source is renamed, and the pipeline handles records. */
#ifndef RENAMES
#define RENAMES 2
#endif
byte source = 1, copy, renames = RENAMES, pushes, pulls, busy; bool target;
#define QUIET (busy == 0 && pushes == 0 && pulls == 0)
#define CHECK assert(!QUIET || !target || copy == source)

active proctype application() {
  byte seen;
end: do
  :: atomic { renames > 0 -> renames--; source = (source == 1 -> 2 : 1); pushes++; printf("application: the source = %d\n", source) }
  od
}

active proctype transaction() {
  byte seen; byte tries = 2;
end: do
  :: atomic { tries > 0 && !target -> tries--; seen = source; printf("transact: read the source: %d\n", seen) }
     atomic {
       if
#ifdef NO_SOURCE_COMPARE        /* the writing transaction compares every value that decided */
       :: true ->
#else
       :: source == seen ->
#endif
          assert(source == seen);       /* right at the commit */
          target = true; copy = seen; pulls++; printf("  written: the target with copy %d\n", seen)
       :: else -> printf("  refused: the source has changed\n")
       fi; seen = 0; CHECK }
  od
}

active [2] proctype worker() {
  byte seen, value;
end: do
  :: atomic { pushes + pulls > 0 -> if :: pushes > 0 -> pushes-- :: pulls > 0 -> pulls-- fi; busy++; seen = copy; printf("read the target: %d\n", seen) }
     atomic { value = source; printf("read the source: %d\n", value) }
     atomic { if :: target && seen != value && copy == seen -> copy = value; pulls++; printf("  written: the copy = %d\n", value) :: else fi;
       seen = 0; value = 0; busy--; CHECK }
  od
}
