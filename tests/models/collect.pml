/* collect: the set on a node has an element for each edge that names the node, and for no other.

Two nodes and one edge. The consumer reads the node and then the edge, and adds or removes one element; the write has no guard but that the
node exists. A record of a node looks again at each element that came or went, and its INSERT lists the edges. With INDEX it
lists them by an index, whose key another rule writes on the edge, at any later time. */
#define NONE 2
#ifndef EDGE_WRITES
#define EDGE_WRITES 2
#endif
#ifndef NODE_DELETES
#define NODE_DELETES 0
#endif
#ifndef NODE_PUTS
#define NODE_PUTS 0
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef REPEATS
#define REPEATS 0
#endif
byte edge = NONE;               /* the node that it names */
byte has[2] = 0;                /* 0, 1: whether the set has the element; NONE: the node does not exist */
byte hints[2], hint_count;      /* looks at the element of this node */
byte listings[2];
#ifdef INDEX
bool indexed;
#define LISTED indexed
#define INDEXED (indexed || edge == NONE)
#else
#define LISTED true
#define INDEXED true
#endif
byte busy; bool late; byte late_node; bool late_add;
byte edge_writes = EDGE_WRITES, node_deletes = NODE_DELETES, node_puts = NODE_PUTS, deaths = DEATHS, repeats = REPEATS;
#define QUIET (busy == 0 && hint_count == 0 && !late && listings[0] + listings[1] == 0 && INDEXED)
#define RIGHT(n) (has[n] == NONE || has[n] == (edge == (n) -> 1 : 0))
#define CHECK assert(!QUIET || (RIGHT(0) && RIGHT(1)))

inline hint(n) { hints[n]++; hint_count++ }

inline put_node(n, new) {
  if
  :: has[n] == new -> skip
  :: else ->
     if
     :: new == NONE -> skip
     :: has[n] == NONE ->
#ifndef NO_LISTING              /* collect: the INSERT of a node checks all its edges */
        listings[n]++;
#endif
#ifndef NO_ELEMENT_CHECK
        if :: new == 1 -> hint(n) :: else fi
#else
        skip
#endif
     :: else ->
#ifndef NO_ELEMENT_CHECK        /* collect: a record of a node checks each element that came or went */
        hint(n)
#else
        skip
#endif
     fi;
     has[n] = new
  fi
}

inline apply_element(n, add) {
#ifdef NO_EXISTS                /* collect: the node must exist, or an ADD creates half an item */
  if :: add && has[n] == NONE -> assert(false) :: else fi;
#endif
  if
  :: has[n] != NONE -> printf("  written: node %d %d\n", n, add); put_node(n, (add -> 1 : 0))
  :: else -> printf("  refused: node %d does not exist\n", n)
  fi
}

active proctype application() {
  byte n;
end: do
  :: atomic { edge_writes > 0 -> select(n : 0 .. 2);
       if
       :: edge != n ->
          edge_writes--; printf("application: the edge names node %d (2: it is deleted)\n", n);
          if :: edge != NONE -> hint(edge) :: else fi;
          edge = n;
#ifdef INDEX
          indexed = false;
#endif
          if :: n != NONE -> hint(n) :: else fi
       :: else
       fi; n = 0; CHECK }
  :: atomic { node_deletes > 0 -> select(n : 0 .. 1);
       if :: has[n] != NONE -> node_deletes--; printf("application: delete node %d\n", n); put_node(n, NONE) :: else fi; n = 0; CHECK }
  :: atomic { node_puts > 0 -> select(n : 0 .. 1);
       if :: node_puts--; printf("application: put node %d without the element\n", n); put_node(n, 0)
          :: node_puts--; printf("application: put node %d with the element\n", n); put_node(n, 1) fi; n = 0; CHECK }
  od
}

active proctype network() {
end: do
#ifdef INDEX
  :: atomic { !indexed && edge != NONE -> indexed = true; printf("  written: the key of the edge in the index\n");
#ifndef NO_ENTRY                /* an item that enters an index by a late write has come, for rules that list by it */
       hint(edge);
#endif
       CHECK }
#endif
  :: atomic { late -> printf("the late write arrives\n"); apply_element(late_node, late_add); late = false; late_node = 0; late_add = false; CHECK } od
}

active [2] proctype worker() {
  byte n, held; bool add;
end: do
  :: atomic { hint_count > 0 -> if :: hints[0] > 0 -> n = 0 :: hints[1] > 0 -> n = 1 fi;
       if :: hints[n]--; hint_count-- :: repeats > 0 -> repeats-- fi; busy++; held = has[n]; printf("look at the element of node %d\n", n) }
     atomic { add = (edge == n); printf("read the edge: it names %d\n", edge) }
     atomic {
       if
       :: held == NONE || held == (add -> 1 : 0) -> skip
       :: else ->
          if
          :: apply_element(n, add)
          :: deaths > 0 && !late -> deaths--; printf("the worker dies; its write to node %d is in flight\n", n); late = true; late_node = n; late_add = add; hint(n)
          fi
       fi; busy--; n = 0; held = 0; add = false; CHECK }
  :: atomic { listings[0] + listings[1] > 0 -> if :: listings[0] > 0 -> n = 0 :: listings[1] > 0 -> n = 1 fi; listings[n]--;
       printf("list the edges of node %d\n", n); if :: edge == n && LISTED -> hint(n) :: else fi; n = 0; CHECK }
  od
}
