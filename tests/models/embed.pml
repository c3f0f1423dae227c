/* embed: the map on the parent has every child, although the index that lists children lags.

Two children. A look at the parent takes what the index lists, what the present map names, and the children that asked; it
reads each by key. The map is replaced under the guard that it is as it was read. The code does so for a first map; in one
that is there, each entry has its own guard. When the index has caught up, a second look follows each look for a child. With
NO_SECOND_LOOK the three other lines show what is right before that. */
#ifndef WRITES
#define WRITES 3
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
byte child[2];                  /* its value; 0: it does not exist */
byte map[2];                    /* what the parent holds of it */
bool row[2];                    /* whether the index shows it */
byte hints[2], pulls, busy; bool second; byte writes = WRITES, deaths = DEATHS; bool late; byte late_map[2], late_seen[2];
#define ROW(k) (row[k] == (child[k] != 0))
#ifdef NO_NAMED                 /* embed: the children that the present map names are read by key */
#define IN_MAP(k) false
#else
#define IN_MAP(k) (seen[k] != 0)
#endif
#define QUIET (busy == 0 && hints[0] + hints[1] + pulls == 0 && !late && !second)
#define CHECK assert(!QUIET || (map[0] == child[0] && map[1] == child[1]))

active proctype application() {
  byte k, v;
end: do
  :: atomic { writes > 0 -> select(k : 0 .. 1); select(v : 0 .. 2);
       if :: child[k] != v -> writes--; child[k] = v; hints[k]++; printf("application: child %d = %d (0: it is deleted)\n", k, v) :: else fi; k = 0; v = 0 }
  :: atomic { row[0] != (child[0] != 0) -> row[0] = (child[0] != 0); printf("the index follows child 0\n") }
  :: atomic { row[1] != (child[1] != 0) -> row[1] = (child[1] != 0); printf("the index follows child 1\n") }
  :: atomic { late -> printf("the late write arrives\n");
       if :: map[0] == late_seen[0] && map[1] == late_seen[1] -> map[0] = late_map[0]; map[1] = late_map[1]; pulls++ :: else fi;
       late = false; late_map[0] = 0; late_map[1] = 0; late_seen[0] = 0; late_seen[1] = 0; CHECK }
  :: atomic { second && ROW(0) && ROW(1) -> second = false; pulls++; printf("second look at the parent\n") }
  od
}

active [2] proctype worker() {
  byte asked, k; byte seen[2]; byte wanted[2];
end: do
  :: atomic { hints[0] + hints[1] + pulls > 0 ->
       if :: hints[0] > 0 -> hints[0]--; asked = 1 :: hints[1] > 0 -> hints[1]--; asked = 2 :: pulls > 0 -> pulls--; asked = 0 fi; busy++;
       printf("look at the parent, asked by child %d (-1: by itself)\n", asked - 1) }
#ifdef NO_HINTED                /* embed: members that gave a hint are read by key */
     atomic { asked = 0 }
#endif
again:
     atomic { seen[0] = map[0]; seen[1] = map[1]; printf("read the parent: %d, %d\n", seen[0], seen[1]) }
     atomic {
       k = 0;
       do
       :: k < 2 ->
          if
          :: row[k] || asked == k + 1 || IN_MAP(k) -> wanted[k] = child[k]
          :: else -> wanted[k] = 0
          fi; k++
       :: else -> break
       od; k = 0; printf("read the children: %d, %d\n", wanted[0], wanted[1]) }
     atomic {
#ifndef NO_SECOND_LOOK
       if :: asked != 0 -> second = true :: else fi;
#endif
       if
       :: wanted[0] == seen[0] && wanted[1] == seen[1] -> skip
       :: else ->
          if
          :: map[0] == seen[0] && map[1] == seen[1] -> printf("  written: the map is %d, %d\n", wanted[0], wanted[1]); map[0] = wanted[0]; map[1] = wanted[1]; pulls++
          :: !(map[0] == seen[0] && map[1] == seen[1]) -> printf("  refused: the map is not as it was read\n");
#ifndef NO_SECOND_EVALUATION    /* embed: a refused guard is evaluated again */
             goto again
#endif
          :: deaths > 0 && !late -> deaths--; printf("the worker dies; its write is in flight\n"); late = true;
             late_map[0] = wanted[0]; late_map[1] = wanted[1]; late_seen[0] = seen[0]; late_seen[1] = seen[1];
             if :: asked == 0 -> pulls++ :: else -> hints[asked - 1]++ fi
          fi
       fi; asked = 0; seen[0] = 0; seen[1] = 0; wanted[0] = 0; wanted[1] = 0; busy--; CHECK }
  od
}
