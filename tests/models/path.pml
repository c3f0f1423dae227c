/* path: the path of a node is the path of its parent and its own id; in a ring no path grows.

Three nodes. Node 0 begins as the root. The application moves a node under another one or to the top. A record of a node asks
for a look at its children and at itself; a look reads the parent's path and writes its own under a guard. A path is a list
of at most LENGTH_MAX ids, as a number in base 4. SWEEP: a path is wrong at
first, and a sweep looks at every node, the last one first. */
#define NODES 3
#define TOP 3
#define LENGTH_MAX 5
#ifndef MOVES
#define MOVES 2
#endif
byte parent[NODES] = TOP;
int path[NODES];                /* digits: id + 1, the last id first */
byte hints[2 * NODES];          /* for each node: its own record, then that of its parent */
byte hint_count, busy, moves = MOVES;
#ifdef SWEEP
byte swept; bool ready;
#define TRUTH(n) ((n) == 0 -> 1 : ((n) == 1 -> 6 : 27))         /* 0, then 1 under it, then 2 under that */
#define NOT_SPREAD(n) assert(path[n] != TRUTH(n));     /* a repair makes no right path wrong */
#else
#define NOT_SPREAD(n)
#endif
#define HAS(p, d) ((p) % 4 == (d) || ((p) / 4) % 4 == (d) || ((p) / 16) % 4 == (d) || ((p) / 64) % 4 == (d) || ((p) / 256) % 4 == (d))
#ifdef PARTS_OF_IDS             /* path: ids are compared whole. Here the id of node 1 is taken for a part of that of node 0 */
#define IN_PATH(p, n) (HAS(p, (n) + 1) || ((n) == 1 && HAS(p, 1)))
#else
#define IN_PATH(p, n) HAS(p, (n) + 1)
#endif
#define IN_RING(n) (parent[n] != TOP && (parent[n] == n || (parent[parent[n]] != TOP && (parent[parent[n]] == n || (parent[parent[parent[n]]] != TOP && parent[parent[parent[n]]] == n)))))
#define BELOW_RING(n) (IN_RING(n) || (parent[n] != TOP && IN_RING(parent[n])) || (parent[n] != TOP && parent[parent[n]] != TOP && IN_RING(parent[parent[n]])))
#define WANTED(n) (parent[n] == TOP -> n + 1 : path[parent[n]] * 4 + n + 1)
#ifdef SWEEP
#define SWEPT (swept == NODES)
#else
#define SWEPT true
#endif
#define QUIET (busy == 0 && hint_count == 0 && SWEPT)
#define RIGHT(n) (BELOW_RING(n) || path[n] == WANTED(n))
#define CHECK assert(!QUIET || (RIGHT(0) && RIGHT(1) && RIGHT(2)))

inline hint(n) { hints[n]++; hint_count++ }
inline hint_children(n, c) { c = 0; do :: c < NODES -> if :: parent[c] == n -> hint(NODES + c) :: else fi; c++ :: else -> break od; c = 0 }

active proctype application() {
  byte n, p, c;
  atomic { do :: n < NODES -> path[n] = n + 1; n++ :: else -> break od; n = 0 }
#ifdef SWEEP
  atomic { parent[1] = 0; parent[2] = 1; path[1] = 2; path[2] = 27; ready = true }    /* the path of node 1 is wrong, that of node 2 right */
#endif
end: do
  :: atomic { moves > 0 -> select(n : 0 .. NODES - 1); select(p : 0 .. NODES);
       if :: parent[n] != p && n != p -> moves--; parent[n] = p; hint(n); printf("application: node %d goes under node %d (3: to the top)\n", n, p) :: else fi; n = 0; p = 0; CHECK }
  od
}

active [2] proctype worker() {
  byte n, c; int seen, wanted; byte seen_parent;
end: do
  :: atomic { hint_count > 0 -> if :: hints[0] > 0 -> c = 0 :: hints[1] > 0 -> c = 1 :: hints[2] > 0 -> c = 2
       :: hints[3] > 0 -> c = 3 :: hints[4] > 0 -> c = 4 :: hints[5] > 0 -> c = 5 fi; n = c % NODES;
       hints[c]--; hint_count--; busy++; seen = path[n]; seen_parent = parent[n];
       if
       :: c < NODES -> printf("read node %d: parent %d, path %d\n", n, seen_parent, seen)
       :: else -> printf("list the children of node %d: node %d, path %d\n", seen_parent, n, seen)
       fi; c = 0 }
parents:
     atomic { wanted = (seen_parent == TOP -> 0 : path[seen_parent]); printf("read parent %d: path %d\n", seen_parent, wanted) }
decide:
     atomic {
       if
#ifdef NO_RING                  /* path: an id that is in the parent's path is not appended */
       :: false
#else
       :: seen_parent != TOP && IN_PATH(wanted, n) -> printf("report a ring at node %d\n", n)
#endif
       :: else ->
          wanted = wanted * 4 + n + 1;
          if
          :: wanted != seen && path[n] == seen && parent[n] == seen_parent ->
             NOT_SPREAD(n)
             printf("  written: the path of node %d is %d\n", n, wanted); assert(wanted < 1024);    /* no path grows for ever */
             path[n] = wanted; hint(n); hint_children(n, c)
          :: wanted != seen && !(path[n] == seen && parent[n] == seen_parent) -> printf("  refused: node %d is not as it was read\n", n)
          :: else
          fi
       fi; busy--; n = 0; seen = 0; wanted = 0; seen_parent = 0; CHECK }
#ifdef SWEEP
  :: atomic { ready && swept < NODES -> n = 2 - swept; swept++; busy++; seen = path[n]; seen_parent = parent[n]; printf("sweep: read node %d: path %d\n", n, seen) }
#ifdef SWEEP_AS_IS              /* path: a sweep compares a child with what its parent will be */
     goto parents
#else
     atomic { wanted = (seen_parent == TOP -> 0 : TRUTH(seen_parent)); printf("read its ancestors: path %d\n", wanted) }
     goto decide
#endif
#endif
  od
}
