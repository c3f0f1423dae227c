/* embed by an attribute: if several children claim an entry of the map, the first by key has it. Time does not matter.

Two children claim the entry, or do not. A look at the parent reads both, and writes the entry under the guard that it is as
it was read. */
#ifndef WRITES
#define WRITES 4
#endif
#define ABSENT 2
bool claims[2]; byte entry = ABSENT, looks, busy, writes = WRITES;
#define FIRST (claims[0] -> 0 : (claims[1] -> 1 : ABSENT))
#define QUIET (busy == 0 && looks == 0)
#define CHECK assert(!QUIET || entry == FIRST)

active proctype application() {
  byte k;
end: do
  :: atomic { writes > 0 -> select(k : 0 .. 1); writes--; claims[k] = !claims[k]; looks++; printf("application: child %d claims the entry: %d\n", k, claims[k]); k = 0 }
  od
}

active [2] proctype worker() {
  byte seen, wanted;
end: do
  :: atomic { looks > 0 -> looks--; busy++; seen = entry; printf("read the parent: the entry is of child %d (2: no child)\n", seen) }
     atomic {
       wanted = FIRST;
#ifdef NO_FIRST                 /* the child that had the entry keeps it */
       if :: seen != ABSENT -> if :: claims[seen] -> wanted = seen :: else fi :: else fi;
#endif
       printf("read the children: %d, %d\n", claims[0], claims[1]) }
     atomic {
       if
       :: wanted == seen -> skip
       :: wanted != seen && entry == seen -> printf("  written: the entry is of child %d\n", wanted); entry = wanted; looks++
       :: wanted != seen && entry != seen -> printf("  refused: the entry is not as it was read\n"); looks++
       fi; busy--; seen = 0; wanted = 0; CHECK }
  od
}
